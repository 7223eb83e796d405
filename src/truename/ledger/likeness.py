"""Find recorded tools by a text that is perhaps a name of theirs, without reading the others.

Names are compared by a key that is coarser than all spellings of a name: it has no separators and no capitals. Both
engines compute it, so that an index of a table can have it: whoever writes a row, of whatever version, fills the index.
"""

from __future__ import annotations

import re
import string
import threading
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from truename.identity import ToolId
    from truename.ledger.rows import LedgerRows

__all__ = ["HELD_KEY", "INTEGRATIONS", "NAME_KEY", "ODD", "TOOL_KEY", "LikenessIndex", "MemoryLikeness", "likeness"]

_SEPARATORS: Final = "-_.:/ "
_PLAIN: Final = re.compile(rf"[A-Za-z0-9{re.escape(_SEPARATORS)}]*")
_DROPPED: Final = str.maketrans("", "", _SEPARATORS)
ODD: Final = "/"
"""The key of all names with other characters: names that are made of these, as in other scripts, have other keys."""


def likeness(text: str) -> str:
    """Return the key by which names on record are found.

    Each spelling of a name without its server's part (in whatever style, `truename.naming.spellings.folded` or not) has
    the key of the name, unless that is `ODD`.

    >>> likeness("getData"), likeness("get.data"), likeness("get+data"), likeness("___")
    ('getdata', 'getdata', '/', '')
    """
    return text.lower().translate(_DROPPED) if _PLAIN.fullmatch(text) else ODD


def _without(characters: str, expression: str) -> str:
    for character in characters:
        expression = f"replace({expression}, '{character}', '')"
    return expression


def _key_of(expression: str) -> str:
    """Return `likeness` in SQL, of which both engines have `lower` for ASCII letters."""
    plain = f"ltrim({expression}, '{string.ascii_letters}{string.digits}{_SEPARATORS}') = ''"
    return f"CASE WHEN {plain} THEN {_without(_SEPARATORS, f'lower({expression})')} ELSE '{ODD}' END"


_IN_NAMES: Final = f"{string.ascii_lowercase}{string.digits}_-"
_UNVERSIONED: Final = f"rtrim(rtrim(id, '{string.digits}'), '@')"
_TOOL: Final = f"substr({_UNVERSIONED}, length(rtrim({_UNVERSIONED}, '{_IN_NAMES}')) + 1)"
# Behind the server's part, and without the number. No name has a line break, which shows where it ends.
_BEHIND: Final = (
    "replace(replace(substr(name, length(prefix) + 1) || '\n', '_' || coalesce(CAST(number AS TEXT), '') || '\n', ''),"
    " '\n', '')"
)
NAME_KEY: Final = _key_of("name")
"""The key of a tool's own name, in rows of ``ledger_origin``."""
TOOL_KEY: Final = _without("-_", _TOOL), "length(replace(id, '/' || replace(name, '.', '/') || '@', '')) >= length(id)"
"""The key of the tool's name in its id, in rows of ``ledger_origin``, and the condition under which the index has it.

Most ids have the tool's own name; the index is for the others. An id has one ``/``, so none has a name with a dot in
that form: behind it is a suite.
"""
HELD_KEY: Final = _key_of(_BEHIND), "prefix <> ''"
"""The key of a name that was shown, without its server's part and its number, in rows of ``ledger_spelling``.

It is followed by the condition under which the index has it.
"""
# From the first id of each integration to that of the next one: no other row is read. "A" follows "@".
INTEGRATIONS: Final = """
WITH RECURSIVE found (integration) AS (
    SELECT substr(min(id), 1, length(min(id)) - length(ltrim(min(id), 'abcdefghijklmnopqrstuvwxyz0123456789_-')))
    FROM ledger_origin
    UNION ALL
    SELECT (
        SELECT substr(min(id), 1, length(min(id)) - length(ltrim(min(id), 'abcdefghijklmnopqrstuvwxyz0123456789_-')))
        FROM ledger_origin WHERE id > integration || 'A'
    ) FROM found WHERE integration IS NOT NULL
) SELECT integration FROM found WHERE integration IS NOT NULL
"""
"""A query for the integrations of all identities, present and former."""


class LikenessIndex(Protocol):
    """Finds recorded tools by the keys of their names."""

    def alike(self, scope: str, keys: Collection[str], /) -> Iterable[ToolId]:
        """Return the tools with a name of one of these keys, and perhaps others.

        Their names are their own, that in the id, and those that they held in a scope, without the server's part.
        """
        ...

    def integrations(self) -> Iterable[str]:
        """Return the integrations of all identities, present and former."""
        ...


class MemoryLikeness:
    """The index of a ledger whose rows are all in memory; it is built when it is asked first."""

    def __init__(self, origins: LedgerRows[Any], shown: LedgerRows[str], spellings: LedgerRows[Any]) -> None:
        self._origins, self._shown, self._spellings = origins, shown, spellings
        self._lock = threading.Lock()
        self._is_built = False
        # What was recorded since the index was asked last.
        self._bound: list[tuple[ToolId, str]] = []
        self._held: list[tuple[str, str, ToolId]] = []
        self._ids: defaultdict[str, dict[ToolId, None]] = defaultdict(dict)
        self._names: defaultdict[tuple[str, str], dict[str, None]] = defaultdict(dict)
        self._holders: defaultdict[tuple[str, str], dict[ToolId, None]] = defaultdict(dict)

    def bound(self, id: ToolId, name: str) -> None:
        """Take in a new identity."""
        if self._is_built:
            self._bound.append((id, name))

    def held(self, scope: str, name: str, id: ToolId) -> None:
        """Take in that a tool holds a name."""
        if self._is_built:
            self._held.append((scope, name, id))

    def alike(self, scope: str, keys: Collection[str]) -> list[ToolId]:
        """Return the tools with a name of one of these keys, and perhaps others."""
        with self._lock:
            self._take_in()
            found = {id: None for key in keys for id in self._ids.get(key, ())}
            for name in (name for key in keys for name in self._names.get((scope, key), ())):
                found |= self._holders[scope, name]
            return list(found)

    def integrations(self) -> Iterable[str]:
        """Return the integrations of all identities, present and former."""
        return (id.integration for (id,), _ in self._origins.under())

    def _take_in(self) -> None:
        if not self._is_built:
            # What others record meanwhile is taken in twice at most.
            self._is_built = True
            self._bound += [(id, row.name) for (id,), row in self._origins.under()]
            self._held += [(key[0], name, key[-1]) for key, name in self._shown.under()]
        while self._bound:
            id, name = self._bound.pop()
            for key in {likeness(name), likeness(id.tool)}:
                self._ids[key][id] = None
        while self._held:
            scope, name, id = self._held.pop()
            self._holders[scope, name][id] = None
            parts = self._spellings.get(scope, name)
            if parts is not None and parts.prefix:
                behind = name[len(parts.prefix) :]
                key = likeness(behind if parts.number is None else behind.removesuffix(f"_{parts.number}"))
                self._names[scope, key][name] = None

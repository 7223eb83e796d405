"""Derived spellings: every other way in which a tool of this table may be called, generated, never parsed.

A text is looked up here under its fold; it is answered only if exactly one tool has a spelling with that fold. No
name is ever split to find out what it means.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from truename.identity import ToolId, fold
from truename.naming.words import snake

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from truename.catalog import Tool
    from truename.naming.table import NameTable

__all__ = ["DerivedIndex", "plain_spellings", "server_spellings"]

_NONE: Final[frozenset[ToolId]] = frozenset()


class DerivedIndex:
    """The derived spellings of one table, plus the canonical families, built once.

    Tools that a ledger knows and that are not here now are in it too: a spelling that was theirs yesterday must not
    silently mean a sibling today.
    """

    __slots__ = ("_as_shown", "_assigned", "_others", "_slashed", "_table", "absent", "families")

    def __init__(self, table: NameTable) -> None:
        self._table = table
        self._assigned: dict[str, tuple[ToolId, str]] = {}
        self._as_shown: dict[str, tuple[ToolId, str]] = {}
        self._others: defaultdict[str, set[ToolId]] = defaultdict(set)
        self._slashed: defaultdict[str, set[ToolId]] = defaultdict(set)
        self.families: defaultdict[tuple[str, str | None, str], list[ToolId]] = defaultdict(list)
        for id in table:
            self._add(table.catalog[id])
        self.absent: set[ToolId] = set()
        for server, name, id in _absent(table):
            self.absent.add(id)
            self._put(id, plain_spellings(id, server, name, None))

    def _add(self, tool: Tool) -> None:
        table, id, origin = self._table, tool.id, tool.origin
        assigned = table.assigned(id)
        self.families[id.family].append(id)
        self._assigned[fold(assigned.name)] = id, assigned.name
        shown = table.dialect.shown(table.server_name, assigned.name)
        if shown is not None:
            self._as_shown[shown] = id, assigned.name
        if assigned.prefix and assigned.name.startswith(assigned.prefix):
            rest = assigned.name[len(assigned.prefix) :]
            self._put(id, (f"{id.integration}_{rest}", f"{origin.server}_{rest}"))
        # A numbered variant is called by its number; its family's plain names are the first variant's.
        if assigned.rung != "numbered":
            alias = table.catalog.aliases.get(id.integration)
            self._put(id, plain_spellings(id, origin.server, origin.name, alias))
        if "/" in origin.name:
            self._slashed[origin.name].add(id)

    def _put(self, id: ToolId, spellings: Iterable[str]) -> None:
        for spelling in spellings:
            self._others[fold(spelling)].add(id)

    def shown_like(self, text: str) -> tuple[ToolId, str] | None:
        """Return the tool, and its name, that this client shows so or that is this text but for case and separators."""
        found = self._as_shown.get(text)
        return self._assigned.get(fold(text)) if found is None and "/" not in text else found

    def spelled(self, text: str) -> frozenset[ToolId]:
        """Return the tools that could be meant by this text in another style, or by their own name."""
        if "/" in text:
            # What looks like a canonical name is never matched loosely: only a server's own slashed name answers.
            return frozenset(self._slashed.get(text, _NONE))
        return frozenset(self._others.get(fold(text), _NONE))


def plain_spellings(id: ToolId, server: str, name: str, alias: str | None) -> Iterator[str]:
    """Yield what the tool would be called in other styles: bare, with its server in front, as its server says it."""
    dotted = f"{id.suite}_{id.tool}" if id.suite else id.tool
    yield id.tool
    yield from server_spellings((name, snake(name), dotted), id, server, alias)


def server_spellings(names: Iterable[str], id: ToolId, server: str, alias: str | None) -> Iterator[str]:
    """Yield these names bare, and with the tool's server in front."""
    own = dict.fromkeys(names)
    yield from own
    for each in dict.fromkeys((id.integration, server, snake(server), alias or server)):
        for tool in own:
            yield f"{each}_{tool}"
            yield f"mcp_{each}_{tool}"


def _absent(table: NameTable) -> Iterator[tuple[str, str, ToolId]]:
    ledger = table.ledger
    if ledger is None:
        return
    servers = {tool.origin.server_id for tool in table.catalog.values()}
    for (server, name), id in ledger.bindings().items():
        # A scope of one server knows nothing of the others.
        if id not in table and (not ledger.scope or server in servers):
            yield server, name, id

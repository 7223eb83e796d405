"""Derived spellings: every other way in which a tool of this table may be called, generated, never parsed.

A text is looked up here under its fold; it is answered only if exactly one tool has a spelling with that fold. No
name is ever split to find out what it means.
"""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from truename import dialects
from truename.identity import ToolId, fold
from truename.naming.words import words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from truename.catalog import Tool
    from truename.naming.table import NameTable

__all__ = ["DerivedIndex"]

_NONE: Final[frozenset[ToolId]] = frozenset()
_PROBE: Final = "truename_probe"
# Models put these in front of a name out of habit (reported of several providers).
_HABITS: Final = (("functions.", ""), ("default_api.", ""), ("default_api:", ""))


class DerivedIndex:
    """The derived spellings of one table, plus the canonical families, built once."""

    __slots__ = ("_assigned", "_others", "_slashed", "_table", "families")

    def __init__(self, table: NameTable) -> None:
        self._table = table
        self._assigned: dict[str, ToolId] = {}
        self._others: defaultdict[str, set[ToolId]] = defaultdict(set)
        self._slashed: defaultdict[str, set[ToolId]] = defaultdict(set)
        self.families: defaultdict[tuple[str, str | None, str], list[ToolId]] = defaultdict(list)
        for id in table:
            self._add(table.catalog[id])

    def _add(self, tool: Tool) -> None:
        id, origin = tool.id, tool.origin
        self.families[id.family].append(id)
        assigned = self._table.assigned(id)
        self._assigned[fold(assigned.name)] = id
        rest = assigned.name[len(assigned.prefix) :]
        servers = {id.integration, "_".join(words(origin.server)), origin.server}
        alias = self._table.catalog.aliases.get(id.integration)
        # A numbered variant is called by its number; its family's plain names are the first variant's.
        own = [rest] if assigned.rung == "numbered" else [rest, *_own_names(tool)]
        if assigned.rung != "numbered":
            self._put(id, own)
            servers |= {alias} if alias else set()
        if assigned.prefix or assigned.rung != "numbered":
            self._put(id, (f"{server}_{name}" for server in servers for name in own))
        self._put(id, (f"mcp_{server}_{name}" for server in servers for name in own[1:]))
        if "/" in origin.name:
            self._slashed[origin.name].add(id)

    def _put(self, id: ToolId, spellings: object) -> None:
        for spelling in spellings:  # type: ignore[attr-defined]
            self._others[fold(spelling)].add(id)

    def find(self, text: str) -> frozenset[ToolId]:
        """Return the tools that have a spelling like this: the one shown under it, else all that could be meant."""
        if "/" in text:
            # What looks like a canonical name is never matched loosely: only a server's own slashed name answers.
            return frozenset(self._slashed.get(text, _NONE))
        key = fold(text)
        if key in self._assigned:
            return frozenset((self._assigned[key],))
        return frozenset(self._others.get(key, _NONE) | self._unframed(text))

    def _unframed(self, text: str) -> set[ToolId]:
        """Return the tools whose shown name, framed as some client frames it, is this text."""
        lowered = text.lower()
        found: set[ToolId] = set()
        for before, after in _frames(self._table.server_name):
            if lowered.startswith(before) and lowered.endswith(after):
                key = fold(text[len(before) : len(text) - len(after)])
                if key in self._assigned:
                    found.add(self._assigned[key])
        return found


def _own_names(tool: Tool) -> Iterator[str]:
    id, name = tool.id, tool.origin.name
    yield name
    yield "_".join(words(name))
    yield id.tool
    if id.suite:
        yield f"{id.suite}_{id.tool}"


@lru_cache(maxsize=64)
def _frames(server_name: str) -> tuple[tuple[str, str], ...]:
    """Return what the clients put before and behind a name for this server, in lower case."""
    frames = set(_HABITS)
    for name in dialects.names():
        shown = (dialects.get(name).shown(server_name, _PROBE) or "").lower()
        before, found, after = shown.partition(_PROBE)
        if found and (before or after):
            frames.add((before, after))
    return tuple(sorted(frames))

"""Find the tools that a new definition has to be compared with, among all that are there.

The rules about imitations and steered calls compare a new tool with every other one. Nearly all of those are alike in
nothing. This index proposes all that a rule could name, and the rules decide as if they had seen the others too.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import chain, groupby, islice
from typing import TYPE_CHECKING, Final

from truename.conventions import Declaration
from truename.conventions.characters import skeleton
from truename.conventions.likeness import CLONED, MOST_COMPARED, NEAR_FROM, NEAR_TO, likeness
from truename.identity import fold
from truename.naming.spellings import server_forms
from truename.naming.words import snake

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from truename.catalog import Catalog, Tool
    from truename.identity import ToolId

    Names = Callable[[Tool], Iterable[str]]

__all__ = ["PeerIndex"]

# Letters in which a near name may differ: those of nearly all names, and of others the most common.
_LETTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_")
_MOST_LETTERS: Final = 100
_LEAD: Final = "mcp_"


class PeerIndex:
    """The tools of a catalogue by what their names have in common with others.

    ``names`` yields the names that clients give a tool, besides its own; ``holder`` returns the tool that holds a
    folded name on record.
    """

    def __init__(self, names: Names, holder: Callable[[str], ToolId | None]) -> None:
        self._names = names
        self._holder = holder
        self._catalog: Catalog | None = None
        # By the folds of a tool's own name, as it is and in words; folds by how they look; forms of servers' names.
        self._named: dict[str, tuple[ToolId, ...]] = {}
        self._folds: dict[str, tuple[str, ...]] = {}
        self._servers: dict[str, tuple[str, ...]] = {}
        self._letters: Counter[str] = Counter()

    def follow(self, catalog: Catalog, changed: Collection[ToolId] | None = None) -> PeerIndex:
        """Return the index of another catalogue; ``changed`` are the tools in which it differs, None for any.

        A name or server stays in the index when its last tool is gone: what it proposes then is nobody's.
        """
        before = self._catalog
        other = PeerIndex(self._names, self._holder)
        other._catalog = catalog
        if before is None or changed is None:
            other._add(catalog.values())
            return other
        new = [catalog[id] for id in changed if id in catalog and id not in before]
        if not new:
            other.__dict__ |= self.__dict__ | {"_catalog": catalog}
            return other
        other._named, other._folds = self._named.copy(), self._folds.copy()
        other._servers, other._letters = self._servers.copy(), self._letters.copy()
        other._add(new)
        return other

    def _add(self, tools: Iterable[Tool]) -> None:
        named: defaultdict[str, list[ToolId]] = defaultdict(list)
        servers: set[tuple[str, str]] = set()
        for tool in tools:
            name = tool.origin.name
            own = fold(name)
            named[own].append(tool.id)
            if (words := fold(snake(name))) != own:
                named[words].append(tool.id)
            if (integration := (tool.origin.server_id, tool.id.integration)) not in servers:
                servers.add(integration)
                for form in (tool.origin.server, *server_forms(tool.id, tool.origin.server, None)):
                    self._put(self._servers, fold(form), tool.origin.server_id)
        for name, ids in named.items():
            before = self._named.get(name, ())
            self._named[name] = (*before, *(id for id in ids if id not in before))
            if not before:
                self._put(self._folds, skeleton(name), name)
                self._letters.update(name)

    @staticmethod
    def _put(index: dict[str, tuple[str, ...]], key: str, value: str) -> None:
        before = index.get(key, ())
        if value not in before:
            index[key] = (*before, value)

    def owners(self, name: str) -> Iterator[Tool]:
        """Yield the tools that clients are shown, or may be shown, under a name with this fold."""
        assert self._catalog is not None  # noqa: S101 - an index follows a catalogue before it is asked
        found = dict.fromkeys(self._proposed(name))
        for id in found:
            tool = self._catalog.get(id)
            if tool is not None and any(fold(one) == name for one in chain((tool.origin.name,), self._names(tool))):
                yield tool

    def servers(self, name: str) -> frozenset[str]:
        """Return the servers of these tools; none before there is a catalogue."""
        return frozenset() if self._catalog is None else frozenset(tool.origin.server_id for tool in self.owners(name))

    def _proposed(self, name: str) -> Iterator[ToolId]:
        if (holder := self._holder(name)) is not None:
            yield holder
        yield from self._named.get(name, ())
        # A name is never split to find its meaning: what is found here is compared with the names that the tool has.
        plain = name.removeprefix(_LEAD)
        catalog = self._catalog
        at = plain.find("_")
        while at >= 0 and catalog is not None:
            if servers := self._servers.get(plain[:at]):
                for id in self._named.get(plain[at + 1 :], ()):
                    if id in catalog and catalog[id].origin.server_id in servers:
                        yield id
            at = plain.find("_", at + 1)

    def peers(self, new: Sequence[Tool]) -> tuple[list[Tool], frozenset[ToolId]]:
        """Return the tools of the catalogue that a rule could compare these with; never one of these.

        Besides, return which of them may be called by a name that a text of these demands to call.
        """
        catalog = self._catalog
        assert catalog is not None  # noqa: S101 - an index follows a catalogue before it is asked
        own = {tool.id for tool in new}
        found: dict[ToolId, Tool] = {}
        for name in {alike for tool in new for alike in self._alike(fold(tool.origin.name))}:
            found |= {tool.id: tool for tool in self._first(name, own)}
        owners = {other.id: other for tool in new for name in _mentioned(tool) for other in self.owners(name)}
        found |= owners
        # Whether two servers are one program, their whole lists tell.
        servers = {tool.origin.server_id for tool in self._cloned(new, found.values())}
        servers |= {tool.origin.server_id for tool in new}
        found |= {tool.id: tool for server in servers for tool in catalog.of_server(server)}
        return [tool for id, tool in found.items() if id not in own], frozenset(owners)

    def _first(self, name: str, own: Collection[ToolId]) -> Iterator[Tool]:
        """Yield as many tools of a name as rules compare: the first few of each of the first few servers."""
        catalog = self._catalog
        assert catalog is not None  # noqa: S101 - see `peers`
        there = (catalog[id] for id in self._named.get(name, ()) if id in catalog and id not in own)
        ordered = sorted(there, key=lambda tool: (tool.origin.server_id, tool.origin.name))
        servers = groupby(ordered, key=lambda tool: tool.origin.server_id)
        for _, tools in islice(servers, MOST_COMPARED + 2):
            yield from islice(tools, MOST_COMPARED + 1)

    def _alike(self, name: str) -> set[str]:
        """Return the names that look like one, or differ from it in one letter."""
        found = {name, *self._folds.get(skeleton(name), ())}
        if NEAR_FROM - 1 <= len(name) <= NEAR_TO + 1:
            letters = _LETTERS.union(name, (letter for letter, _ in self._letters.most_common(_MOST_LETTERS)))
            found.update(near for near in _edits(name, letters) if near in self._named)
        return found

    @staticmethod
    def _cloned(new: Sequence[Tool], others: Iterable[Tool]) -> Iterator[Tool]:
        texts: defaultdict[str, list[str]] = defaultdict(list)
        for tool in new:
            texts[fold(tool.origin.name)].append(_text(tool.definition))
        for other in others:
            said = texts.get(fold(other.origin.name), ())
            if any(likeness(text, _text(other.definition)) >= CLONED for text in said):
                yield other


def _text(definition: Mapping[str, object]) -> str:
    text = definition.get("description")
    return text if isinstance(text, str) else ""


def _mentioned(tool: Tool) -> set[str]:
    """Return the folds of the names that a tool's texts demand to call."""
    from truename.conventions.rules.texts import mentions, quoted_words, read_texts  # noqa: PLC0415 - the rules, only for new definitions

    texts = read_texts(Declaration(name=tool.origin.name, server=tool.origin.server_id, definition=tool.definition))
    return {fold(one.name) for one in (*mentions(texts), *quoted_words(texts)) if one.is_ordered}


def _edits(name: str, letters: Collection[str]) -> Iterator[str]:
    for at in range(len(name) + 1):
        before, behind = name[:at], name[at:]
        if behind:
            yield before + behind[1:]
            yield from (before + letter + behind[1:] for letter in letters)
        if len(behind) > 1:
            yield before + behind[1] + behind[0] + behind[2:]
        yield from (before + letter + behind for letter in letters)

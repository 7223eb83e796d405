"""Represent a name table: each tool's wire name, and every other spelling that resolves to one tool."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple, NewType

from truename.catalog import Catalog, label_of
from truename.errors import InvalidToolId
from truename.identity import ToolId, ToolRef, fold
from truename.naming.suggest import NameSuggester
from truename.naming.words import snake

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from truename.dialects import Dialect
    from truename.ledger import Ledger, Standing
    from truename.naming.assign import AssignedName
    from truename.naming.candidates import NameGenerator
    from truename.naming.style import Style

__all__ = ["Explanation", "NameTable", "Resolution", "WireName", "folded", "plain_spellings", "server_forms"]

Family = tuple[str, str | None, str]
# Nearly all texts have one tool; a set for each of them would take most of the memory.
Index = dict[str, ToolId | set[ToolId]]
_NONE: Final[frozenset[ToolId]] = frozenset()
_ONE_SEPARATOR: Final = str.maketrans("-:. ", "____")
_RUN: Final = re.compile("__+")
# No style keeps these characters, the syntax of ids and their encodings, in a name.
_ID_SYNTAX: Final = re.compile(r"[/~%]+")
_VERSIONED: Final = re.compile("@|%40")
# A name that a table shows. Only this module creates values of the type.
WireName = NewType("WireName", str)


def folded(text: str) -> str:
    r"""Fold a text for the last step of `resolve`: ignore case, and replace runs of ``-_:.`` and space by one ``_``.

    It keeps every other character, so it distinguishes more texts than `truename.identity.fold`, by which names are
    claimed. A letter outside ASCII never becomes an ASCII letter.

    >>> folded("Weather:get__Data"), folded("a%B"), folded("\u212a")
    ('weather_get_data', 'a%b', '\u212a')
    """
    plain = (text.lower() if text.isascii() else "".join(map(_lowered, text))).translate(_ONE_SEPARATOR)
    return _RUN.sub("_", plain) if "__" in plain else plain


def _lowered(character: str) -> str:
    lowered = character.lower()
    return character if lowered.isascii() and not character.isascii() else lowered


class _SpelledTool(NamedTuple):
    """A tool with the data for its spellings; ``number`` and ``prefix`` are those of the name that it holds."""

    id: ToolId
    server: str
    name: str
    held: str = ""
    prefix: str = ""
    number: int | None = None


class SpellingIndex:
    """An index of the spellings of one table's tools, and of the absent tools in its ledger; built at first use."""

    def __init__(self, table: NameTable) -> None:
        self._table = table

    def prepare(self) -> None:
        """Build all indexes now; else the first search builds them (some tenths of a second for 10,000 tools)."""
        for search in (self.exact, self.shown_as, self.folded):
            search("")
        self.knows_family(ToolRef.parse("a/b"))

    def exact(self, text: str) -> Collection[ToolId]:
        """Return the tools that have this text, not folded, among the spellings that they accept."""
        return _of(self._exact, text)

    def shown_as(self, text: str) -> Collection[ToolId]:
        """Return the tools whose names this table's client shows as this text."""
        return _of(self._shown, text)

    def folded(self, text: str) -> Collection[ToolId]:
        """Return the tools that have a name or a spelling with the fold of this text."""
        return _of(self._folded, folded(text))

    @cached_property
    def families(self) -> dict[Family, list[ToolId]]:
        """The ids of the table, grouped by all parts except the versions."""
        families: defaultdict[Family, list[ToolId]] = defaultdict(list)
        for id in self._table:
            families[id.family].append(id)
        return dict(families)

    @cached_property
    def absent(self) -> frozenset[ToolId]:
        """The recorded tools that are not in the table."""
        return frozenset(named.id for named in _absent(self._table))

    def knows_family(self, ref: ToolRef) -> bool:
        """Return whether some version of this tool is in the table or in the ledger."""
        return (ref.integration, ref.suite, ref.tool) in self._known_families

    @cached_property
    def _known_families(self) -> frozenset[Family]:
        return frozenset({*self.families, *(id.family for id in self.absent)})

    @cached_property
    def _shown(self) -> Index:
        table = self._table
        shown = ((table.dialect.shown(table.server_name, name), id) for id, name in table.items())
        return _index((text, id) for text, id in shown if text is not None)

    @cached_property
    def _exact(self) -> Index:
        return _index(self._spellings())

    @cached_property
    def _folded(self) -> Index:
        table = self._table
        by_fold: Index = {}
        for index in (self._exact, self._shown):
            for text, ids in index.items():
                for id in ids if isinstance(ids, set) else (ids,):
                    _add(by_fold, folded(text), id)
        for id, name in table.items():
            _add(by_fold, folded(name), id)
        aliases = table.catalog.aliases
        for named in self._named():
            number = "" if named.number is None else f"_{named.number}"
            for text in _loose_spellings(named, aliases.get(named.id.integration)):
                _add(by_fold, folded(text + number), named.id)
        return by_fold

    def _named(self) -> Iterator[_SpelledTool]:
        table = self._table
        for id, tool in table.catalog.items():
            assigned = table.assigned(id)
            yield _SpelledTool(
                id, tool.origin.server, tool.origin.name, assigned.name, assigned.prefix, assigned.number
            )
        yield from _absent(table)

    def _spellings(self) -> Iterator[tuple[str, ToolId]]:
        """Yield every spelling with its tool.

        Each spelling of a further version ends with the number of its name. It has a spelling without the number only
        if no other version has or had that spelling. Otherwise the spelling would change its meaning when the other
        version disappears, or loses its name to a redirect.
        """
        own = {named.name for named in self._named()}
        numbered: list[_SpelledTool] = []
        unnumbered: defaultdict[Family, set[str]] = defaultdict(set)
        for named in self._named():
            if named.number is not None:
                numbered.append(named)
                continue
            for text in self._texts(named, own):
                unnumbered[named.id.family].add(text)
                yield text, named.id
                if _VERSIONED.search(text) and (other := self._read_as_another(text, named.id)) is not None:
                    yield text, other
        for named in sorted(numbered, key=self._seniority):
            taken = unnumbered[named.id.family]
            for text in list(self._texts(named, own)):
                if text not in taken:
                    taken.add(text)
                    yield text, named.id
                yield f"{text}_{named.number}", named.id

    def _seniority(self, named: _SpelledTool) -> tuple[bool, int, ToolId]:
        ledger = self._table.ledger
        is_later = ledger is None or ledger.first_version(named.id) != named.id
        return is_later, named.number or 0, named.id

    def _texts(self, named: _SpelledTool, own: Container[str]) -> Iterator[str]:
        """Yield the exact spellings of one tool, except adapted names that are another tool's own name."""
        adapted = {*_adapted(named.name)} - {named.name}
        for text in _all_spellings(named, self._table.catalog.aliases.get(named.id.integration)):
            if text not in adapted or text not in own:
                yield text

    def _read_as_another(self, text: str, id: ToolId) -> ToolId | None:
        """Return the other known tool whose id a text is (encoded, or in other case); such a text is ambiguous."""
        try:
            read = ToolRef.parse(text).complete()
        except InvalidToolId:
            return None
        return read if read != id and (read in self._table or read in self.absent) else None


def _index(pairs: Iterable[tuple[str, ToolId]]) -> Index:
    index: Index = {}
    for text, id in pairs:
        _add(index, text, id)
    return index


def _add(index: Index, text: str, id: ToolId) -> None:
    had = index.setdefault(text, id)
    if isinstance(had, set):
        had.add(id)
    elif had != id:
        index[text] = {had, id}


def _of(index: Index, text: str) -> Collection[ToolId]:
    found = index.get(text, _NONE)
    return (found,) if isinstance(found, ToolId) else found


def _all_spellings(named: _SpelledTool, alias: str | None) -> Iterator[str]:
    """Yield the plain spellings, and the held name with its prefix replaced by the server's other names."""
    id, server = named.id, named.server
    yield from plain_spellings(id, server, named.name, alias)
    if named.prefix and named.held.startswith(named.prefix):
        rest = named.held[len(named.prefix) :]
        if named.number is not None:
            rest = rest.removesuffix(f"_{named.number}")
        for part in server_forms(id, server, None):
            yield f"{part}_{rest}"


def plain_spellings(id: ToolId, server: str, name: str, alias: str | None) -> Iterator[str]:
    """Yield the tool's exact names in all styles: its own name, and its own name after each form of the server's.

    >>> from truename.identity import ToolId
    >>> list(plain_spellings(ToolId.parse("weather/get"), "Weather", "get", None))
    ['get', 'Weather:get', 'weather_get', 'mcp_weather__get', 'mcp_weather_get']
    """
    yield from dict.fromkeys((name, *_adapted(name)))
    yield from server_spellings(name, id, server, alias)


def server_spellings(name: str, id: ToolId, server: str, alias: str | None) -> Iterator[str]:
    """Yield a name prefixed with the tool's server: its label and a colon, and the forms of the other styles."""
    yield f"{server}:{name}"
    adapted = _ID_SYNTAX.sub("_", name)
    own = dict.fromkeys((adapted, *_in_words(adapted)))
    for part in server_forms(id, server, alias):
        for tool in own:
            yield f"{part}_{tool}"
            yield f"mcp_{part}__{tool}"
            yield f"mcp_{part}_{tool}"


def _loose_spellings(named: _SpelledTool, alias: str | None) -> Iterator[str]:
    """Yield spellings that are only compared by fold, so that they make a text ambiguous rather than wrong."""
    words = snake(named.name)
    yield named.id.tool
    yield words
    for part in server_forms(named.id, named.server, alias):
        yield f"{part}_{words}"
        yield f"mcp_{part}_{words}"
        yield f"{part}_{named.id.tool}"


def _adapted(name: str) -> tuple[str, ...]:
    """Return the forms that the styles make of a tool's own name."""
    plain = _ID_SYNTAX.sub("_", name)
    return (*_in_words(plain), plain.replace(".", "__"))


def _in_words(name: str) -> tuple[str, ...]:
    """Return a name in snake case and without dots; nothing for a name that would have to be transliterated."""
    return tuple(text for text in (snake(name), name.replace(".", "_")) if text) if name.isascii() else ()


def server_forms(id: ToolId, server: str, alias: str | None) -> Iterator[str]:
    """Yield the forms of a server in names; the label itself only if it is not the integration in other case."""
    parts = (id.integration, snake(server), server if server.lower() != id.integration else "", alias or "")
    yield from (part for part in dict.fromkeys(parts) if part)


def _absent(table: NameTable) -> Iterator[_SpelledTool]:
    ledger = table.ledger
    if ledger is None:
        return
    servers = {tool.origin.server_id for tool in table.catalog.values()}
    held = ledger.held(table.dialect.name)
    # Copy the items first: another thread may record more meanwhile.
    for id, (server, name) in tuple(ledger.origins().items()):
        # A ledger scope for one server does not contain the others.
        if id not in table and (not ledger.scope or server in servers):
            shown = held.get(id, "")
            prefix, number = ledger.parts(shown)
            # The ledger records an absent server's key and integration, but not its label.
            for label in dict.fromkeys((label_of(server), id.integration)):
                yield _SpelledTool(id, label, name, shown, prefix, number)


class BrokenNames:
    """An index of names that a clean break removed, in all spellings; rebuilt when the ledger has more of them."""

    __slots__ = ("_broken", "_exact", "_seen", "_table")

    def __init__(self, table: NameTable) -> None:
        self._table = table
        self._seen = 0
        self._broken: dict[str, Standing] = {}
        self._exact: set[str] = set()

    def standing(self, text: str) -> Standing | None:
        """Return the record of a text that is a spelling of a broken name and not exactly a present name."""
        ledger = self._table.ledger
        if ledger is None or "/" in text:
            return None
        if ledger.withdrawals != self._seen:
            seen = ledger.withdrawals
            self._broken, self._exact = self._read(tuple(ledger.withdrawn.items()))
            # Set last, since another thread may search meanwhile.
            self._seen = seen
        return None if text in self._exact else self._broken.get(fold(text))

    def _read(self, withdrawn: Sequence[tuple[str, Standing]]) -> tuple[dict[str, Standing], set[str]]:
        """Return the broken names by fold, in all spellings, and the texts that are exact names of successors."""
        names = [(name, standing) for name, standing in withdrawn if standing.status == "broken" and "/" not in name]
        broken: dict[str, Standing] = {}
        exact = set(self._table.exact)
        for name, standing in names:
            broken[fold(name)] = standing
            if (id := self._present(standing.id)) is not None:
                for spelling in self._spelled(name, id):
                    broken.setdefault(fold(spelling), standing)
                exact.update(self._called(id))
        # The successor may be the same tool under a new name; the old name is then one of its spellings, but broken.
        return broken, exact.difference(name for name, _ in names)

    def _spelled(self, name: str, id: ToolId) -> Iterator[str]:
        catalog = self._table.catalog
        origin, alias = catalog[id].origin, catalog.aliases.get(id.integration)
        yield name
        yield from server_spellings(name, id, origin.server, alias)

    def _called(self, id: ToolId) -> Iterator[str]:
        table, origin = self._table, self._table.catalog[id].origin
        yield from plain_spellings(id, origin.server, origin.name, table.catalog.aliases.get(id.integration))
        yield table.dialect.shown(table.server_name, table[id]) or table[id]

    def _present(self, id: ToolId | None) -> ToolId | None:
        ledger = self._table.ledger
        if id is None or ledger is None or id in self._table:
            return id
        return next((one for one in ledger.successors(id) if one in self._table), None)


class Resolution(NamedTuple):
    """The result of `resolve`: the tool (None only for ``passthrough``), the step that found it, the steps tried."""

    id: ToolId | None
    step: str
    trail: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """The reason for a tool's name: the rung (step of the assignment), the derivation, and the tool it clashed with."""

    id: ToolId
    name: str
    rung: str
    reason: str
    clash: ToolId | None = None
    shortened: bool = False

    def __str__(self) -> str:
        why = f"; {self.clash} has the better name" if self.clash else ""
        return f"{self.name} is {self.id} ({self.rung}: {self.reason}{why})"


_TRAIL: Final = ("table: found",)


def _found(id: ToolId) -> Resolution:
    return Resolution(id, "table", _TRAIL)


class NameTable(Mapping[ToolId, WireName]):
    """A total, one-to-one map ``ToolId -> wire name``, compiled once; an id can also be looked up by its text.

    It iterates in the pinned order of lists. Build it with `project`.
    """

    def __init__(
        self,
        *,
        generator: NameGenerator,
        assigned: dict[ToolId, AssignedName],
        ledger: Ledger | None,
        catalog: Catalog | None = None,
        whole: NameTable | None = None,
        made_from: object = None,
    ) -> None:
        """Create the table of a generator's catalogue, or of a part of it; ``made_from`` is for `reproject`."""
        self._whole = whole
        self.generator = generator
        self.made_from = made_from
        self.catalog = generator.catalog if catalog is None else catalog
        self.dialect: Dialect = generator.dialect
        self.style: Style = generator.style
        self.server_name = server_name = generator.server_name
        former = () if ledger is None else ledger.server_names
        self.server_names = tuple(dict.fromkeys((server_name, *former)))
        self.ledger = ledger
        self._assigned = assigned
        self._order = list(assigned)
        self._wires = {id: WireName(a.name) for id, a in assigned.items()}
        self._by_text = {str(id): id for id in assigned}
        self.exact = {a.name: _found(id) for id, a in assigned.items()}

    def changed(
        self, generator: NameGenerator, gone: Collection[ToolId], assigned: Mapping[ToolId, AssignedName]
    ) -> NameTable:
        """Return the table of a changed catalogue: without some tools, and with names of others, in pinned order.

        It costs what changed, and a copy of the indexes. Only for tables with a ledger, which knows the order.
        """
        other: NameTable = copy(self)
        for index in ("canonical", "spellings", "broken", "suggester"):
            other.__dict__.pop(index, None)
        other.generator, other.catalog = generator, generator.catalog
        other._assigned, other._wires = self._assigned.copy(), self._wires.copy()
        other._by_text, other.exact, other._order = self._by_text.copy(), self.exact.copy(), self._order.copy()
        for at in sorted((self.position(id) for id in gone), reverse=True):
            id = other._order.pop(at)
            del other._wires[id], other._by_text[str(id)], other.exact[other._assigned.pop(id).name]
        for id, one in assigned.items():
            if id not in other._wires:
                other._order.insert(bisect_right(other._order, other._place(id), key=other._place), id)
            else:
                del other.exact[other._wires[id]]
            other._assigned[id], other._wires[id], other._by_text[str(id)] = one, WireName(one.name), id
            other.exact[one.name] = _found(id)
        return other

    def position(self, id: ToolId) -> int:
        """Return where a tool of this table stands in its list. Raises `ValueError` for another one."""
        first = bisect_left(self._order, self._place(id), key=self._place)
        return self._order.index(id, first)

    def _place(self, id: ToolId) -> tuple[int, int]:
        assert self.ledger is not None  # noqa: S101 - asked of tables with a ledger only
        return self.ledger.place(id)

    @property
    def whole(self) -> NameTable:
        """The table of all tools from which this one was made with `among`; else this table."""
        return self if self._whole is None else self._whole

    def among(self, ids: Container[ToolId], ledger: Ledger | None) -> NameTable:
        """Return a table of some of the tools with the same names.

        The other tools are hidden: a name of theirs is unknown in this table, like a name that no tool has, and never
        resolves to a visible tool. ``ledger`` is a view of the names on record that the caller may know (`SeenLedger`).
        """
        assigned = {id: a for id, a in self._assigned.items() if id in ids}
        return NameTable(
            generator=self.generator,
            assigned=assigned,
            ledger=ledger,
            catalog=Catalog((self.catalog[id] for id in assigned), self.catalog.aliases),
            whole=self.whole,
        )

    def __getitem__(self, id: ToolId | str) -> WireName:
        return self._wires[self._by_text[id] if isinstance(id, str) else id]

    def __iter__(self) -> Iterator[ToolId]:
        return iter(self._order)

    def __len__(self) -> int:
        return len(self._wires)

    def __repr__(self) -> str:
        return f"<NameTable of {len(self)} tools for {self.dialect.name}, style {self.style.name}>"

    def assignments(self) -> dict[ToolId, AssignedName]:
        """Return a copy of all names with their parts and reasons."""
        return self._assigned.copy()

    def assigned(self, id: ToolId) -> AssignedName:
        """Return a tool's name with its parts and reason. Raises `KeyError`."""
        return self._assigned[id]

    def id_of(self, name: str) -> ToolId:
        """Return the tool that has exactly this name. Raises `KeyError`; `resolve` accepts more spellings."""
        id = self.exact[name].id
        assert id is not None  # noqa: S101 - only passthrough has none, and no table has that
        return id

    def explain(self, id: ToolId | str) -> Explanation:
        """Explain a tool's name. Raises `KeyError` for a tool that is not in the table."""
        key = self._by_text[id] if isinstance(id, str) else id
        a = self._assigned[key]
        return Explanation(key, a.name, a.rung, a.how, a.clash, a.shortened)

    @cached_property
    def canonical(self) -> dict[str, Resolution]:
        """The canonical spellings that need no parsing: each id, in full and without versions of 1."""
        trail = ("table: no such name", "ledger: never shown")
        return {
            text: Resolution(id, "canonical", (*trail, f"canonical: read as {id}"))
            for id in self._assigned
            for text in (id.short, str(id))
        }

    @cached_property
    def spellings(self) -> SpellingIndex:
        """The index of all other spellings of the tools, generated from the catalogue at first use."""
        return SpellingIndex(self)

    @cached_property
    def broken(self) -> BrokenNames:
        """The index of the names that a clean break removed, in all spellings."""
        return BrokenNames(self)

    @cached_property
    def suggester(self) -> NameSuggester:
        """The search for the nearest names, for errors."""
        return NameSuggester(self.exact)

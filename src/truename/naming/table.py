"""Represent a name table: each tool's wire name, and every other spelling that resolves to one tool."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping
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
    from truename.naming.style import Style

__all__ = ["Explanation", "NameTable", "Resolution", "WireName", "folded", "plain_spellings"]

Family = tuple[str, str | None, str]
# Nearly all texts have one tool, and a set for each would take more room than all else.
Index = dict[str, ToolId | set[ToolId]]
_NONE: Final[frozenset[ToolId]] = frozenset()
_ONE_SEPARATOR: Final = str.maketrans("-:. ", "____")
_RUN: Final = re.compile("__+")
# No style keeps the syntax of ids and their encodings in a name.
_ID_SYNTAX: Final = re.compile(r"[/~%]+")
_VERSIONED: Final = re.compile("@|%40")
# A name that a compiled table shows: a string becomes one here and nowhere else.
WireName = NewType("WireName", str)


def folded(text: str) -> str:
    r"""Return a text without its case, and with each run of ``-``, ``_``, ``:``, ``.`` and space as one ``_``.

    It keeps every other character, so it tells more texts apart than `truename.identity.fold`, under which names are
    claimed. A letter outside ASCII never becomes one of ASCII.

    >>> folded("Weather:get__Data"), folded("a%B"), folded("\u212a")
    ('weather_get_data', 'a%b', '\u212a')
    """
    plain = (text.lower() if text.isascii() else "".join(map(_lowered, text))).translate(_ONE_SEPARATOR)
    return _RUN.sub("_", plain) if "__" in plain else plain


def _lowered(character: str) -> str:
    lowered = character.lower()
    return character if lowered.isascii() and not character.isascii() else lowered


class _SpelledTool(NamedTuple):
    """A tool as its spellings need it; ``number`` and ``prefix`` are those of the name that it holds, if any."""

    id: ToolId
    server: str
    name: str
    held: str = ""
    prefix: str = ""
    number: int | None = None


class SpellingIndex:
    """The spellings of one table's tools, and of the absent tools that its ledger knows; built at first need."""

    def __init__(self, table: NameTable) -> None:
        self._table = table

    def prepare(self) -> None:
        """Build all indexes now: some tenths of a second for 10,000 tools, which the first search would take else."""
        for search in (self.exact, self.shown_as, self.folded):
            search("")
        self.knows_family(ToolRef.parse("a/b"))

    def exact(self, text: str) -> Collection[ToolId]:
        """Return the tools that have exactly this spelling."""
        return _of(self._exact, text)

    def shown_as(self, text: str) -> Collection[ToolId]:
        """Return the tool whose name this table's client shows as this text."""
        return _of(self._shown, text)

    def folded(self, text: str) -> Collection[ToolId]:
        """Return the tools that have a name or a spelling with the fold of this text."""
        return _of(self._folded, folded(text))

    @cached_property
    def families(self) -> dict[Family, list[ToolId]]:
        """The ids of the table by what they have in common without their versions."""
        families: defaultdict[Family, list[ToolId]] = defaultdict(list)
        for id in self._table:
            families[id.family].append(id)
        return dict(families)

    @cached_property
    def absent(self) -> frozenset[ToolId]:
        """The tools on record that are not in the table."""
        return frozenset(named.id for named in _absent(self._table))

    def knows_family(self, ref: ToolRef) -> bool:
        """Return whether some version of this tool is in the table or on record."""
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

        A further version of a tool is told apart by the number of its name, in each spelling. It has a spelling without
        the number only where no other version has it, or had it: another version's would mean this one when the other
        left, or lost its name to a redirect.
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
        """Yield the exact spellings of one tool; an adapted name of its own gives way to the tool that is called so."""
        adapted = {*_adapted(named.name)} - {named.name}
        for text in _all_spellings(named, self._table.catalog.aliases.get(named.id.integration)):
            if text not in adapted or text not in own:
                yield text

    def _read_as_another(self, text: str, id: ToolId) -> ToolId | None:
        """Return the other known tool whose id a text is, encoded or in other case: neither gets such a call."""
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
    """Yield the plain spellings, and the held name with the server's other names in the place of its prefix."""
    id, server = named.id, named.server
    yield from plain_spellings(id, server, named.name, alias)
    if named.prefix and named.held.startswith(named.prefix):
        rest = named.held[len(named.prefix) :]
        if named.number is not None:
            rest = rest.removesuffix(f"_{named.number}")
        for part in _server_parts(id, server, None):
            yield f"{part}_{rest}"


def plain_spellings(id: ToolId, server: str, name: str, alias: str | None) -> Iterator[str]:
    """Yield the tool's exact names in the other styles: its own name bare, and with its server in front.

    >>> from truename.identity import ToolId
    >>> list(plain_spellings(ToolId.parse("weather/get"), "Weather", "get", None))
    ['get', 'Weather:get', 'weather_get', 'mcp_weather__get', 'mcp_weather_get']
    """
    yield from dict.fromkeys((name, *_adapted(name)))
    yield from server_spellings(name, id, server, alias)


def server_spellings(name: str, id: ToolId, server: str, alias: str | None) -> Iterator[str]:
    """Yield a name with the tool's server in front: its own label before a colon, else as styles spell both."""
    yield f"{server}:{name}"
    adapted = _ID_SYNTAX.sub("_", name)
    own = dict.fromkeys((adapted, *_in_words(adapted)))
    for part in _server_parts(id, server, alias):
        for tool in own:
            yield f"{part}_{tool}"
            yield f"mcp_{part}__{tool}"
            yield f"mcp_{part}_{tool}"


def _loose_spellings(named: _SpelledTool, alias: str | None) -> Iterator[str]:
    """Yield what names the tool only loosely, so that nothing else takes it for its own name."""
    words = snake(named.name)
    yield named.id.tool
    yield words
    for part in _server_parts(named.id, named.server, alias):
        yield f"{part}_{words}"
        yield f"mcp_{part}_{words}"
        yield f"{part}_{named.id.tool}"


def _adapted(name: str) -> tuple[str, ...]:
    """Return what styles make of a tool's own name."""
    plain = _ID_SYNTAX.sub("_", name)
    return (*_in_words(plain), plain.replace(".", "__"))


def _in_words(name: str) -> tuple[str, ...]:
    """Return a name in the words of snake case and without dots; a transliteration is no exact name."""
    return tuple(text for text in (snake(name), name.replace(".", "_")) if text) if name.isascii() else ()


def _server_parts(id: ToolId, server: str, alias: str | None) -> Iterator[str]:
    """Yield the server's parts of names; the label itself only where it is more than the integration in capitals."""
    parts = (id.integration, snake(server), server if server.lower() != id.integration else "", alias or "")
    yield from (part for part in dict.fromkeys(parts) if part)


def _absent(table: NameTable) -> Iterator[_SpelledTool]:
    ledger = table.ledger
    if ledger is None:
        return
    servers = {tool.origin.server_id for tool in table.catalog.values()}
    held = ledger.held(table.dialect.name)
    # All at once: a thread may be writing down others.
    for id, (server, name) in tuple(ledger.origins().items()):
        # A scope of one server knows nothing of the others.
        if id not in table and (not ledger.scope or server in servers):
            shown = held.get(id, "")
            prefix, number = ledger.parts(shown)
            # The label of a server that is away is not on record; its key and its integration are.
            for label in dict.fromkeys((label_of(server), id.integration)):
                yield _SpelledTool(id, label, name, shown, prefix, number)


class BrokenNames:
    """The spellings of the broken names of one table, generated anew when the ledger has more of them."""

    __slots__ = ("_broken", "_exact", "_seen", "_table")

    def __init__(self, table: NameTable) -> None:
        self._table = table
        self._seen = 0
        self._broken: dict[str, Standing] = {}
        self._exact: set[str] = set()

    def standing(self, text: str) -> Standing | None:
        """Return what a text stands for that reads like a broken name and is not exactly a name of today."""
        ledger = self._table.ledger
        if ledger is None or "/" in text:
            return None
        if ledger.withdrawals != self._seen:
            seen = ledger.withdrawals
            self._broken, self._exact = self._read(tuple(ledger.withdrawn.items()))
            # Last of all: another thread may ask meanwhile.
            self._seen = seen
        return None if text in self._exact else self._broken.get(fold(text))

    def _read(self, withdrawn: Sequence[tuple[str, Standing]]) -> tuple[dict[str, Standing], set[str]]:
        """Return the broken names by fold, in how other styles spell them too, and what is exactly a successor's."""
        names = [(name, standing) for name, standing in withdrawn if standing.status == "broken" and "/" not in name]
        broken: dict[str, Standing] = {}
        exact = set(self._table.exact)
        for name, standing in names:
            broken[fold(name)] = standing
            if (id := self._present(standing.id)) is not None:
                for spelling in self._spelled(name, id):
                    broken.setdefault(fold(spelling), standing)
                exact.update(self._called(id))
        # The successor may be the same tool under another name: then the old one is a spelling of it, and ended.
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
    """The answer to a name: the tool (None only for ``passthrough``), the step that found it, the steps tried."""

    id: ToolId | None
    step: str
    trail: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a tool is called so: the rung of the ladder, how the name was made, and who was in the way."""

    id: ToolId
    name: str
    rung: str
    reason: str
    clash: ToolId | None = None
    shortened: bool = False

    def __str__(self) -> str:
        why = f"; {self.clash} has the name that it would have had" if self.clash else ""
        return f"{self.name} is {self.id} ({self.rung}: {self.reason}{why})"


class NameTable(Mapping[ToolId, WireName]):
    """A total, one-to-one map ``ToolId -> wire name``, compiled once; look-up also by the id's text.

    Iteration is the pinned order of lists. Made by `project`; not meant to be built by hand.
    """

    def __init__(
        self,
        *,
        catalog: Catalog,
        dialect: Dialect,
        style: Style,
        assigned: dict[ToolId, AssignedName],
        ledger: Ledger | None,
        server_name: str,
        whole: NameTable | None = None,
    ) -> None:
        self._whole = whole
        self.catalog = catalog
        self.dialect = dialect
        self.style = style
        self.server_name = server_name
        former = () if ledger is None else ledger.server_names
        self.server_names = tuple(dict.fromkeys((server_name, *former)))
        self.ledger = ledger
        self._assigned = assigned
        self._wires = {id: WireName(a.name) for id, a in assigned.items()}
        self._by_text = {str(id): id for id in assigned}
        self.exact = {a.name: Resolution(id, "table", ("table: found",)) for id, a in assigned.items()}

    @property
    def whole(self) -> NameTable:
        """The table of which this is a part; itself, where it is none."""
        return self if self._whole is None else self._whole

    def among(self, ids: Container[ToolId], ledger: Ledger | None) -> NameTable:
        """Return the table of some of the tools, under the same names.

        The others are hidden: a name that is exactly one of theirs is unknown in this table, as a name of no tool is;
        it never falls to a tool that is shown. ``ledger`` is what may be told of names on record (`SeenLedger`).
        """
        assigned = {id: a for id, a in self._assigned.items() if id in ids}
        return NameTable(
            catalog=Catalog((self.catalog[id] for id in assigned), self.catalog.aliases),
            dialect=self.dialect,
            style=self.style,
            assigned=assigned,
            ledger=ledger,
            server_name=self.server_name,
            whole=self.whole,
        )

    def __getitem__(self, id: ToolId | str) -> WireName:
        return self._wires[self._by_text[id] if isinstance(id, str) else id]

    def __iter__(self) -> Iterator[ToolId]:
        return iter(self._wires)

    def __len__(self) -> int:
        return len(self._wires)

    def __repr__(self) -> str:
        return f"<NameTable of {len(self)} tools for {self.dialect.name}, style {self.style.name}>"

    def assigned(self, id: ToolId) -> AssignedName:
        """Return the name with its parts. Raises `KeyError`."""
        return self._assigned[id]

    def id_of(self, name: str) -> ToolId:
        """Return the tool that is shown under exactly this name. Raises `KeyError`; `resolve` takes more."""
        id = self.exact[name].id
        assert id is not None  # noqa: S101 - only passthrough has none, and it is in no table
        return id

    def explain(self, id: ToolId | str) -> Explanation:
        """Say why a tool is called so. Raises `KeyError` for a tool that is not in the table."""
        key = self._by_text[id] if isinstance(id, str) else id
        a = self._assigned[key]
        return Explanation(key, a.name, a.rung, a.how, a.clash, a.shortened)

    @cached_property
    def canonical(self) -> dict[str, Resolution]:
        """The canonical spellings that need no reading: each id, whole and without its versions of 1."""
        trail = ("table: no such name", "ledger: never shown")
        return {
            text: Resolution(id, "canonical", (*trail, f"canonical: read as {id}"))
            for id in self._assigned
            for text in (id.short, str(id))
        }

    @cached_property
    def spellings(self) -> SpellingIndex:
        """All other texts by which the tools may be called, generated from the catalogue at first need."""
        return SpellingIndex(self)

    @cached_property
    def broken(self) -> BrokenNames:
        """The names that a clean break took away, in all their spellings."""
        return BrokenNames(self)

    @cached_property
    def suggester(self) -> NameSuggester:
        """What finds the nearest names for an error."""
        return NameSuggester(self.exact)

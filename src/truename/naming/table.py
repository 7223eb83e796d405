"""Represent a name table: each tool's wire name, and every other spelling that resolves to one tool."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, NewType, TypeVar, overload
from weakref import ref

from truename.catalog import Catalog
from truename.catalog.unknown import unknown_tool_id
from truename.identity import ToolId, fold
from truename.naming.spellings import SpellingIndex, plain_spellings, server_spellings
from truename.naming.suggest import NameSuggester

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from truename.dialects import Dialect
    from truename.ledger import Ledger, Standing
    from truename.naming.assign import AssignedName
    from truename.naming.candidates import NameGenerator
    from truename.naming.style import Style

__all__ = ["Explanation", "NameTable", "Passthrough", "Resolution", "WireName"]

Other = TypeVar("Other")
# A name that a table shows. Only this module creates values of the type.
WireName = NewType("WireName", str)


class BrokenNames:
    """An index of names that a clean break removed, in all spellings; rebuilt when the ledger has more of them."""

    __slots__ = ("_broken", "_exact", "_of", "_seen")

    def __init__(self, table: NameTable) -> None:
        # The table has the index: together they would be let go of only when garbage is collected.
        self._of = ref(table)
        self._seen = 0
        self._broken: dict[str, Standing] = {}
        self._exact: set[str] = set()

    @property
    def _table(self) -> NameTable:
        table = self._of()
        assert table is not None  # noqa: S101 - who asks has the table
        return table

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
    """The result of `resolve`: the tool, the step that found it, the steps tried."""

    id: ToolId
    step: str
    trail: tuple[str, ...] = ()


class Passthrough(NamedTuple):
    """The result of ``resolve(..., on_unknown="passthrough")`` for a name that no tool has: it is used unchanged."""

    trail: tuple[str, ...]
    id: None = None
    step: Literal["passthrough"] = "passthrough"


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


_INDEXES: Final = ("canonical", "spellings", "broken", "suggester")
_TRAIL: Final = ("table: found",)


def _found(id: ToolId) -> Resolution:
    return Resolution(id, "table", _TRAIL)


class NameTable(Mapping[ToolId, WireName]):
    """A total, one-to-one map ``ToolId -> wire name``, compiled once; an id can also be looked up by its text.

    It iterates in the fixed order of lists. Build it with `project`.
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
        self.revision: int | None
        """The revision of the ledger when the table was made. At each later one its names mean the same tools."""
        self.revision = whole.revision if whole is not None else (None if ledger is None else ledger.revision)
        self._assigned = assigned
        self._order = list(assigned)
        # As WireName, which is called here for each of thousands.
        self._wires: dict[ToolId, WireName] = {id: a.name for id, a in assigned.items()}  # type: ignore[misc]
        self._by_text = {str(id): id for id in assigned}
        self.exact = {a.name: _found(id) for id, a in assigned.items()}

    def changed(
        self, generator: NameGenerator, gone: Collection[ToolId], assigned: Mapping[ToolId, AssignedName]
    ) -> NameTable:
        """Return the table of a changed catalogue: without some tools, and with names of new ones, in fixed order.

        It costs what changed, and a copy of the indexes. Only for tables with a ledger, which knows the order.
        """
        other: NameTable = copy(self)
        known: dict[str, Any] = {index: other.__dict__.pop(index, None) for index in _INDEXES}
        other.generator, other.catalog = generator, generator.catalog
        other.revision = None if self.ledger is None else self.ledger.revision
        if not gone and not assigned:
            # All names are the same, and so are these indexes of them.
            other.__dict__ |= {name: known[name] for name in ("canonical", "suggester") if known[name] is not None}
            if known["spellings"] is not None:
                other.__dict__["spellings"] = known["spellings"].changed(other, (), ())
            return other
        other._assigned, other._wires = self._assigned.copy(), self._wires.copy()
        other._by_text, other.exact, other._order = self._by_text.copy(), self.exact.copy(), self._order.copy()
        for at in sorted((self.position(id) for id in gone), reverse=True):
            id = other._order.pop(at)
            del other._wires[id], other._by_text[str(id)], other.exact[other._assigned.pop(id).name]
        for id, one in assigned.items():
            other._order.insert(bisect_right(other._order, other._place(id), key=other._place), id)
            other._assigned[id], other._wires[id], other._by_text[str(id)] = one, WireName(one.name), id
            other.exact[one.name] = _found(id)
        if known["spellings"] is not None:
            other.__dict__["spellings"] = known["spellings"].changed(other, gone, assigned.keys())
        if known["suggester"] is not None:
            names = [one.name for one in assigned.values()]
            other.__dict__["suggester"] = known["suggester"].changed([self._wires[id] for id in gone], names)
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
        assigned = {id: self._assigned[id] for id in self._order if id in ids}
        return NameTable(
            generator=self.generator,
            assigned=assigned,
            ledger=ledger,
            catalog=Catalog((self.catalog[id] for id in assigned), self.catalog.aliases),
            whole=self.whole,
        )

    def __getitem__(self, id: ToolId | str) -> WireName:
        key = self._by_text.get(id) if isinstance(id, str) else id
        name = None if key is None else self._wires.get(key)
        if name is None:
            raise unknown_tool_id(id, self._wires)
        return name

    def __contains__(self, id: object) -> bool:
        return id in self._by_text if isinstance(id, str) else id in self._wires

    @overload
    def get(self, id: ToolId | str, default: None = None, /) -> WireName | None: ...

    @overload
    def get(self, id: ToolId | str, default: Other, /) -> WireName | Other: ...

    def get(self, id: ToolId | str, default: object = None, /) -> object:
        """Return the name of a tool, ``default`` if it is not in the table."""
        key = self._by_text.get(id) if isinstance(id, str) else id
        return default if key is None else self._wires.get(key, default)

    def _present(self, id: ToolId | str) -> ToolId:
        """Return the id of a tool of this table. Raises `UnknownToolId`."""
        if id not in self:
            raise unknown_tool_id(id, self._wires)
        return self._by_text[id] if isinstance(id, str) else id

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
        """Return a tool's name with its parts and reason. Raises `UnknownToolId`."""
        return self._assigned[self._present(id)]

    def id_of(self, name: str) -> ToolId:
        """Return the tool that has exactly this name. Raises `KeyError`; `resolve` accepts more spellings."""
        return self.exact[name].id

    def explain(self, id: ToolId | str) -> Explanation:
        """Explain a tool's name. Raises `UnknownToolId` for a tool that is not in the table."""
        key = self._present(id)
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

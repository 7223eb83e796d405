"""NameTable: the projection, a total and one-to-one map between tools and the names that one client sees."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, NewType

from truename.catalog import Catalog
from truename.identity import ToolId
from truename.naming.spellings import BrokenNames, SpellingIndex
from truename.naming.suggest import NameSuggester

if TYPE_CHECKING:
    from truename.dialects import Dialect
    from truename.ledger import Ledger
    from truename.naming.assign import AssignedName
    from truename.naming.style import Style

__all__ = ["Explanation", "NameTable", "Resolution", "WireName"]


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


# A name that a compiled table shows: a string becomes one here and nowhere else.
WireName = NewType("WireName", str)


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

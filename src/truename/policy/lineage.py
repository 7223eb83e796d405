"""What a tool certainly or perhaps was before its server renamed it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from truename.identity import ToolId

if TYPE_CHECKING:
    from truename.catalog import Tool

__all__ = ["NO_LINEAGE", "Lineage", "LineageOf"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Lineage:
    """The former tools of one tool, by decisions about its server's list; two of them are equal only if identical.

    ``same`` are ids that somebody accepted as this tool's former ones: what configurations say of them is said of it,
    and no person's approval is. ``perhaps`` are ids of tools of its server that it may be, and of those in ``same``:
    what was denied to them is denied to it. ``judged_as`` are such tools that rules may judge otherwise than this one.
    ``redirected`` has the ids that an operator redirected to tools of ``perhaps``, directly or through others: what
    was denied to these is denied to those. ``separate`` are former ids whose approvals do not count for the tool, since
    a rename by the server is in between; all of ``same`` are among them.
    """

    same: tuple[ToolId, ...] = ()
    perhaps: frozenset[ToolId] = frozenset()
    judged_as: tuple[Tool, ...] = ()
    redirected: Mapping[ToolId, tuple[ToolId, ...]] = field(default_factory=lambda: MappingProxyType({}))
    separate: frozenset[ToolId] = frozenset()

    @property
    def denied_as(self) -> frozenset[ToolId]:
        """All ids whose denials count for the tool: those of ``perhaps``, and the ids redirected to them."""
        if not self.redirected:
            return self.perhaps
        return self.perhaps.union(*self.redirected.values())

    def formerly(self, former: Tool) -> tuple[ToolId, ...]:
        """Return the ids that an operator redirected to a tool of ``judged_as``, without those in ``same``."""
        return tuple(one for one in self.redirected.get(former.id, ()) if one not in self.same)

    def of_former(self, former: Tool, id: ToolId) -> Lineage:
        """Return the lineage by which a tool of ``judged_as`` is judged for the tool with this id.

        Of one that was accepted as this tool, what configurations say of the present id is said, too.
        """
        if former.id not in self.same:
            return NO_LINEAGE
        return Lineage(same=(id, *(one for one in self.same if one != former.id)))


NO_LINEAGE: Final = Lineage()
"""The lineage of a tool of which nothing is known."""

LineageOf = Callable[[ToolId], Lineage]


def no_lineage(_: ToolId) -> Lineage:
    """Return the lineage of a tool where no server renamed any."""
    return NO_LINEAGE

"""The page of budgets: how much of each client's limits the names and the number of tools take up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from truename import dialects
from truename.console.page import Page, PageRoute

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from truename.catalog import Catalog
    from truename.console.page import PageRequest
    from truename.identity import ToolId
    from truename.naming import NameTable

__all__ = ["ROUTES"]

_MOST_GROUPS: Final = 200


@dataclass(frozen=True, kw_only=True)
class Budget:
    """The limits of one client, and what is used of them; None where the client has no limit that is known."""

    client: str
    title: str
    longest: int
    room: int | None
    tools: int
    max_tools: int | None

    @property
    def used(self) -> float:
        """The larger share of the two limits; above 1 if one is exceeded."""
        pairs = ((self.longest, self.room), (self.tools, self.max_tools))
        return max((used / max(most, 1) for used, most in pairs if most is not None), default=0.0)


async def _show(asked: PageRequest) -> Page:
    table, server = asked.names.table(), asked.gateway.config.settings.server_name
    budgets, shared, near = await asked.computed(
        lambda: (list(_budgets(table, server)), _shared(asked.gateway.catalog), asked.near.of(table))
    )
    values = {
        "budgets": sorted(budgets, key=lambda one: (-one.used, one.title.lower())),
        "shared": shared[:_MOST_GROUPS],
        "shared_count": len(shared),
        "near": near[:_MOST_GROUPS],
        "near_count": len(near),
    }
    return Page(template="budgets.html", title="Budgets", values=values)


def _budgets(table: NameTable, server: str) -> Iterator[Budget]:
    longest = max(map(len, table.values()), default=0)
    for dialect in dialects.table():
        room = dialect.room(server)
        if room is not None or dialect.max_tools is not None:
            yield Budget(
                client=dialect.name,
                title=dialect.title,
                longest=longest,
                room=room,
                tools=len(table),
                max_tools=dialect.max_tools,
            )


def _shared(catalog: Catalog) -> list[tuple[str, Sequence[ToolId]]]:
    """Return the names that several servers give their tools, with these tools."""
    return [(name, [tool.id for tool in tools]) for name, tools in sorted(catalog.conflicts().items())]


ROUTES: Final = (PageRoute("GET", "/budgets", "viewer", _show),)

"""The page of budgets: how much of each client's limits the names and the number of tools take up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from anyio import to_thread

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
    def is_over(self) -> bool:
        """Whether a limit is exceeded."""
        return (self.room is not None and self.longest > self.room) or (
            self.max_tools is not None and self.tools > self.max_tools
        )


async def _show(asked: PageRequest) -> Page:
    table, server = asked.names.table(), asked.gateway.config.settings.server_name
    budgets, shared, near = await to_thread.run_sync(
        lambda: (list(_budgets(table, server)), _shared(asked.gateway.catalog), _near(table))
    )
    values = {
        "budgets": sorted(budgets, key=lambda one: (not one.is_over, one.title.lower())),
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


def _near(table: NameTable) -> list[tuple[str, str, ToolId, ToolId]]:
    """Return pairs of shown names that differ in one letter, or in nothing but letters that look alike."""
    # Two names with one letter left out or changed are equal without that letter: no pair has to be compared.
    without: dict[tuple[int, str], list[str]] = {}
    for name in table.values():
        for at in range(len(name)):
            without.setdefault((at, name[:at] + name[at + 1 :]), []).append(name)
    pairs = {
        (one, other)
        for names in without.values()
        if 1 < len(names) <= _MOST_GROUPS
        for place, one in enumerate(names)
        for other in names[place + 1 :]
        if not (one[-1:].isdigit() and other[-1:].isdigit())
    }
    return [(one, other, table.id_of(one), table.id_of(other)) for one, other in sorted(pairs)]


ROUTES: Final = (PageRoute("GET", "/budgets", "viewer", _show),)

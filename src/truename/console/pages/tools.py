"""The pages of tools: all of them with the names that clients see, and one with its definition and history."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from anyio import to_thread

from truename.console.page import Page, PageRoute, RefusedError
from truename.errors import InvalidToolId
from truename.identity import ToolId, fold

if TYPE_CHECKING:
    from collections.abc import Sequence

    from truename.console.page import PageRequest
    from truename.gateway import Gateway

__all__ = ["ROUTES"]

_PAGE_SIZE: Final = 100
_LONGEST_QUERY: Final = 200


@dataclass(frozen=True, kw_only=True)
class ToolRow:
    """A tool in the table. ``state`` is ``listed``, or why clients are not shown it."""

    id: str
    server: str
    own_name: str
    name: str
    state: str
    shares_name: bool
    found_by: str


async def _show(asked: PageRequest) -> Page:
    query, server = asked.query.get("q", "")[:_LONGEST_QUERY], asked.query.get("server", "")
    number = max(1, int(text) if (text := asked.query.get("page", "1")).isdecimal() and len(text) < 6 else 1)
    rows = await to_thread.run_sync(lambda: _rows(asked.gateway))
    found = [row for row in rows if (not server or row.server == server) and fold(query) in row.found_by]
    start = (number - 1) * _PAGE_SIZE
    values = {
        "query": query,
        "server": server,
        "servers": list(asked.gateway.registry.pool),
        "rows": found[start : start + _PAGE_SIZE],
        "count": len(found),
        "all": len(rows),
        "page": number,
        "pages": max(1, -(-len(found) // _PAGE_SIZE)),
    }
    return Page(template="tools.html", title="Tools", values=values)


def _rows(gateway: Gateway) -> Sequence[ToolRow]:
    registry, names = gateway.registry, gateway.table()
    hidden = registry.vetting.hidden
    rows = []
    for id, tool in registry.catalog.items():
        name = names.get(id)
        state = "pending review" if id in hidden else "no legal name" if name is None else "listed"
        rows.append(
            ToolRow(
                id=str(id),
                server=tool.origin.server,
                own_name=tool.origin.name,
                name=name or "",
                state=state,
                shares_name=tool.origin.has_conflict,
                found_by=fold(f"{id} {tool.origin.server} {tool.origin.name} {name or ''}"),
            )
        )
    return rows


async def _one(asked: PageRequest) -> Page:
    text = asked.path["id"]
    try:
        id = ToolId.parse(text)
    except InvalidToolId as error:
        raise RefusedError(404, str(error)) from error
    registry = asked.gateway.registry
    tool = registry.catalog.get(id)
    if tool is None:
        raise RefusedError(404, f"There is no tool {id} now. Its history is on the page of its name.")
    names = asked.gateway.table()
    values = {
        "tool": tool,
        "name": names.get(id),
        "why": str(names.explain(id)) if id in names else "No name of the style is legal for all clients.",
        "calls": asked.calls.matching(lambda call: call.id == id, 20),
    }
    return Page(template="tool.html", title=str(id), values=values)


ROUTES: Final = (PageRoute("GET", "/tools", "viewer", _show), PageRoute("GET", "/tools/{id:path}", "viewer", _one))

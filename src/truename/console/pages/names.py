"""The page to try a name: which tool it leads to for a client, step by step, or why it leads to none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from truename import dialects
from truename.console.name_previews import MAIN_CLIENT
from truename.console.page import Page, PageRoute
from truename.errors import AmbiguousName, ResolutionError, RetiredName, UnknownDialect, UnknownTool
from truename.naming import resolve

if TYPE_CHECKING:
    from collections.abc import Iterator

    from truename.console.page import PageRequest
    from truename.naming import NameTable

__all__ = ["ROUTES"]

_LONGEST: Final = 5_000


async def _show(asked: PageRequest) -> Page:
    name, client = asked.query.get("name", "")[:_LONGEST], asked.query.get("client", MAIN_CLIENT)
    values: dict[str, Any] = {
        "name": name,
        "client": client,
        "clients": [(one.name, one.title) for one in dialects.table()],
        "found": None,
        "error": "",
        "trail": (),
        "candidates": (),
        "history": (),
    }
    if name:
        values |= await asked.computed(lambda: _tried(asked, name, client))
    return Page(template="names.html", title="Try a name", values=values)


def _tried(asked: PageRequest, name: str, client: str) -> dict[str, Any]:
    try:
        table = asked.names.table(client)
    except UnknownDialect as error:
        return {"error": str(error)}
    events = asked.gateway.registry.ledger.history(name)
    history = [event.plain() for event in events]
    try:
        found = resolve(name, table)
    except ResolutionError as error:
        near = list(_near(error, table))
        return {"error": str(error), "trail": error.trail, "candidates": near, "history": history}
    tool = table.catalog[found.id]
    shown = {"id": str(found.id), "server": tool.origin.server, "own_name": tool.origin.name, "step": found.step}
    why = table.explain(found.id)
    return {"found": {**shown, "name": why.name, "why": str(why)}, "trail": found.trail, "history": history}


def _near(error: ResolutionError, table: NameTable) -> Iterator[dict[str, str]]:
    """Yield the names that the error speaks of, with their tools."""
    names: tuple[str, ...] = ()
    if isinstance(error, UnknownTool):
        names = error.suggestions
    elif isinstance(error, AmbiguousName):
        names = error.candidates
    elif isinstance(error, RetiredName) and error.successor is not None:
        names = (error.successor,)
    for name in names:
        hit = table.exact.get(name)
        yield {"name": name, "id": "" if hit is None else str(hit.id)}


ROUTES: Final = (PageRoute("GET", "/names", "viewer", _show),)

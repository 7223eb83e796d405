"""Catalogues, callers and calls for the tests of policy, in as few words as a story needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from truename import Catalog, project
from truename.policy import Caller, bound_call

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename import Ledger, NameTable
    from truename.policy import Call

__all__ = ["ADA", "call", "search_of", "shown", "tool"]

ADA: Final = Caller(principal="ada", agent="writer", session="monday")


def tool(name: str, description: str = "", **annotations: bool) -> dict[str, Any]:
    """Return a tools/list entry."""
    entry: dict[str, Any] = {"name": name, "inputSchema": {"type": "object"}}
    if description:
        entry["description"] = description
    return {**entry, "annotations": annotations} if annotations else entry


def shown(
    servers: Mapping[str, list[Any]], style: str = "prefixed", ledger: Ledger | None = None, dialect: str = "openai"
) -> NameTable:
    """Return the names that a client sees of these servers."""
    catalog = Catalog.from_mcp(servers, bound=ledger.bindings() if ledger else None)
    return project(catalog, dialect, style=style, ledger=ledger)


def call(
    names: NameTable,
    name: str,
    id: str = "c1",
    arguments: object = "{}",
    caller: Caller = ADA,
    *,
    endpoints: Mapping[str, str] | None = None,
) -> Call:
    """Return a call as an adapter makes it."""
    return bound_call(name=name, call_id=id, arguments=arguments, names=names, caller=caller, endpoints=endpoints)


def search_of(
    server: str, id: str = "c1", arguments: object = "{}", caller: Caller = ADA, description: str = ""
) -> Call:
    """Return a call of a server's tool "search", which is shown under just that name."""
    return call(shown({server: [tool("search", description)]}, "on-conflict"), "search", id, arguments, caller)

"""The pages of tools: all of them with the names that clients see, and one with its definition and history."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from truename import dialects
from truename.console.name_previews import MAIN_CLIENT
from truename.console.page import Page, PageRoute
from truename.console.refusals import RefusedError
from truename.errors import InvalidToolId
from truename.gateway.views.profiled import Limits
from truename.identity import ToolId, fold
from truename.policy.call import Caller, claims_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from truename.catalog import Tool
    from truename.console.page import PageRequest
    from truename.gateway import Gateway
    from truename.naming import NameTable
    from truename.policy import Policy

__all__ = ["ROUTES"]

_PAGE_SIZE: Final = 100
_LONGEST: Final = 200
_MOST_CLIENTS: Final = 6
_MOST_CALLS: Final = 20
_OF_CALLERS: Final = ("principals", "agents", "clients", "platforms", "apps")
_STATES: Final = ("listed", "pending review", "no legal name")


async def _show(asked: PageRequest) -> Page:
    query, server = asked.query.get("q", "")[:_LONGEST], asked.query.get("server", "")[:_LONGEST]
    state, clients = asked.query.get("state", ""), _clients(asked.query.getlist("client"))
    shared = asked.query.get("shared", "") == "1"
    text = asked.query.get("page", "1")
    number = max(1, int(text)) if text.isdecimal() and len(text) < 6 else 1

    def values() -> dict[str, Any]:
        rows = asked.tools.rows(asked.gateway, asked.names.table())
        wanted = fold(query)
        found = [
            row
            for row in rows
            if wanted in row.key
            and server in {"", row.server}
            and state in {"", row.state}
            and (row.shares_name or not shared)
        ]
        pages = max(1, -(-len(found) // _PAGE_SIZE))
        page = min(number, pages)
        start = (page - 1) * _PAGE_SIZE
        tables = [(dialects.get(client), asked.names.table(client)) for client in clients]
        return {
            "page": page,
            "rows": found[start : start + _PAGE_SIZE],
            "count": len(found),
            "all": len(rows),
            "pages": pages,
            "tables": tables,
        }

    shown = await asked.computed(values)
    fixed = {
        "query": query,
        "server": server,
        "state": state,
        "chosen": clients,
        "shared": shared,
        "servers": list(asked.gateway.registry.pool),
        "states": _STATES,
        "clients": [(one.name, one.title) for one in dialects.table() if one.name != MAIN_CLIENT],
    }
    return Page(template="tools.html", title="Tools", values={**fixed, **shown})


def _clients(given: list[str]) -> list[str]:
    """Return the clients whose names were asked for, each once; the newest choice comes first in the form."""
    wanted = dict.fromkeys(one for one in given if one and one != MAIN_CLIENT)
    return list(wanted)[:_MOST_CLIENTS]


async def _one(asked: PageRequest) -> Page:
    try:
        id = ToolId.parse(asked.path["id"])
    except InvalidToolId as error:
        raise RefusedError(404, str(error)) from error
    values = await asked.computed(lambda: _details(asked, id))
    return Page(template="tool.html", title=str(id), values=values)


def _details(asked: PageRequest, id: ToolId) -> dict[str, Any]:
    gateway, registry = asked.gateway, asked.gateway.registry
    ledger, tool, table = registry.ledger, gateway.catalog.get(id), asked.names.table()
    held = list(dict.fromkeys(ledger.held_anywhere(id, dialects.names(older=True))))
    if tool is None and not held and ledger.origin_of(id) is None:
        raise RefusedError(404, f"There is no tool {id}, and there was none. The page of tools lists all.")
    book, origin = registry.vetting.book, ledger.origin_of(id)
    server = tool.origin.server_id if tool is not None else origin[0] if origin is not None else ""
    return {
        "id": id,
        "tool": tool,
        "origin": origin,
        "registry_name": gateway.config.registered.get(server, ""),
        "name": table.get(id),
        "why": str(table.explain(id)) if id in table else "",
        "review": registry.vetting.hidden.get(id),
        "pin": book.pins().get(str(id)),
        "seen": list(book.about(str(id)).seen.values()),
        "names": [event.plain() for name in held for event in ledger.history(name)],
        "successors": [str(one) for one in ledger.successors(id)],
        "profiles": _profiles(gateway, table, id),
        "rules": [] if tool is None else list(_rules(gateway.config.settings.policy, tool)),
        "default": _default(gateway.config.settings.policy),
        "calls": asked.calls.matching(lambda call: call.id == id, _MOST_CALLS),
    }


@dataclass(frozen=True, kw_only=True)
class RuleRow:
    """A rule of the policy about a tool, and about which callers it is; "" for all."""

    name: str
    outcome: str
    callers: str
    reason: str


def _rules(policy: Policy | None, tool: Tool) -> Iterator[RuleRow]:
    """Yield the rules about a tool, whoever calls it."""
    for rule in () if policy is None else policy.rules:
        whoever = replace(rule, principals=(), agents=(), clients=(), platforms=(), apps=())
        if any(whoever.applies(tool.id, tool.origin, claims, Caller()) for claims in claims_of(tool)):
            given = [f"{word} {', '.join(getattr(rule, word))}" for word in _OF_CALLERS if getattr(rule, word)]
            yield RuleRow(name=rule.name, outcome=rule.outcome, callers="; ".join(given), reason=rule.reason)


def _default(policy: Policy | None) -> str:
    return "" if policy is None else policy.default


def _profiles(gateway: Gateway, table: NameTable, id: ToolId) -> list[str] | None:
    """Return the profiles that have a tool; None without any profiles, where everybody sees it."""
    profiles = gateway.config.settings.profiles
    if not profiles:
        return None
    return [name for name in profiles if id in gateway.registry.sight(Limits((name,), None)).part(table, "tools")]


ROUTES: Final = (PageRoute("GET", "/tools", "viewer", _show), PageRoute("GET", "/tools/{id:path}", "viewer", _one))

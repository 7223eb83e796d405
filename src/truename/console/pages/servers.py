"""The page of servers: state, transport, circuit breaker, calls, and what went wrong last."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Final

from truename.console.page import Page, PageRoute

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from truename.console.page import PageRequest
    from truename.gateway.upstream.upstream import Upstream
    from truename.policy.call import CallEvent

__all__ = ["ROUTES"]


@dataclass(frozen=True, kw_only=True)
class ServerRow:
    """A server in the table; times are in seconds, None where nothing was measured."""

    key: str
    state: str
    transport: str
    tools: int
    started_in: float | None
    problem: str
    circuit: str
    running: int
    waiting: int
    calls: int
    failed: int
    median: float | None
    slowest: float | None


async def _show(asked: PageRequest) -> Page:
    calls = _by_server(asked.calls)
    rows = [_row(upstream, calls.get(upstream.key, ())) for upstream in asked.gateway.registry.pool.values()]
    values = {"rows": rows, "calls_seen": asked.calls.count}
    return Page(template="servers.html", title="Servers", values=values)


def _by_server(calls: Iterable[CallEvent]) -> Mapping[str, list[CallEvent]]:
    found: defaultdict[str, list[CallEvent]] = defaultdict(list)
    for call in calls:
        if call.origin is not None:
            found[call.origin.server].append(call)
    return found


def _row(upstream: Upstream, calls: Iterable[CallEvent]) -> ServerRow:
    seconds = sorted(call.seconds for call in calls)
    return ServerRow(
        key=upstream.key,
        state=upstream.state,
        transport="stdio" if upstream.config.url is None else "HTTP",
        tools=len(upstream.tools or ()),
        started_in=upstream.seconds,
        problem=str(upstream.problem or ""),
        circuit=upstream.calls.breaker.state,
        running=upstream.running.count,
        waiting=upstream.calls.waiting,
        calls=len(seconds),
        failed=sum(call.outcome in {"failed", "protocol_error"} for call in calls),
        median=median(seconds) if seconds else None,
        slowest=seconds[-1] if seconds else None,
    )


ROUTES: Final = (PageRoute("GET", "/servers", "viewer", _show),)

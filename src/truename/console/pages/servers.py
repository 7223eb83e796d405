"""The pages of servers: all of them with their state and calls, and one with its errors and its program's output."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Final

from truename.console.page import Page, PageRoute
from truename.console.refusals import RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from truename.console.page import PageRequest
    from truename.gateway.upstream.upstream import Upstream
    from truename.policy.call import CallEvent

__all__ = ["ROUTES"]

_MOST_CALLS: Final = 20
_LAST_LINES: Final = 40


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
    restarts: int
    running: int
    waiting: int
    calls: int
    failed: int
    median: float | None
    slowest: float | None
    registry_name: str


@dataclass(frozen=True, kw_only=True)
class FailureRow:
    """A failure of a server, when it was seen last, and how many times in a row it was."""

    at: float
    times: int
    text: str


async def _show(asked: PageRequest) -> Page:
    calls = await asked.computed(lambda: _by_server(asked.calls))
    rows = [_row(asked, upstream, calls.get(upstream.key, ())) for upstream in asked.gateway.registry.pool.values()]
    values = {"rows": rows, "calls_seen": asked.calls.count}
    return Page(template="servers.html", title="Servers", values=values)


async def _one(asked: PageRequest) -> Page:
    key = asked.path["key"]
    upstream = asked.gateway.registry.pool.get(key)
    if upstream is None:
        raise RefusedError(404, f"There is no server {key!r}. The page of servers lists all.")
    hidden, history = asked.secrets.hidden, upstream.history
    lines = history.tail.lines(_LAST_LINES)
    calls, output = await asked.computed(
        lambda: (_by_server(asked.calls).get(key, []), [hidden(line) for line in lines])
    )
    values = {
        "row": _row(asked, upstream, calls),
        "is_program": upstream.config.url is None,
        "failures": [FailureRow(at=one.at, times=one.times, text=hidden(str(one.error))) for one in history.failures],
        "output": output,
        "calls": calls[:_MOST_CALLS],
    }
    return Page(template="server.html", title=f"Server {key}", values=values)


def _by_server(calls: Iterable[CallEvent]) -> Mapping[str, list[CallEvent]]:
    found: defaultdict[str, list[CallEvent]] = defaultdict(list)
    for call in calls:
        if call.origin is not None:
            found[call.origin.server].append(call)
    return found


def _row(asked: PageRequest, upstream: Upstream, calls: Iterable[CallEvent]) -> ServerRow:
    seconds = sorted(call.seconds for call in calls)
    return ServerRow(
        key=upstream.key,
        state=upstream.state,
        transport="stdio" if upstream.config.url is None else "SSE" if upstream.config.type == "sse" else "HTTP",
        tools=len(upstream.tools or ()),
        started_in=upstream.seconds,
        problem=asked.secrets.hidden(str(upstream.problem or "")),
        circuit=upstream.calls.breaker.state,
        restarts=upstream.history.restarts,
        running=upstream.running.count,
        waiting=upstream.calls.waiting,
        calls=len(seconds),
        failed=sum(call.outcome in {"failed", "protocol_error"} for call in calls),
        median=median(seconds) if seconds else None,
        slowest=seconds[-1] if seconds else None,
        # What the configuration says now, also while a server goes on under its earlier entry.
        registry_name=asked.gateway.config.registered.get(upstream.key, ""),
    )


ROUTES: Final = (PageRoute("GET", "/servers", "viewer", _show), PageRoute("GET", "/servers/{key:path}", "viewer", _one))

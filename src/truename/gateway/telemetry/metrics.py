"""Metrics for Prometheus: calls as they end, and how everything stands when it is asked.

No label holds what a client or a server may say: servers are the configuration's keys, codes are known ones, tools are
counted by their id only as far as the settings allow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from truename.errors import CODES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from truename.config.telemetry import Telemetry
    from truename.gateway.events import Event, OnEvent
    from truename.gateway.hub import Hub
    from truename.gateway.telemetry.auditing import Auditing
    from truename.policy.call_event import CallEvent

__all__ = ["Metrics"]

_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
_JSONRPC: Final = ("-32700", "-32600", "-32601", "-32602", "-32603", "-32000", "-32001", "-32002", "-32042")
_KNOWN: Final = frozenset({"", "cancelled", *CODES, *_JSONRPC})
_OTHER: Final = "other"
_BREAKER: Final = {"closed": 0, "half-open": 1, "open": 2}

Seen = tuple[str, str, str]


class Metrics:
    """All metrics of one gateway, in a registry of their own."""

    media_type: Final = CONTENT_TYPE_LATEST

    def __init__(self, settings: Telemetry) -> None:
        self.registry = CollectorRegistry()
        self._calls = Counter(
            "truename_calls", "Calls that are over.", ("server", "outcome", "code"), registry=self.registry
        )
        self._seconds = Histogram(
            "truename_call_seconds", "How long calls took.", ("server",), buckets=_SECONDS, registry=self.registry
        )
        self._tools = Counter(
            "truename_tool_calls", "Calls that are over, by tool.", ("tool", "outcome"), registry=self.registry
        )
        self._starts = Counter(
            "truename_server_starts", "How often a server became ready.", ("server",), registry=self.registry
        )
        self._losses = Counter(
            "truename_server_losses", "How often a server was lost.", ("server",), registry=self.registry
        )
        self._most_tools = settings.metrics_tools
        self._known_tools: set[str] = set()
        # Finding a child by its labels costs more than counting.
        self._counted: dict[Seen, Callable[[], None]] = {}
        self._timed: dict[str, Callable[[float], None]] = {}

    def join(self, hub: Hub, audit: Auditing) -> None:
        """Be told of calls, and see how everything stands."""
        hub.accounts.listen(self.called)
        self.registry.register(_Standing(hub, audit))

    def hearing(self, on_event: OnEvent) -> OnEvent:
        """Return a listener that counts what happens to servers, and tells ``on_event``."""

        def happened(event: Event) -> None:
            if event.kind == "ready":
                self._starts.labels(event.server).inc()
            elif event.kind == "lost":
                self._losses.labels(event.server).inc()
            on_event(event)

        return happened

    def called(self, event: CallEvent) -> None:
        """Count a call that is over."""
        server = "" if event.origin is None else event.origin.server
        seen = server, event.outcome, event.code if event.code in _KNOWN else _OTHER
        if (count := self._counted.get(seen)) is None:
            count = self._counted[seen] = self._calls.labels(*seen).inc
        count()
        if (time := self._timed.get(server)) is None:
            time = self._timed[server] = self._seconds.labels(server).observe
        time(event.seconds)
        if self._most_tools and event.id is not None:
            self._tools.labels(self._tool(str(event.id)), event.outcome).inc()

    def _tool(self, id: str) -> str:
        if id in self._known_tools:
            return id
        if len(self._known_tools) >= self._most_tools:
            return _OTHER
        self._known_tools.add(id)
        return id

    def exposition(self, sessions: int) -> bytes:
        """Return all of it in the text format; ``sessions`` are open now over HTTP."""
        own = CollectorRegistry()
        own.register(_Once("truename_sessions", "Sessions that are open over HTTP.", sessions))
        return generate_latest(self.registry) + generate_latest(own)


class _Once(Collector):
    def __init__(self, name: str, what: str, value: float) -> None:
        self._family = GaugeMetricFamily(name, what, value=value)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        yield self._family


class _Standing(Collector):
    """How everything stands at the moment at which it is asked."""

    def __init__(self, hub: Hub, audit: Auditing) -> None:
        self._hub = hub
        self._audit = audit

    def describe(self) -> list[GaugeMetricFamily]:
        """Describe nothing: what is there depends on the servers."""
        return []

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield how servers, lists, names, definitions and the journal stand."""
        hub, vetting = self._hub, self._hub.vetting
        yield GaugeMetricFamily("truename_requests_running", "Requests that run now.", value=hub.traffic.running)
        yield GaugeMetricFamily("truename_tools", "Tools of all servers.", value=len(hub.catalog))
        yield GaugeMetricFamily("truename_ledger_bindings", "Ids in the ledger.", value=len(hub.ledger.bindings()))
        yield GaugeMetricFamily("truename_tools_hidden", "Tools that wait for a review.", value=len(vetting.hidden))
        waiting = sum(one.word == "waiting" for one in vetting.book.seen().values())
        yield GaugeMetricFamily("truename_definitions_waiting", "Definitions not reviewed yet.", value=waiting)
        yield from self._servers()
        if (recorder := self._audit.recorder) is not None:
            yield GaugeMetricFamily("truename_audit_waiting", "Records not on the disk yet.", value=recorder.waiting)
            yield GaugeMetricFamily("truename_audit_dropped", "Records that were lost.", value=recorder.dropped)
            well = 1 if recorder.is_well else 0
            yield GaugeMetricFamily("truename_audit_ok", "Whether the journal can be written.", value=well)

    def _servers(self) -> Iterator[GaugeMetricFamily]:
        label = ["server"]
        up = GaugeMetricFamily("truename_server_up", "Whether a server can be called.", labels=label)
        tools = GaugeMetricFamily("truename_server_tools", "Tools that a server lists.", labels=label)
        running = GaugeMetricFamily("truename_server_running", "Calls that run there.", labels=label)
        waiting = GaugeMetricFamily("truename_server_waiting", "Calls that wait for a place there.", labels=label)
        breaker = GaugeMetricFamily(
            "truename_server_breaker", "Whether it is left alone: 0 no, 1 tried again, 2 yes.", labels=label
        )
        for key, upstream in self._hub.fleet.items():
            up.add_metric([key], 1 if upstream.state in {"ready", "resting"} else 0)
            tools.add_metric([key], len(upstream.tools or ()))
            running.add_metric([key], upstream.running.count)
            waiting.add_metric([key], upstream.calls.waiting)
            breaker.add_metric([key], _BREAKER[upstream.calls.breaker.state])
        yield from (up, tools, running, waiting, breaker)

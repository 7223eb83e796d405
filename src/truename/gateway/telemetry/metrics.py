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
from truename.gateway.telemetry.standing import Standing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from truename.config.telemetry import Telemetry
    from truename.gateway.events import Event, OnEvent
    from truename.gateway.hub import Hub
    from truename.gateway.telemetry.auditing import Auditing
    from truename.gateway.upstream.showing import Shown
    from truename.policy.call_event import CallEvent

__all__ = ["Metrics"]

_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
_JSONRPC: Final = ("-32700", "-32600", "-32601", "-32602", "-32603", "-32000", "-32001", "-32002", "-32042")
_KNOWN: Final = frozenset({"", "cancelled", *CODES, *_JSONRPC})
_OTHER: Final = "other"

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

    def join(self, hub: Hub, audit: Auditing, shown: Shown) -> None:
        """Be told of calls, and see how everything stands."""
        hub.accounts.listen(self.called)
        self.registry.register(Standing(hub, audit, shown))

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

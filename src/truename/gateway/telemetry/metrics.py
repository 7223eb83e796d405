"""Metrics: calls and requests as they end, and how everything stands when it is asked; in one registry, for all.

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
from truename.gateway.protocol.sdk import SPEC_CLIENT_METHODS
from truename.gateway.telemetry.standing import GatewayStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from truename.config.telemetry import Telemetry
    from truename.gateway.events import GatewayEvent, OnEvent
    from truename.gateway.hub import Hub
    from truename.gateway.telemetry.auditing import Auditing
    from truename.gateway.upstream.fleet import Fleet
    from truename.policy.call import CallEvent

__all__ = ["Metrics"]

# As OpenTelemetry's conventions for MCP have them, and one below: many calls of a server on this machine are shorter.
_SECONDS: Final = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
_JSONRPC: Final = ("-32700", "-32600", "-32601", "-32602", "-32603", "-32000", "-32001", "-32002", "-32042")
_KNOWN: Final = frozenset({"", "cancelled", *CODES, *_JSONRPC})
_OTHER: Final = "other"
_OPERATION: Final = ("mcp_method_name", "error_type", "server")
_CALL: Final = "tools/call"
_FAILED: Final = "tool_error"
# What clients ask for and servers are asked; whatever else somebody sends is one.
_METHODS: Final = frozenset(
    (
        *SPEC_CLIENT_METHODS,
        *("tasks/get", "tasks/result", "tasks/list", "tasks/cancel", "tasks/update"),
        *("notifications/initialized", "notifications/cancelled", "notifications/progress"),
        "notifications/roots/list_changed",
    )
)
# The conventions' word for a method or an error that has no name of its own.
_ANY: Final = "_OTHER"

Seen = tuple[str, str, str]


class Metrics:
    """All metrics of one gateway, in a registry of their own."""

    media_type: Final = CONTENT_TYPE_LATEST

    def __init__(self, settings: Telemetry) -> None:
        self.registry = CollectorRegistry()
        self._calls = Counter(
            "truename_calls", "Finished calls.", ("server", "outcome", "code"), registry=self.registry
        )
        self._answered = Histogram(
            "mcp_server_operation_duration_seconds",
            "Duration of requests from clients.",
            _OPERATION,
            registry=self.registry,
            buckets=_SECONDS,
        )
        self._sent = Histogram(
            "mcp_client_operation_duration_seconds",
            "Duration of requests to servers.",
            _OPERATION,
            registry=self.registry,
            buckets=_SECONDS,
        )
        self._tools = Counter(
            "truename_tool_calls", "Finished calls by tool.", ("tool", "outcome"), registry=self.registry
        )
        self._suspected = Counter(
            "truename_suspected_answers", "Results that violate a rule.", ("server", "rule"), registry=self.registry
        )
        self._starts = Counter("truename_server_starts", "Starts of a server.", ("server",), registry=self.registry)
        self._losses = Counter(
            "truename_server_losses", "Lost connections to a server.", ("server",), registry=self.registry
        )
        self._most_tools = settings.metrics_tools
        self._known_tools: set[str] = set()
        # Finding a child by its labels costs more than counting.
        self._counted: dict[Seen, tuple[Callable[[], None], Callable[[float], None]]] = {}
        self._timed: dict[Seen, Callable[[float], None]] = {}
        self.sessions: Callable[[], int] = int
        self.registry.register(_Sessions(self))

    def join(self, hub: Hub, audit: Auditing, fleet: Fleet) -> None:
        """Be told of calls and other requests, and see how everything stands."""
        hub.accounts.listen(self.called)
        hub.accounts.timer = self.answered
        fleet.operations.tell = self.sent
        self.registry.register(GatewayStatus(hub, audit, fleet.shown))

    def hearing(self, on_event: OnEvent) -> OnEvent:
        """Return a listener that counts what happens to servers, and tells ``on_event``."""

        def happened(event: GatewayEvent) -> None:
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
        if (known := self._counted.get(seen)) is None:
            error = _FAILED if event.outcome == _FAILED else _error(event.code)
            time = self._answered.labels(_CALL, error, server).observe
            known = self._counted[seen] = self._calls.labels(*seen).inc, time
        known[0]()
        known[1](event.seconds)
        for rule in event.findings:
            self._suspected.labels(server, rule).inc()
        if self._most_tools and event.id is not None:
            self._tools.labels(self._tool(str(event.id)), event.outcome).inc()

    def answered(self, method: str, seconds: float, error: str) -> None:
        """Count a client's request that was answered, and was no call of a tool."""
        self._answered.labels(_method(method), _error(error), "").observe(seconds)

    def sent(self, server: str, method: str, seconds: float, error: str) -> None:
        """Count a request to a server that is over."""
        seen = _method(method), error if error == _FAILED else _error(error), server
        if (known := self._timed.get(seen)) is None:
            known = self._timed[seen] = self._sent.labels(*seen).observe
        known(seconds)

    def _tool(self, id: str) -> str:
        if id in self._known_tools:
            return id
        if len(self._known_tools) >= self._most_tools:
            return _OTHER
        self._known_tools.add(id)
        return id

    def exposition(self) -> bytes:
        """Return all of it in the text format."""
        return generate_latest(self.registry)


def _method(method: str) -> str:
    return method if method in _METHODS else _ANY


def _error(code: str) -> str:
    return code if code in _KNOWN else _ANY


class _Sessions(Collector):
    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def describe(self) -> list[GaugeMetricFamily]:
        """Describe nothing: it is there when it is asked."""
        return []

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the one number."""
        value = self._metrics.sessions()
        yield GaugeMetricFamily("truename_sessions", "Sessions that are open over HTTP.", value=value)

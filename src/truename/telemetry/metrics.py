"""Metrics: calls and requests as they end, and the gateway's state whenever it is read; all in one registry.

No label holds text of a client or a server: servers are keys of the configuration, codes are known ones, tools are
counted by their id only as far as the settings allow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from truename.errors import CODES
from truename.telemetry.status import ServerStatus, StateChange

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from truename.policy.call import CallEvent
    from truename.telemetry.status import StatusSource

__all__ = ["Metrics"]

# As OpenTelemetry's conventions for MCP have them, and one below: many calls of a server on this machine are shorter.
_SECONDS: Final = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
_JSONRPC: Final = ("-32700", "-32600", "-32601", "-32602", "-32603", "-32000", "-32001", "-32002", "-32042")
_KNOWN: Final = frozenset({"", "cancelled", *CODES, *_JSONRPC})
_OTHER: Final = "other"
_OPERATION: Final = ("mcp_method_name", "error_type", "server")
_CALL: Final = "tools/call"
_FAILED: Final = "tool_error"
# The methods of the protocol; all others are counted together.
_METHODS: Final = frozenset(
    (
        *("initialize", "server/discover", "ping", "logging/setLevel", "completion/complete"),
        *("tools/list", "tools/call", "prompts/list", "prompts/get"),
        *("resources/list", "resources/read", "resources/templates/list"),
        *("skills/list", "skills/get", "resources/directory/read"),
        *("resources/subscribe", "resources/unsubscribe", "subscriptions/listen"),
        *("tasks/get", "tasks/result", "tasks/list", "tasks/cancel", "tasks/update"),
        *("notifications/initialized", "notifications/cancelled", "notifications/progress"),
        "notifications/roots/list_changed",
    )
)
# The value that the conventions have for a method or an error outside the known ones.
_ANY: Final = "_OTHER"
_BREAKER: Final = {"closed": 0, "half-open": 1, "open": 2}
_OF_A_SERVER: Final[tuple[tuple[str, str, Callable[[ServerStatus], int]], ...]] = (
    ("truename_server_up", "Whether a server can be called.", lambda one: one.is_up),
    ("truename_server_tools", "Tools that a server lists.", lambda one: one.tools),
    ("truename_server_running", "Calls that run at a server.", lambda one: one.calls_running),
    ("truename_server_waiting", "Calls that wait for a free slot at a server.", lambda one: one.calls_waiting),
    (
        "truename_server_breaker",
        "State of the circuit breaker: 0 closed, 1 half-open, 2 open.",
        lambda one: _BREAKER[one.breaker],
    ),
    ("truename_logins_required", "People who have to log in at a server.", lambda one: one.logins_required),
)

Labels = tuple[str, str, str]
Change = TypeVar("Change", bound=StateChange)


class Metrics:
    """All metrics of one gateway, in a registry of their own.

    ``most_tools`` bounds how many tools have a counter of their own. ``sessions`` returns how many are open over HTTP,
    ``certificate_expires`` (None without TLS towards clients) when the gateway's certificate ends, as a Unix time, and
    ``replicas`` (None for a gateway that has no others beside it) how many gateways of its state are alive.
    """

    media_type: Final = CONTENT_TYPE_LATEST

    def __init__(self, most_tools: int = 0) -> None:
        self.registry = CollectorRegistry()
        self._calls = Counter(
            "truename_calls", "Calls of tools that ended.", ("server", "outcome", "code"), registry=self.registry
        )
        self._answered = Histogram(
            "mcp_server_operation_duration_seconds",
            "How long clients' requests took, until they were answered.",
            _OPERATION,
            registry=self.registry,
            buckets=_SECONDS,
        )
        self._sent = Histogram(
            "mcp_client_operation_duration_seconds",
            "How long requests to servers took, until they answered.",
            _OPERATION,
            registry=self.registry,
            buckets=_SECONDS,
        )
        self._tools = Counter(
            "truename_tool_calls",
            "Calls of tools that ended, by tool id; beyond telemetry.metrics_tools tools the id is other.",
            ("tool", "outcome"),
            registry=self.registry,
        )
        self._suspected = Counter(
            "truename_suspected_answers",
            "Answers in which a rule found a suspected prompt injection (`trust.results`).",
            ("server", "rule"),
            registry=self.registry,
        )
        self._starts = Counter(
            "truename_server_starts", "How often a server became ready.", ("server",), registry=self.registry
        )
        self._losses = Counter(
            "truename_server_losses",
            "How often a connection to a server, or its program, was lost.",
            ("server",),
            registry=self.registry,
        )
        self._most_tools = most_tools
        self._known_tools: set[str] = set()
        # Finding a child by its labels costs more than counting.
        self._counted: dict[Labels, tuple[Callable[[], None], Callable[[float], None]]] = {}
        self._timed: dict[Labels, Callable[[float], None]] = {}
        self.sessions: Callable[[], int] = int
        self.certificate_expires: Callable[[], float] | None = None
        self.replicas: Callable[[], int] | None = None
        self.registry.register(_HttpServer(self))

    def watch(self, source: StatusSource) -> None:
        """Report the state of this gateway, too, each time the metrics are read."""
        self.registry.register(_StatusCollector(source))

    def counting(self, on_event: Callable[[Change], None]) -> Callable[[Change], None]:
        """Return a listener that counts how often servers became ready or were lost, and calls ``on_event``."""

        def count(event: Change) -> None:
            if event.kind == "ready":
                self._starts.labels(event.server).inc()
            elif event.kind == "lost":
                self._losses.labels(event.server).inc()
            on_event(event)

        return count

    def record_call(self, event: CallEvent) -> None:
        """Count a call that is over."""
        server = "" if event.origin is None else event.origin.server
        labels = server, event.outcome, event.code if event.code in _KNOWN else _OTHER
        if (known := self._counted.get(labels)) is None:
            error = _FAILED if event.outcome == _FAILED else _error(event.code)
            time = self._answered.labels(_CALL, error, server).observe
            known = self._counted[labels] = self._calls.labels(*labels).inc, time
        known[0]()
        known[1](event.seconds)
        for rule in event.findings:
            self._suspected.labels(server, rule).inc()
        if self._most_tools and event.id is not None:
            self._tools.labels(self._tool(str(event.id)), event.outcome).inc()

    def record_request(self, method: str, seconds: float, error: str) -> None:
        """Count an answered request of a client that is not a call of a tool."""
        self._answered.labels(_method(method), _error(error), "").observe(seconds)

    def record_server_request(self, server: str, method: str, seconds: float, error: str) -> None:
        """Count a request to a server that is over."""
        labels = _method(method), error if error == _FAILED else _error(error), server
        if (known := self._timed.get(labels)) is None:
            known = self._timed[labels] = self._sent.labels(*labels).observe
        known(seconds)

    def _tool(self, id: str) -> str:
        if id in self._known_tools:
            return id
        if len(self._known_tools) >= self._most_tools:
            return _OTHER
        self._known_tools.add(id)
        return id

    def exposition(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        return generate_latest(self.registry)


def _method(method: str) -> str:
    return method if method in _METHODS else _ANY


def _error(code: str) -> str:
    return code if code in _KNOWN else _ANY


class _HttpServer(Collector):
    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def describe(self) -> list[GaugeMetricFamily]:
        return []

    def collect(self) -> Iterator[GaugeMetricFamily]:
        value: float = self._metrics.sessions()
        yield GaugeMetricFamily("truename_sessions", "Sessions that are open over HTTP.", value=value)
        if self._metrics.certificate_expires is not None:
            name = "truename_tls_certificate_expiry_timestamp_seconds"
            value = self._metrics.certificate_expires()
            yield GaugeMetricFamily(name, "Unix time at which the certificate for clients expires.", value=value)
        if self._metrics.replicas is not None:
            text = "Gateways of this state that are alive, this one included."
            yield GaugeMetricFamily("truename_replicas", text, value=self._metrics.replicas())


class _StatusCollector(Collector):
    def __init__(self, source: StatusSource) -> None:
        self._source = source

    def describe(self) -> list[GaugeMetricFamily]:
        # Which metrics there are depends on the settings and the servers.
        return []

    def collect(self) -> Iterator[GaugeMetricFamily]:
        now = self._source.status()
        rows: list[tuple[str, str, float | None]] = [
            ("truename_requests_running", "Requests that run now.", now.requests_running),
            ("truename_tools", "Tools of all servers.", now.tools),
            ("truename_ledger_bindings", "Tool ids in the ledger.", now.ledger_bindings),
            (
                "truename_tools_hidden",
                "Tools that are hidden, because their definitions are pending or rejected.",
                now.tools_hidden,
            ),
            (
                "truename_definitions_waiting",
                "Definitions of tools and servers that wait for a review.",
                now.definitions_waiting,
            ),
            ("truename_approvals_waiting", "Calls that wait for a decision.", now.approvals_waiting),
        ]
        if now.audit is not None:
            rows += [
                ("truename_audit_waiting", "Audit records that are not on the disk yet.", now.audit.waiting),
                ("truename_audit_lag_seconds", "How long the oldest of these audit records has waited.", now.audit.lag),
                ("truename_audit_dropped", "Audit records that were lost.", now.audit.dropped),
                (
                    "truename_audit_head_lag_seconds",
                    "How long the state database has lacked the head (the last hash) of the audit log.",
                    now.audit.heads_behind,
                ),
            ]
        rows.append(("truename_quotas_ok", "Whether the state database grants shares of the quotas.", now.quotas_ok))
        rows.append(("truename_audit_ok", "Whether the audit log can be written.", now.audit_ok))
        yield from (GaugeMetricFamily(name, text, value=value) for name, text, value in rows if value is not None)
        for name, text, value in _OF_A_SERVER:
            family = GaugeMetricFamily(name, text, labels=["server"])
            for server in now.servers:
                family.add_metric([server.key], value(server))
            yield family

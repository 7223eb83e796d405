"""How everything stands at the moment at which it is asked: metrics that nobody counts, for they are there."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from truename.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from truename.gateway.hub import Hub
    from truename.gateway.telemetry.auditing import Auditing
    from truename.gateway.upstream.showing import LastChallenges

__all__ = ["GatewayStatus"]

_BREAKER: Final = {"closed": 0, "half-open": 1, "open": 2}


class GatewayStatus(Collector):
    """How everything stands at the moment at which it is asked."""

    def __init__(self, hub: Hub, audit: Auditing, shown: LastChallenges) -> None:
        self._hub = hub
        self._audit = audit
        self._shown = shown

    def describe(self) -> list[GaugeMetricFamily]:
        """Describe nothing: what is there depends on the servers."""
        return []

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield how servers, lists, names, definitions and the journal stand."""
        hub, vetting = self._hub, self._hub.vetting
        yield GaugeMetricFamily("truename_requests_running", "Requests in progress.", value=hub.traffic.running)
        yield GaugeMetricFamily("truename_tools", "Tools of all servers.", value=len(hub.catalog))
        yield GaugeMetricFamily("truename_ledger_bindings", "Ids in the ledger.", value=len(hub.ledger.bindings()))
        yield GaugeMetricFamily("truename_tools_hidden", "Tools pending review.", value=len(vetting.hidden))
        waiting = sum(one.word == "waiting" for one in vetting.book.seen().values())
        yield GaugeMetricFamily("truename_definitions_waiting", "Definitions not reviewed yet.", value=waiting)
        with suppress(StoreError):  # what can't be read is not told; the calls that need it say why
            pending = hub.approving.requests.waiting
            yield GaugeMetricFamily("truename_approvals_waiting", "Calls pending approval.", value=pending)
        yield from self._servers()
        if (recorder := self._audit.recorder) is not None:
            yield GaugeMetricFamily("truename_audit_waiting", "Audit records not yet on disk.", value=recorder.waiting)
            yield GaugeMetricFamily("truename_audit_lag_seconds", "Age of the oldest such record.", value=recorder.lag)
            yield GaugeMetricFamily("truename_audit_dropped", "Audit records that were lost.", value=recorder.dropped)
        # One that could not be opened at the start has no recorder, and is not well.
        if (is_well := self._audit.is_well) is not None:
            yield GaugeMetricFamily("truename_audit_ok", "Whether the audit log can be written.", value=int(is_well))

    def _servers(self) -> Iterator[GaugeMetricFamily]:
        label = ["server"]
        up = GaugeMetricFamily("truename_server_up", "Whether a server can be called.", labels=label)
        tools = GaugeMetricFamily("truename_server_tools", "Tools that a server lists.", labels=label)
        running = GaugeMetricFamily("truename_server_running", "Calls in progress on a server.", labels=label)
        waiting = GaugeMetricFamily("truename_server_waiting", "Calls queued for a server.", labels=label)
        breaker = GaugeMetricFamily(
            "truename_server_breaker", "Circuit breaker of a server: 0 closed, 1 half-open, 2 open.", labels=label
        )
        logins = GaugeMetricFamily("truename_logins_required", "Users who have to log in to a server.", labels=label)
        required = self._shown.logins_required()
        for key, upstream in self._hub.fleet.items():
            logins.add_metric([key], required.get(key, 0))
            up.add_metric([key], 1 if upstream.state in {"ready", "resting"} else 0)
            tools.add_metric([key], len(upstream.tools or ()))
            running.add_metric([key], upstream.running.count)
            waiting.add_metric([key], upstream.calls.waiting)
            breaker.add_metric([key], _BREAKER[upstream.calls.breaker.state])
        yield from (up, tools, running, waiting, breaker, logins)

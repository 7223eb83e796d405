"""The state of a running gateway, collected from its parts for metrics."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from truename.errors import StoreError
from truename.telemetry.status import AuditStatus, GatewayStatus, ServerStatus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from truename.gateway.auditing import Auditing
    from truename.gateway.registry import Registry
    from truename.gateway.upstream.showing import LastChallenges

__all__ = ["RegistryStatus"]


class RegistryStatus:
    """Collects the state of a registry, its servers and the audit log (`StatusSource`)."""

    def __init__(self, registry: Registry, audit: Auditing, shown: LastChallenges) -> None:
        self._registry = registry
        self._audit = audit
        self._shown = shown

    def status(self) -> GatewayStatus:
        """Return the state at this moment."""
        registry, vetting, recorder = self._registry, self._registry.vetting, self._audit.recorder
        approvals: int | None = None
        with suppress(StoreError):  # the calls that need the queue say why it cannot be read
            approvals = registry.approving.requests.waiting
        return GatewayStatus(
            requests_running=registry.drain_tracker.running,
            tools=len(registry.catalog),
            tools_hidden=len(vetting.hidden),
            ledger_bindings=registry.ledger.identities,
            definitions_waiting=vetting.book.waiting,
            approvals_waiting=approvals,
            audit_ok=self._audit.is_well,
            audit=None
            if recorder is None
            else AuditStatus(
                waiting=recorder.waiting,
                lag=recorder.lag,
                dropped=recorder.dropped,
                heads_behind=self._audit.heads_behind,
            ),
            quotas_ok=registry.quotas.is_well,
            servers=tuple(self._servers()),
        )

    def _servers(self) -> Iterator[ServerStatus]:
        logins = self._shown.logins_required()
        for key, upstream in self._registry.pool.items():
            yield ServerStatus(
                key=key,
                is_up=upstream.state in {"ready", "resting"},
                tools=len(upstream.tools or ()),
                calls_running=upstream.running.count,
                calls_waiting=upstream.calls.waiting,
                breaker=upstream.calls.breaker.state,
                logins_required=logins.get(key, 0),
            )

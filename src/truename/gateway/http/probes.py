"""What machines ask over HTTP to see how the gateway is: whether it lives, whether it is ready, its metrics."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from starlette.responses import JSONResponse, Response

from truename.catalog.globs import fits
from truename.errors import StoreError
from truename.gateway.protocol.callers import admitted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.types import Receive, Scope, Send

    from truename.config import Settings
    from truename.gateway.gateway import Gateway
    from truename.gateway.http.workers import WorkerGroup
    from truename.policy.principal import Principal

__all__ = ["READ", "Probes"]

READ: Final = frozenset({"GET", "HEAD"})
_NOT_FOR_YOU: Final = (
    "The metrics cover all servers, also those that profiles hide. Name the readers in telemetry.metrics_for."
)
LONGEST_SILENCE: Final = 5.0
"""Seconds without an answer of the state database after which the probe says so; it is asked every two seconds."""

_NO_STORE: Final = {"cache-control": "no-store"}


class Probes:
    """The answers to probes and to Prometheus. No answer of a probe names a server or a file."""

    def __init__(self, gateway: Gateway, workers: WorkerGroup | None = None) -> None:
        self._gateway = gateway
        self._workers = workers

    async def alive(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer ``/healthz``: the process runs."""
        await JSONResponse({"status": "ok"}, headers=_NO_STORE)(scope, receive, send)

    async def ready(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer ``/readyz``: whether calls should be sent here now, with the reasons why not.

        A state database that does not answer is a warning and no reason: calls of names in memory go on, and all
        gateways of the state are in the same case, so a balancer that left them out would end those calls too.
        """
        reasons = list(_reasons(self._gateway))
        said = {"status": "not ready" if reasons else "ready", "reasons": reasons}
        if self._gateway.state_silence > LONGEST_SILENCE:
            said["warnings"] = ["the state database does not answer"]
        await JSONResponse(said, 503 if reasons else 200, headers=_NO_STORE)(scope, receive, send)

    def is_public(self) -> bool:
        """Return whether everybody may read the metrics."""
        settings = self._gateway.config.settings.telemetry
        return settings.metrics and settings.metrics_public

    async def metrics(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer ``/metrics``; 404 where there are none to be shown, 403 for a caller who may not read them."""
        answer = await self._metrics_for(None if self.is_public() else admitted(scope).principal)
        await answer(scope, receive, send)

    async def _metrics_for(self, principal: Principal | None) -> Response:
        found, settings = self._gateway.metrics, self._gateway.config.settings
        if found is None or not settings.telemetry.metrics:
            return JSONResponse({"error": "Metrics are disabled: set telemetry.metrics."}, 404)
        if principal is not None and not _may_read(settings, principal):
            return JSONResponse({"error": _NOT_FOR_YOU}, 403)
        said = found.exposition() if self._workers is None else await self._workers.exposition(found)
        return Response(said, media_type=found.media_type, headers=_NO_STORE)


def _reasons(gateway: Gateway) -> Iterator[str]:
    """Yield why no calls should be sent here now. A server that failed is no reason: the others can be called."""
    registry = gateway.registry
    if registry.drain_tracker.is_ending:
        yield "ending"
    if not all(upstream.settled.is_set() for upstream in registry.pool.values()):
        yield "servers are starting"
    path = gateway.config.state_location().path
    if path is not None and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
        yield "the state cannot be written"
    if gateway.config.settings.audit.required:
        try:
            gateway.audit.require()
        except StoreError:
            yield "the audit log cannot be written"


def _may_read(settings: Settings, principal: Principal) -> bool:
    readers = settings.telemetry.metrics_for
    # They name servers that a profile hides.
    return any(fits(glob, principal.key) for glob in readers) if readers else not settings.profiles

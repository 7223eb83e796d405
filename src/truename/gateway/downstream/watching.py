"""What machines ask over HTTP to see how the gateway is: whether it lives, whether it is ready, its metrics."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from starlette.responses import JSONResponse, Response

from truename.catalog.globs import fits
from truename.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from truename.config import Settings
    from truename.config.telemetry import Telemetry
    from truename.gateway.gateway import Gateway
    from truename.policy.principal import Principal

__all__ = ["METRICS", "is_open", "metrics", "probe"]

METRICS: Final = "/metrics"
_ALIVE: Final = "/healthz"
_READY: Final = "/readyz"
_NOT_FOR_YOU: Final = (
    "The metrics cover all servers, also those that profiles hide. Name the readers in telemetry.metrics_for."
)
_NO_STORE: Final = {"cache-control": "no-store"}


def probe(path: str, gateway: Gateway) -> Response | None:
    """Return what answers a probe, whoever sends it; None for other paths. No answer names a server or a file."""
    if path == _ALIVE:
        return JSONResponse({"status": "ok"}, headers=_NO_STORE)
    if path != _READY:
        return None
    reasons = list(_reasons(gateway))
    said = {"status": "not ready" if reasons else "ready", "reasons": reasons}
    return JSONResponse(said, 503 if reasons else 200, headers=_NO_STORE)


def _reasons(gateway: Gateway) -> Iterator[str]:
    """Yield why no calls should be sent here now. A server that failed is no reason: the others can be called."""
    registry = gateway.registry
    if registry.drain_tracker.is_closed:
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


def is_open(path: str, settings: Telemetry) -> bool:
    """Tell whether a path is for the metrics, and those are for everybody."""
    return path == METRICS and settings.metrics and settings.metrics_public


def _may_read(settings: Settings, principal: Principal) -> bool:
    readers = settings.telemetry.metrics_for
    # They name servers that a profile hides.
    return any(fits(glob, principal.key) for glob in readers) if readers else not settings.profiles


def metrics(gateway: Gateway, principal: Principal | None = None) -> Response:
    """Return the metrics; 404 where there are none to be shown, 403 for who may not read them (None: anybody may)."""
    found = gateway.metrics
    if found is None or not gateway.config.settings.telemetry.metrics:
        return JSONResponse({"error": "Metrics are disabled: set telemetry.metrics."}, 404)
    if principal is not None and not _may_read(gateway.config.settings, principal):
        return JSONResponse({"error": _NOT_FOR_YOU}, 403)
    return Response(found.exposition(), media_type=found.media_type, headers=_NO_STORE)

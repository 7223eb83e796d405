"""Metrics that are sent: what ``/metrics`` shows, by OTLP over HTTP, as the ``OTEL_*`` variables say.

Nothing is counted for it: each time the one registry is read, and put into the form of OpenTelemetry.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

import anyio
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics.export import MetricExportResult, MetricsData, ResourceMetrics, ScopeMetrics
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from truename.gateway.background import background
from truename.gateway.telemetry.aside import LAST, aside
from truename.gateway.telemetry.instruments import Reading

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from prometheus_client import CollectorRegistry

__all__ = ["pushing"]

log: Final = logging.getLogger("truename.gateway")

_SERVICE: Final = "OTEL_SERVICE_NAME"
_EXPORTER: Final = "OTEL_METRICS_EXPORTER"
_INTERVAL: Final = "OTEL_METRIC_EXPORT_INTERVAL"
_TIMEOUT: Final = "OTEL_METRIC_EXPORT_TIMEOUT"
_TEMPORALITY: Final = "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE"
_OWN: Final = "truename"
# Those that ask for less memory have counters and histograms that say only what is new, as do those that ask for it.
_DELTA: Final = frozenset({"DELTA", "LOWMEMORY"})


@asynccontextmanager
async def pushing(registry: CollectorRegistry, server_name: str) -> AsyncIterator[None]:
    """Send what a registry holds every minute while the block lasts, and once at its end.

    Interval, endpoint, headers, temporality and the resource are the environment's: ``OTEL_METRIC_EXPORT_INTERVAL``,
    ``OTEL_EXPORTER_OTLP_ENDPOINT``, and so on. ``OTEL_METRICS_EXPORTER=none`` sends nothing.
    """
    if os.environ.get(_EXPORTER, "otlp").strip().lower() == "none":
        yield
        return
    push = _Push(registry, server_name)
    try:
        async with background() as tasks:
            tasks.start_soon(push.go_on)
            yield
    finally:
        with anyio.CancelScope(shield=True), anyio.move_on_after(LAST):
            await push.once()
        push.close()


class _Push:
    def __init__(self, registry: CollectorRegistry, server_name: str) -> None:
        resource = Resource.create({} if os.environ.get(_SERVICE) else {SERVICE_NAME: server_name})
        self._registry = registry
        self._resource, self._scope = resource, InstrumentationScope(_OWN)
        self._reading = Reading(time.time_ns(), is_delta=os.environ.get(_TEMPORALITY, "").strip().upper() in _DELTA)
        self._every = _milliseconds(_INTERVAL, 60_000)
        self._timeout = _milliseconds(_TIMEOUT, 30_000)
        self._exporter = OTLPMetricExporter()
        self._is_well = True
        # What was given up on at the end may be on its way still.
        self._turn = threading.Lock()

    async def go_on(self) -> None:
        while True:
            await anyio.sleep(self._every / 1_000)
            await self.once()

    async def once(self) -> None:
        """Read here, where nothing changes meanwhile; send beside the loop. Raises nothing."""
        is_well = False
        try:
            data = self._measured()
            is_well = await asyncio.wrap_future(aside(partial(self._send, data)))
        except Exception:  # whatever is wrong with them, or with who takes them: calls go on
            log.debug("metrics", exc_info=True)
        if self._is_well and not is_well:
            log.warning("metrics can't be sent by OTLP; retrying every %g seconds", self._every / 1_000)
        self._is_well = is_well

    def _measured(self) -> MetricsData:
        found = self._reading.of(self._registry.collect(), time.time_ns())
        scope = ScopeMetrics(scope=self._scope, metrics=found, schema_url="")
        return MetricsData([ResourceMetrics(resource=self._resource, scope_metrics=[scope], schema_url="")])

    def _send(self, data: MetricsData) -> bool:
        with self._turn:
            return self._exporter.export(data, self._timeout) is MetricExportResult.SUCCESS

    def close(self) -> None:
        """Break off what is tried again and again."""
        self._exporter.shutdown()


def _milliseconds(name: str, otherwise: float) -> float:
    try:
        found = float(os.environ.get(name) or otherwise)
    except ValueError:
        found = 0.0
    if not 0 < found < float("inf"):
        log.warning("%s is not a number of milliseconds; using %g", name, otherwise)
        return otherwise
    return found

"""Export of metrics by OTLP over HTTP: what ``/metrics`` shows, as the ``OTEL_*`` variables say.

Nothing is counted twice: each export reads the one registry and converts it to the form of OpenTelemetry: names with
dots, units apart, labels by the conventions.

Source: OpenTelemetry's semantic conventions for MCP (Development), and its rules of compatibility with Prometheus.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections import defaultdict
from contextlib import asynccontextmanager
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import anyio
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricExportResult,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from truename.telemetry.daemon import SHUTDOWN_TIMEOUT, in_daemon_thread

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping

    from prometheus_client import CollectorRegistry
    from prometheus_client import Metric as Family
    from prometheus_client.samples import Sample

__all__ = ["MetricConverter", "exporting"]

log: Final = logging.getLogger("truename.gateway")

_SERVICE: Final = "OTEL_SERVICE_NAME"
_EXPORTER: Final = "OTEL_METRICS_EXPORTER"
_INTERVAL: Final = "OTEL_METRIC_EXPORT_INTERVAL"
_TIMEOUT: Final = "OTEL_METRIC_EXPORT_TIMEOUT"
_TEMPORALITY: Final = "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE"
_OWN: Final = "truename"
# With these preferences counters and histograms hold differences.
_DELTA: Final = frozenset({"DELTA", "LOWMEMORY"})
_LABELS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "mcp_method_name": "mcp.method.name",
        "error_type": "error.type",
        "server": "truename.tool.server",
        "tool": "truename.tool.id",
        "outcome": "truename.call.outcome",
        "code": "truename.call.code",
    }
)
_SECONDS: Final = "_seconds"
_CALL: Final = "tools/call"
# Prometheus keeps neither the least nor the largest value; OTLP may leave them out.
_UNKNOWN: Final[Any] = None
_Key = tuple[str, tuple[tuple[str, str], ...]]
_Bars = tuple[list[int], float]


@asynccontextmanager
async def exporting(registry: CollectorRegistry, server_name: str) -> AsyncIterator[None]:
    """Export the metrics of a registry every minute while the block lasts, and once at its end.

    Interval, endpoint, headers, temporality and the resource are the environment's: ``OTEL_METRIC_EXPORT_INTERVAL``,
    ``OTEL_EXPORTER_OTLP_ENDPOINT``, and so on. ``OTEL_METRICS_EXPORTER=none`` exports nothing.
    """
    if os.environ.get(_EXPORTER, "otlp").strip().lower() == "none":
        yield
        return
    export = _PeriodicExport(registry, server_name)
    task = asyncio.create_task(export.repeat())
    try:
        yield
    finally:
        task.cancel()
        with anyio.CancelScope(shield=True), anyio.move_on_after(SHUTDOWN_TIMEOUT):
            await export.once()
        export.close()


class _PeriodicExport:
    def __init__(self, registry: CollectorRegistry, server_name: str) -> None:
        resource = Resource.create({} if os.environ.get(_SERVICE) else {SERVICE_NAME: server_name})
        self._registry = registry
        self._resource, self._scope = resource, InstrumentationScope(_OWN)
        self._converter = MetricConverter(
            time.time_ns(), is_delta=os.environ.get(_TEMPORALITY, "").strip().upper() in _DELTA
        )
        self._every = _milliseconds(_INTERVAL, 60_000)
        self._timeout = _milliseconds(_TIMEOUT, 30_000)
        self._exporter = OTLPMetricExporter()
        self._is_well = True
        # At the end an export that was given up may still run.
        self._turn = threading.Lock()

    async def repeat(self) -> None:
        while True:
            await anyio.sleep(self._every / 1_000)
            await self.once()

    async def once(self) -> None:
        """Read the registry in the loop, where nothing changes meanwhile, and send in a thread. Raises nothing."""
        is_well = False
        try:
            found = self._converter.convert(self._registry.collect(), time.time_ns())
            scope = ScopeMetrics(scope=self._scope, metrics=found, schema_url="")
            data = MetricsData([ResourceMetrics(resource=self._resource, scope_metrics=[scope], schema_url="")])
            is_well = await asyncio.wrap_future(in_daemon_thread(partial(self._send, data)))
        except Exception:  # whatever is wrong with the metrics or the collector: calls go on
            log.debug("metrics", exc_info=True)
        if self._is_well and not is_well:
            log.warning("Cannot send metrics by OTLP; the next attempt is in %g seconds.", self._every / 1_000)
        self._is_well = is_well

    def _send(self, data: MetricsData) -> bool:
        with self._turn:
            return self._exporter.export(data, self._timeout) is MetricExportResult.SUCCESS

    def close(self) -> None:
        """End the retries of an export that still runs."""
        self._exporter.shutdown()


def _milliseconds(name: str, otherwise: float) -> float:
    try:
        found = float(os.environ.get(name) or otherwise)
    except ValueError:
        found = 0.0
    if not 0 < found < float("inf"):
        log.warning("%s is not a number of milliseconds; the default of %g applies.", name, otherwise)
        return otherwise
    return found


class MetricConverter:
    """Converts metrics of Prometheus, counted since ``began`` (in nanoseconds since 1970), to those of OpenTelemetry.

    With ``is_delta`` counters and histograms hold the difference to the last conversion.
    """

    def __init__(self, began: int, *, is_delta: bool = False) -> None:
        self._began = began
        self._is_delta = is_delta
        self._counted: dict[_Key, float] = {}
        self._bars: dict[_Key, _Bars] = {}

    @property
    def _temporality(self) -> AggregationTemporality:
        return AggregationTemporality.DELTA if self._is_delta else AggregationTemporality.CUMULATIVE

    def convert(self, families: Iterable[Family], now: int) -> list[Metric]:
        """Return the converted metrics; ``now`` is in nanoseconds since 1970."""
        found = [self._metric(family, self._began, now) for family in families if family.samples]
        if self._is_delta:
            self._began = now
        return found

    def _metric(self, family: Family, since: int, now: int) -> Metric:
        data: object
        match family.type:
            case "counter":
                samples = [sample for sample in family.samples if sample.name.endswith("_total")]
                points = [_point(sample, since, now, self._new(family.name, sample)) for sample in samples]
                data = Sum(points, self._temporality, is_monotonic=True)
            case "histogram":
                data = Histogram(self._histograms(family, since, now), self._temporality)
            case _:
                points = [_point(sample, since, now, sample.value) for sample in family.samples]
                data = Gauge(points)
        name, unit = _named(family.name)
        return Metric(name=name, description=family.documentation, unit=unit, data=data)

    def _new(self, name: str, sample: Sample) -> float:
        if not self._is_delta:
            return sample.value
        key = name, tuple(sorted(sample.labels.items()))
        before, self._counted[key] = self._counted.get(key, 0.0), sample.value
        return sample.value - before

    def _histograms(self, family: Family, since: int, now: int) -> list[HistogramDataPoint]:
        bounds: dict[_Key, list[tuple[float, float]]] = defaultdict(list)
        sums: dict[_Key, float] = {}
        for sample in family.samples:
            labels = {name: value for name, value in sample.labels.items() if name != "le"}
            key = family.name, tuple(sorted(labels.items()))
            if sample.name.endswith("_bucket"):
                bounds[key].append((float(sample.labels["le"]), sample.value))
            elif sample.name.endswith("_sum"):
                sums[key] = sample.value
        return [self._histogram(key, sorted(found), sums[key], since, now) for key, found in bounds.items()]

    def _histogram(
        self, key: _Key, found: list[tuple[float, float]], total: float, since: int, now: int
    ) -> HistogramDataPoint:
        # A bucket of Prometheus counts all values up to its bound, one of OpenTelemetry those between two bounds.
        counts = [int(value - before) for (_, value), before in zip(found, [0.0, *(v for _, v in found)], strict=False)]
        if self._is_delta:
            (old, old_total), self._bars[key] = self._bars.get(key, ([0] * len(counts), 0.0)), (counts, total)
            counts, total = [new - was for new, was in zip(counts, old, strict=True)], total - old_total
        return HistogramDataPoint(
            attributes=_attributes(dict(key[1])),
            start_time_unix_nano=since,
            time_unix_nano=now,
            count=sum(counts),
            sum=total,
            bucket_counts=counts,
            explicit_bounds=[bound for bound, _ in found[:-1]],
            min=_UNKNOWN,
            max=_UNKNOWN,
        )


def _named(name: str) -> tuple[str, str]:
    """Return the name and the unit of a metric.

    >>> _named("mcp_server_operation_duration_seconds"), _named("truename_calls")
    (('mcp.server.operation.duration', 's'), ('truename.calls', ''))
    """
    unit = "s" if name.endswith(_SECONDS) else ""
    return name.removesuffix(_SECONDS).replace("_", "."), unit


def _point(sample: Sample, since: int, now: int, value: float) -> NumberDataPoint:
    return NumberDataPoint(
        _attributes(sample.labels), start_time_unix_nano=since, time_unix_nano=now, value=float(value)
    )


def _attributes(labels: Mapping[str, str]) -> dict[str, str]:
    # An empty label stands for one that does not apply.
    found = {_LABELS.get(name, name): value for name, value in labels.items() if value}
    if found.get("mcp.method.name") == _CALL:
        found["gen_ai.operation.name"] = "execute_tool"
    return found

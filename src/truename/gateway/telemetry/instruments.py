"""The metrics of a registry as OpenTelemetry has them: names with dots, units apart, labels by the conventions.

Source: OpenTelemetry's semantic conventions for MCP (Development), and its rules of compatibility with Prometheus.
"""

from __future__ import annotations

from collections import defaultdict
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    NumberDataPoint,
    Sum,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from prometheus_client import Metric as Family
    from prometheus_client.samples import Sample

__all__ = ["Reading"]

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
# Neither is kept; the messages of OTLP may leave them out.
_UNKNOWN: Final[Any] = None
_Key = tuple[str, tuple[tuple[str, str], ...]]
_Bars = tuple[list[int], float]


class Reading:
    """Puts metrics that are counted since ``began`` (in nanoseconds since 1970) into the other form.

    With ``is_delta`` counters and histograms say what is new since the last reading.
    """

    def __init__(self, began: int, *, is_delta: bool = False) -> None:
        self._began = began
        self._is_delta = is_delta
        self._counted: dict[_Key, float] = {}
        self._bars: dict[_Key, _Bars] = {}

    @property
    def _temporality(self) -> AggregationTemporality:
        return AggregationTemporality.DELTA if self._is_delta else AggregationTemporality.CUMULATIVE

    def of(self, families: Iterable[Family], now: int) -> list[Metric]:
        """Return the metrics as they are; ``now`` is in nanoseconds since 1970."""
        found = [self._metric(family, self._began, now) for family in families if family.samples]
        if self._is_delta:
            self._began = now
        return found

    def _metric(self, family: Family, since: int, now: int) -> Metric:
        data: Any
        match family.type:
            case "counter":
                points = self._sums(family, since, now)
                data = Sum(points, self._temporality, is_monotonic=True)
            case "histogram":
                data = Histogram(self._histograms(family, since, now), self._temporality)
            case _:
                points = [_point(sample, since, now, sample.value) for sample in family.samples]
                data = Gauge(points)
        name, unit = _named(family.name)
        return Metric(name=name, description=family.documentation, unit=unit, data=data)

    def _sums(self, family: Family, since: int, now: int) -> list[NumberDataPoint]:
        samples = [sample for sample in family.samples if sample.name.endswith("_total")]
        return [_point(sample, since, now, self._new(family.name, sample)) for sample in samples]

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
        # Prometheus counts all up to a bound, OpenTelemetry those between two.
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
    """Return a metric's name and unit.

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
    # What is empty was not there.
    found = {_LABELS.get(name, name): value for name, value in labels.items() if value}
    if found.get("mcp.method.name") == _CALL:
        found["gen_ai.operation.name"] = "execute_tool"
    return found

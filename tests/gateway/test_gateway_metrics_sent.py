"""Metrics by OTLP: the same numbers as at /metrics, in the form and under the names of OpenTelemetry."""

from __future__ import annotations

import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.metrics.export import AggregationTemporality
from prometheus_client import CollectorRegistry, Counter, Histogram

from tests.gateway.collector import Collector, collecting, labels
from tests.support.gateway_metrics import asked, at, scraped, seconds_of
from truename.config import Config, Settings
from truename.config.telemetry import Telemetry
from truename.errors import ConfigError
from truename.gateway import Gateway, listening
from truename.gateway.status import RegistryStatus
from truename.telemetry.metric_export import MetricConverter

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from tests.gateway.conftest import Lab

pytestmark = pytest.mark.anyio


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    with collecting() as found:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", found.address)
        monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "100")
        yield found


@asynccontextmanager
async def sending(lab: Lab, *, metrics: bool = True) -> AsyncIterator[str]:
    settings = Settings(startup_timeout=20.0, style="prefixed", telemetry=Telemetry(metrics=metrics, metrics_sent=True))
    config = Config(servers=(lab.normal("w", "read", "fails"),), settings=settings)
    async with Gateway(config) as gateway, listening(gateway) as address:
        yield address


def points(metric: Any) -> list[Any]:
    return list(getattr(metric, metric.WhichOneof("data")).data_points)


async def test_what_is_sent_is_what_is_shown(
    lab: Lab, connect: Callable[..., Any], era: str, collector: Collector
) -> None:
    async with sending(lab) as address:
        async with connect(f"{address}/mcp", era) as client:
            for name in ("w_read", "w_read", "w_fails", "w_nothing"):
                await client.call_tool(name, {"text": "hunter2"})
        shown = await scraped(address)
    # The last is sent at the end.
    sent = collector.metrics()
    calls = {tuple(sorted(labels(one).items())): one.as_double for one in points(sent["truename.calls"])}
    assert calls == {
        (("truename.call.outcome", "ok"), ("truename.tool.server", "w")): 2.0,
        (("truename.call.outcome", "tool_error"), ("truename.tool.server", "w")): 1.0,
        (("truename.call.code", "unknown_tool"), ("truename.call.outcome", "unknown")): 1.0,
    }
    assert sent["truename.calls"].sum.is_monotonic
    for side in ("server", "client"):
        metric = sent[f"mcp.{side}.operation.duration"]
        assert metric.unit == "s"
        of_calls = [one for one in points(metric) if labels(one)["mcp.method.name"] == "tools/call"]
        assert {labels(one)["gen_ai.operation.name"] for one in of_calls} == {"execute_tool"}
        errors = {labels(one).get("error.type"): one.count for one in of_calls if "truename.tool.server" in labels(one)}
        assert errors == {None: 2, "tool_error": 1}
        assert sum(errors.values()) == seconds_of(shown, "tools/call", "w", side)
        assert all(sum(one.bucket_counts) == one.count for one in points(metric))
        assert len(of_calls[0].explicit_bounds) + 1 == len(of_calls[0].bucket_counts)
    methods = {labels(one)["mcp.method.name"] for one in points(sent["mcp.server.operation.duration"])}
    assert methods >= {"tools/call", "tools/list", *(["initialize"] if era == "legacy" else [])}
    assert at(shown, "truename_tools") == points(sent["truename.tools"])[0].as_double == 2
    assert {name.replace(".", "_") for name in sent} == {name.removesuffix("_seconds") for name in _families(shown)}
    assert collector.requests[-1][0] == "/v1/metrics"
    assert collector.service() == "truename"
    everything = b"".join(body for _, _, body in collector.requests)
    # No text of a client or a server, and no name that somebody made up.
    assert not any(text in everything for text in (b"hunter2", b"w_nothing", b"w_read"))


def _families(found: dict[tuple[str, frozenset[tuple[str, str]]], float]) -> set[str]:
    endings = ("_total", "_created", "_bucket", "_count", "_sum")
    names = set[str]()
    for name, _ in found:
        ending = next((one for one in endings if name.endswith(one)), "")
        names.add(name.removesuffix(ending))
    return names


async def test_it_is_sent_as_the_environment_says(
    lab: Lab, connect: Callable[..., Any], collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20t0k3n")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "front")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "delta")
    async with sending(lab, metrics=False) as address:
        # Sent is not shown.
        assert (await asked(address, "/metrics")).status_code == 404
        async with connect(f"{address}/mcp", "2026-07-28") as client:
            await client.call_tool("w_read", {})
            seen = len(collector.requests)
            await anyio.to_thread.run_sync(collector.wait, seen + 2)
            await client.call_tool("w_read", {})
    assert collector.service() == "front"
    assert {headers["authorization"] for _, headers, _ in collector.requests} == {"Bearer t0k3n"}
    sent = [collector.metrics(number) for number in range(len(collector.requests))]
    calls = [one["truename.calls"] for one in sent if "truename.calls" in one]
    assert {one.sum.aggregation_temporality for one in calls} == {1}
    # Each says what is new, and together they say all.
    assert sum(point.as_double for one in calls for point in points(one)) == 2


async def test_nothing_is_sent_where_the_environment_says_so(
    lab: Lab, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "none")
    async with sending(lab) as address:
        assert at(await scraped(address), "truename_tools") == 2
    assert collector.requests == []


async def test_a_collector_that_takes_nothing_costs_no_call(
    lab: Lab,
    connect: Callable[..., Any],
    collector: Collector,
    caplog: pytest.LogCaptureFixture,
) -> None:
    collector.status = 400
    async with sending(lab) as address, connect(f"{address}/mcp", "legacy") as client:
        await anyio.to_thread.run_sync(collector.wait, 3)
        assert not (await client.call_tool("w_read", {})).is_error
    assert caplog.text.count("Cannot send metrics by OTLP") == 1


async def test_metrics_that_can_not_be_read_end_no_gateway(
    lab: Lab,
    connect: Callable[..., Any],
    collector: Collector,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def status(_: object) -> Any:
        raise RuntimeError("the house is on fire")

    monkeypatch.setattr(RegistryStatus, "status", status)
    async with sending(lab) as address, connect(f"{address}/mcp", "legacy") as client:
        with anyio.fail_after(10):
            while "Cannot send metrics" not in caplog.text:
                await anyio.sleep(0.02)
        assert not (await client.call_tool("w_read", {})).is_error
    assert collector.requests == []


async def test_a_collector_that_is_gone_keeps_no_gateway_from_its_end(
    lab: Lab, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("truename.telemetry.metric_export.SHUTDOWN_TIMEOUT", 0.2)
    # It is tried again and again for as long as the environment says: ten seconds.
    collector.status = 503
    with anyio.fail_after(8):
        async with sending(lab):
            await anyio.to_thread.run_sync(collector.wait, 1)
    assert collector.requests


async def test_without_the_package_it_is_said_how_to_have_it(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "truename.telemetry.metric_export", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.metric_exporter", None)
    with pytest.raises(ConfigError, match="opentelemetry is not installed") as missing:
        async with sending(lab):
            pass
    assert missing.value.key == "telemetry.metrics_sent"


@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from("ab"), st.floats(0, 400, allow_nan=False)), max_size=6),
        min_size=1,
        max_size=5,
    )
)
def test_what_is_new_each_time_is_together_what_there_is(rounds: list[list[tuple[str, float]]]) -> None:
    registry = CollectorRegistry()
    counter = Counter("truename_calls", "-", ("server",), registry=registry)
    bars = Histogram("truename_call_seconds", "-", ("server",), buckets=(0.1, 1.0, 60.0), registry=registry)
    new, all_ = MetricConverter(0, is_delta=True), MetricConverter(0)
    counts: dict[str, float] = {}
    buckets: dict[str, list[int]] = {}
    for number, one in enumerate(rounds, 1):
        for server, seconds in one:
            counter.labels(server).inc()
            bars.labels(server).observe(seconds)
        delta, whole = _read(new, registry, number), _read(all_, registry, number)
        assert all(one.aggregation_temporality is AggregationTemporality.DELTA for one in delta.values())
        for point in _points(delta, "truename.calls"):
            server = point.attributes["truename.tool.server"]
            counts[server] = counts.get(server, 0) + point.value
            assert (point.start_time_unix_nano, point.time_unix_nano) == (number - 1, number)
        for point in _points(delta, "truename.call"):
            server = point.attributes["truename.tool.server"]
            known = buckets.get(server, [0] * len(point.bucket_counts))
            buckets[server] = [a + b for a, b in zip(known, point.bucket_counts, strict=True)]
    found = {point.attributes["truename.tool.server"]: point for point in _points(whole, "truename.call")}
    assert {server: list(point.bucket_counts) for server, point in found.items()} == buckets
    assert {server: point.count for server, point in found.items()} == counts
    assert all(point.start_time_unix_nano == 0 for point in found.values())
    for server, point in found.items():
        said = [seconds for one in rounds for whose, seconds in one if whose == server]
        assert list(point.bucket_counts) == [
            sum(low < seconds <= high for seconds in said)
            for low, high in ((-1, 0.1), (0.1, 1), (1, 60), (60, float("inf")))
        ]


def _read(converter: MetricConverter, registry: CollectorRegistry, now: int) -> dict[str, Any]:
    return {metric.name: metric.data for metric in converter.convert(registry.collect(), now)}


def _points(found: dict[str, Any], name: str) -> list[Any]:
    return list(found[name].data_points) if name in found else []

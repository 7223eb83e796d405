"""The gateway's own spans: what is sent of them is what the SDK would send, under the environment's limits."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from anyio import to_thread
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry import trace
from opentelemetry.context import attach, detach
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, StatusCode, TraceFlags, TraceState

from tests.gateway.collector import collecting, labels
from truename.config import Config, Settings
from truename.gateway import Gateway, listening
from truename.telemetry import otlp, span_export
from truename.telemetry.daemon import in_daemon_thread
from truename.telemetry.otlp import SpanEncoder
from truename.telemetry.span_export import CachingSpanExporter
from truename.telemetry.spans import GatewaySpan, GatewayTracerProvider

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.gateway.conftest import Lab

RESOURCE = Resource({"service.name": "here", "process.pid": 12, "host.names": ("a", "b")}, "https://schema.example")
REMOTE = SpanContext(
    2**127 + 1, 2**63 + 5, is_remote=True, trace_flags=TraceFlags(1), trace_state=TraceState([("v", "1")])
)
# Lengths at which one more byte says how long it is, and beyond which nothing is kept; and some that come again.
LONG = st.sampled_from([63, 64, 127, 128, 500, 600, 8_191, 8_192, 16_384]).map("é".__mul__)
TEXTS = st.sampled_from("xyz") | st.text(st.characters(codec="utf-8"), max_size=300)
KEYS = st.sampled_from(["jsonrpc.request.id", "gen_ai.tool.call.id", "mcp.method.name"]) | TEXTS
VALUES = TEXTS | LONG | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False)


class Kept:
    """A provider under the environment, and what it would send."""

    def __init__(self) -> None:
        self.ended: list[GatewaySpan] = []
        self.provider = GatewayTracerProvider(self.ended.append, resource=RESOURCE, shutdown_on_exit=False)
        self.tracer = self.provider.get_tracer("truename")

    def below(self, parent: SpanContext) -> Any:
        return trace.set_span_in_context(NonRecordingSpan(parent))


def by_the_sdk(spans: Sequence[GatewaySpan]) -> ExportTraceServiceRequest:
    """Return what the SDK writes of spans that say the same."""
    return encode_spans(
        [
            ReadableSpan(
                one.name,
                one.context,
                one.parent,
                RESOURCE,
                one.attributes,
                kind=one.kind,
                status=trace.Status(one.status),
                start_time=one.started,
                end_time=one.ended,
                instrumentation_scope=InstrumentationScope("truename", ""),
            )
            for one in spans
        ]
    )


def sent(spans: Sequence[GatewaySpan]) -> ExportTraceServiceRequest:
    found = ExportTraceServiceRequest()
    found.ParseFromString(SpanEncoder(RESOURCE, "truename").encode(spans))
    return found


@given(
    st.lists(
        st.tuples(
            TEXTS,
            st.sampled_from(list(SpanKind)),
            st.dictionaries(KEYS, VALUES, max_size=6),
            st.sampled_from(list(StatusCode)),
            st.sampled_from([None, REMOTE]),
        ),
        max_size=5,
    ),
    st.sampled_from([2, 5, 4_096]),
)
def test_what_is_sent_is_what_the_sdk_would_send_whatever_is_kept_for_the_next(
    said: list[tuple[Any, ...]], most: int
) -> None:
    kept = Kept()
    for name, kind, attributes, status, parent in said:
        context = None if parent is None else kept.below(parent)
        span = kept.tracer.start_span(name, context, kind, attributes)
        child = kept.tracer.start_span(name, trace.set_span_in_context(span), SpanKind.CLIENT, attributes)
        for one in (child, span):
            one.set_status(status, "not told")
            one.end()
    with pytest.MonkeyPatch.context() as small:
        small.setattr(otlp, "MAX_CACHED", most)
        assert sent(kept.ended).resource_spans == (
            by_the_sdk(kept.ended).resource_spans if said else sent([]).resource_spans
        )


ODD: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a text": ({"a": "x\ud800", "b": "kept"}, {"a": "x\\ud800", "b": "kept"}),
    "a key": ({"\udc80": "x", "b": "kept"}, {"\\udc80": "x", "b": "kept"}),
    "a large number": ({"a": 2**63, "b": "kept"}, {"b": "kept"}),
    "a small number": ({"a": -(2**63) - 1, "b": "kept"}, {"b": "kept"}),
}


@pytest.mark.parametrize("which", ODD)
def test_what_can_not_be_written_costs_neither_its_span_nor_the_others(which: str) -> None:
    said, found = ODD[which]
    kept = Kept()
    kept.tracer.start_span("x\ud800", attributes=said).end()
    kept.tracer.start_span("next").end()
    odd, following = sent(kept.ended).resource_spans[0].scope_spans[0].spans
    assert (odd.name, labels(odd), following.name) == ("x\\ud800", found, "next")


def test_a_span_that_can_not_be_written_at_all_is_left_out_alone(caplog: pytest.LogCaptureFixture) -> None:
    kept = Kept()
    kept.tracer.start_span("first").end()
    kept.tracer.start_span("before all time").end(-1)
    kept.tracer.start_span("next").end()
    spans = sent(kept.ended).resource_spans[0].scope_spans[0].spans
    assert [one.name for one in spans] == ["first", "next"]
    assert "A span cannot be encoded" in caplog.text


def test_numbers_that_are_equal_stay_what_they_are() -> None:
    kept = Kept()
    for value in (1, True, 1.0, "1"):
        kept.tracer.start_span("x", attributes={"a": value}).end()
    assert sent(kept.ended) == by_the_sdk(kept.ended)


def test_what_is_of_no_kind_of_ours_is_left_out_and_the_rest_is_sent() -> None:
    kept = Kept()
    with kept.tracer.start_as_current_span("x", attributes={"list": ["a", "b"], "text": "t"}):
        pass
    assert [one.key for one in sent(kept.ended).resource_spans[0].scope_spans[0].spans[0].attributes] == ["text"]


@pytest.mark.parametrize("name", [name for name in dir(GatewaySpan) if name in {"add_event", "record_exception"}])
def test_nobody_can_put_a_text_into_one_beside_its_attributes(name: str) -> None:
    kept = Kept()
    span = kept.tracer.start_span("x")
    getattr(span, name)(ValueError("hunter2"))
    span.set_status(StatusCode.ERROR, "hunter2")
    span.end()
    assert b"hunter2" not in SpanEncoder(RESOURCE, "truename").encode(kept.ended)


@pytest.mark.parametrize(
    ("environment", "root", "below"),
    [
        ({}, True, True),
        ({"OTEL_TRACES_SAMPLER": "always_off"}, False, False),
        ({"OTEL_TRACES_SAMPLER": "parentbased_always_off"}, False, True),
        ({"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0"}, False, False),
        ({"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "1"}, True, True),
        ({"OTEL_SDK_DISABLED": "true"}, False, False),
    ],
)
def test_who_is_sampled_is_the_environment_s_matter(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], root: bool, below: bool
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    kept = Kept()
    for context in (None, kept.below(REMOTE)):
        span = kept.tracer.start_span("a", context)
        token = attach(trace.set_span_in_context(span))
        with kept.tracer.start_as_current_span("b"):
            assert trace.get_current_span().get_span_context().trace_id == span.get_span_context().trace_id
        detach(token)
        span.end()
        span.end()
    assert [one.name for one in kept.ended] == ["b", "a"] * (root + below)


def test_limits_are_the_environment_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "2")
    monkeypatch.setenv("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", "3")
    kept = Kept()
    kept.tracer.start_span("x", attributes={"a": "1234", "b": "5678", "c": 90123}).end()
    (span,) = sent(kept.ended).resource_spans[0].scope_spans[0].spans
    assert [(one.key, one.value.string_value, one.value.int_value) for one in span.attributes] == [
        ("b", "567", 0),
        ("c", "", 90123),
    ]
    assert span.dropped_attributes_count == 1


def test_the_spans_of_others_are_the_sdk_s() -> None:
    kept = Kept()
    with kept.provider.get_tracer("other").start_as_current_span("x") as span:
        span.add_event("told")
        inside = kept.tracer.start_span("ours")
    assert isinstance(span, ReadableSpan)
    assert [type(one) for one in span.events] == [Event]
    assert isinstance(inside, GatewaySpan)
    assert inside.parent == span.get_span_context()


@pytest.mark.parametrize(("environment", "most"), [({}, 600), ({"OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "100"}, 100)])
def test_more_are_sent_at_once_than_the_sdk_would_unless_the_environment_says_how_many(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], most: int
) -> None:
    monkeypatch.setattr(
        span_export, "set_tracer_provider", partial(monkeypatch.setattr, "opentelemetry.trace._TRACER_PROVIDER")
    )
    with collecting() as collector:
        for name, value in {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.address, **environment}.items():
            monkeypatch.setenv(name, value)
        end = span_export.export("somewhere")
        for _ in range(600):
            trace.get_tracer("truename").start_span("x").end()
        end()
    requests = [ExportTraceServiceRequest.FromString(body) for _, _, body in collector.requests]
    counts = [len(one.resource_spans[0].scope_spans[0].spans) for one in requests]
    assert (max(counts), sum(counts)) == (most, 600)


def test_a_collector_that_does_not_answer_keeps_nobody_from_the_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(
        span_export, "set_tracer_provider", partial(monkeypatch.setattr, "opentelemetry.trace._TRACER_PROVIDER")
    )
    monkeypatch.setattr(span_export, "SHUTDOWN_TIMEOUT", 0.1)
    with collecting() as collector:
        collector.answers.clear()
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.address)
        end = span_export.export("somewhere")
        trace.get_tracer("truename").start_span("x").end()
        end()
        assert "The collector did not take all spans in 0.1 seconds; the rest is lost." in caplog.text
        # It is sent still, by a thread that no process waits for.
        collector.wait(1)
    assert in_daemon_thread(lambda: threading.current_thread().daemon).result(10)


@pytest.mark.anyio
@pytest.mark.parametrize("takes_bytes", [True, False])
async def test_spans_of_calls_arrive_where_the_environment_says(
    lab: Lab, raw: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch, takes_bytes: bool
) -> None:
    monkeypatch.setattr(CachingSpanExporter, "takes_bytes", takes_bytes)
    monkeypatch.setattr(
        span_export, "set_tracer_provider", partial(monkeypatch.setattr, "opentelemetry.trace._TRACER_PROVIDER")
    )
    config = Config(servers=(lab.normal("w", "read"),), settings=Settings(startup_timeout=20.0, style="prefixed"))
    with collecting() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.address)
        end = span_export.export("somewhere")
        async with Gateway(config) as gateway, listening(gateway) as address, raw(address) as http:
            await http.result("tools/call", {"name": "w_read", "arguments": {"text": "hunter2"}})
        await to_thread.run_sync(end)
    body = b"".join(body for _, _, body in collector.requests)
    found = ExportTraceServiceRequest()
    found.ParseFromString(body)
    ((resource, scope),) = (
        (one, inner) for one in found.resource_spans for inner in one.scope_spans if inner.scope.name == "truename"
    )
    assert {path for path, *_ in collector.requests} == {"/v1/traces"}
    assert labels(resource.resource)["service.name"] == "somewhere"
    asked = {one.kind: one for one in scope.spans if labels(one).get("gen_ai.operation.name") == "execute_tool"}
    server, client = (asked[Span.SpanKind.Value(f"SPAN_KIND_{kind}")] for kind in ("SERVER", "CLIENT"))
    assert (server.name, client.name) == ("tools/call w_read", "tools/call read")
    assert (client.trace_id, client.parent_span_id) == (server.trace_id, server.span_id)
    assert server.start_time_unix_nano <= client.start_time_unix_nano < server.end_time_unix_nano
    assert b"hunter2" not in body

"""Traces: one span for a client's request, one for what is sent to a server for it, and no secret in any."""

from __future__ import annotations

import sys
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest
from mcp.shared.exceptions import MCPError
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased
from opentelemetry.trace import SpanKind, StatusCode

from truename.config import Config, Settings
from truename.config.audit import Audit
from truename.config.telemetry import Telemetry
from truename.errors import ConfigError
from truename.gateway import Gateway, listening
from truename.policy import read_policy
from truename.telemetry.setup import export_traces

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from tests.gateway.conftest import Lab

pytestmark = pytest.mark.anyio

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SAID = {
    "traceparent": f"00-{TRACE}-{PARENT}-01",
    "tracestate": "vendor=1",
    "baggage": "user=ann",
}
POLICY = {"default": "allow", "rules": [{"name": "look first", "outcome": "ask", "tools": ["w/write"]}]}


class Spans:
    def __init__(self, sampler: Any = None) -> None:
        self._kept = InMemorySpanExporter()
        self.provider = TracerProvider(sampler=sampler, shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self._kept))

    @property
    def own(self) -> list[ReadableSpan]:
        """The gateway's own, without those of the client in this process."""
        return [
            span
            for span in self._kept.get_finished_spans()
            if span.instrumentation_scope is not None and span.instrumentation_scope.name == "truename"
        ]

    def of(self, kind: SpanKind, method: str = "tools/call") -> list[ReadableSpan]:
        return [one for one in self.own if one.kind is kind and said(one)["mcp.method.name"] == method]


def said(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Spans:
    found = Spans()
    monkeypatch.setattr("opentelemetry.trace._TRACER_PROVIDER", found.provider)
    return found


@asynccontextmanager
async def traced(lab: Lab, *servers: Any, **settings: Any) -> AsyncIterator[str]:
    config = Config(servers=servers, settings=Settings(startup_timeout=20.0, style="prefixed", **settings))
    async with Gateway(config) as gateway, listening(gateway) as address:
        yield address


async def test_a_call_has_a_span_of_the_client_s_request_and_one_of_the_server_s(
    lab: Lab, spans: Spans, connect: Callable[..., Any], era: str
) -> None:
    async with (
        traced(lab, lab.normal("w", "read"), policy=read_policy(POLICY)) as address,
        connect(f"{address}/mcp", era) as client,
    ):
        await client.call_tool("w_read", {"text": "hunter2"})
    (server,), (client_span,) = spans.of(SpanKind.SERVER), spans.of(SpanKind.CLIENT)
    assert server.name == "tools/call w_read"
    found = said(server)
    assert {key: found[key] for key in found if key.startswith(("gen_ai", "truename.tool"))} == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "w_read",
        "gen_ai.tool.call.id": f"request-{found['jsonrpc.request.id']}",
        "truename.tool.id": "w@1/read@1",
        "truename.tool.server": "w",
        "truename.tool.upstream_name": "read",
    }
    assert (found["truename.call.outcome"], found["truename.decision"]) == ("ok", "allow")
    assert found["network.transport"] == "tcp"
    assert ("mcp.session.id" in found) is (era == "legacy")
    assert server.status.status_code is StatusCode.UNSET
    assert client_span.parent is not None
    assert client_span.parent.span_id == server.context.span_id
    assert said(client_span)["gen_ai.tool.name"] == "read"
    assert "hunter2" not in "".join(span.to_json() for span in spans.own)


async def test_the_caller_s_trace_goes_on_through_the_gateway(
    lab: Lab, spans: Spans, raw: Callable[[str], Any]
) -> None:
    async with traced(lab, lab.normal("w", "read")) as address, raw(address) as http:
        by_meta = await http.result("tools/call", {"name": "w_read", "arguments": {}, "_meta": SAID})
        by_header = await http.result("tools/call", {"name": "w_read", "arguments": {}}, headers=SAID)
    for told, server, client in zip(
        (by_meta, by_header), spans.of(SpanKind.SERVER), spans.of(SpanKind.CLIENT), strict=True
    ):
        assert server.parent is not None
        assert (f"{server.context.trace_id:032x}", f"{server.parent.span_id:016x}") == (TRACE, PARENT)
        meta = told["structuredContent"]["params"]["_meta"]
        assert meta["traceparent"] == f"00-{TRACE}-{client.context.span_id:016x}-01"
        assert (meta["tracestate"], meta["baggage"]) == ("vendor=1", "user=ann")


@pytest.mark.parametrize(
    "meta",
    [
        {"traceparent": 5},
        {"traceparent": "x" * 100_000},
        {"traceparent": ["00"]},
        {**SAID, "tracestate": {"a": 1}, "baggage": 7},
        {**SAID, "baggage": "=" * 9_000},
    ],
)
async def test_what_is_no_trace_context_harms_nothing(
    lab: Lab, spans: Spans, raw: Callable[[str], Any], meta: dict[str, Any]
) -> None:
    async with traced(lab, lab.normal("w", "read")) as address, raw(address) as http:
        answer = await http.post("tools/call", {"name": "w_read", "arguments": {}, "_meta": meta})
    assert answer.status_code == 200
    assert len(spans.of(SpanKind.SERVER)) == 1


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("w_fails", "tool_error"),
        ("w_boom", "-32002"),
        ("w_write", "approval_required"),
        ("w_shapeless", "upstream_unavailable"),
        ("nothing\x1b[31m", "unknown_tool"),
    ],
)
async def test_what_went_wrong_is_told_by_its_code(
    lab: Lab, spans: Spans, connect: Callable[..., Any], name: str, code: str
) -> None:
    server = lab.normal("w", "fails", "boom", "write", "shapeless")
    async with (
        traced(lab, server, policy=read_policy(POLICY)) as address,
        connect(f"{address}/mcp", "legacy") as client,
    ):
        with suppress(MCPError):
            await client.call_tool(name, {})
    (span,) = spans.of(SpanKind.SERVER)
    assert (said(span)["error.type"], span.status.status_code) == (code, StatusCode.ERROR)
    assert span.status.description is None
    assert span.events == ()
    assert span.name.isprintable()
    # A name that leads to no tool is not one of a bounded number.
    assert (span.name == "tools/call") is (code == "unknown_tool")


async def test_sampling_is_respected_and_handed_on(
    lab: Lab, raw: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    spans = Spans(ParentBased(ALWAYS_OFF))
    monkeypatch.setattr("opentelemetry.trace._TRACER_PROVIDER", spans.provider)
    async with traced(lab, lab.normal("w", "read")) as address, raw(address) as http:
        told = await http.result("tools/call", {"name": "w_read", "arguments": {}})
        await http.result("tools/call", {"name": "w_read", "arguments": {}, "_meta": SAID})
    flags = told["structuredContent"]["params"]["_meta"]["traceparent"].rpartition("-")[2]
    assert not int(flags, 16) & 1
    assert len(spans.own) == 2


async def test_the_journal_has_the_span_s_own_trace(
    lab: Lab, spans: Spans, connect: Callable[..., Any], tmp_path: Path
) -> None:
    audit = Audit(path=str(tmp_path / "audit"))
    async with (
        traced(lab, lab.normal("w", "read"), audit=audit) as address,
        connect(f"{address}/mcp", "legacy") as client,
    ):
        await client.call_tool("w_read", {})
    (server,) = spans.of(SpanKind.SERVER)
    written = "".join(file.read_text() for file in (tmp_path / "audit").glob("*.jsonl"))
    assert f'"trace":"00-{server.context.trace_id:032x}-{server.context.span_id:016x}-' in written


async def test_without_anybody_who_takes_them_there_are_none(lab: Lab, raw: Callable[[str], Any]) -> None:
    assert isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
    async with traced(lab, lab.normal("w", "read")) as address, raw(address) as http:
        told = await http.result("tools/call", {"name": "w_read", "arguments": {}, "_meta": SAID})
    meta = told["structuredContent"]["params"]["_meta"]
    assert {key: meta[key] for key in SAID} == SAID


def test_without_the_package_it_is_said_how_to_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "truename.telemetry.span_export", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    assert export_traces(Settings()) is None
    with pytest.raises(ConfigError, match="truename\\[telemetry\\]"):
        export_traces(Settings(telemetry=Telemetry(traces=True)))

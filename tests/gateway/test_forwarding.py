"""Calls on their way to servers over HTTP: what is told of them comes first and in order, and nothing is taken over."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from opentelemetry import trace
from starlette.responses import RedirectResponse

from tests.gateway.conftest import connected, text_of
from tests.support.gateway_broken_answers import JSON, Breaking, event

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from tests.gateway.conftest import Lab, Upstreams

pytestmark = pytest.mark.anyio


class Talking(Breaking):
    """Answers calls in one piece of a stream, and notes who asks: headers, and the connections that they came on."""

    names = ("get", "count", "other", "wordless", "huge", "shapeless")

    def __init__(self) -> None:
        super().__init__()
        self.came_on: set[Any] = set()
        self.tokens: dict[str, Any] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "POST":
            self.headers.append({key.decode(): value.decode() for key, value in scope["headers"]})
            self.came_on.add(scope["client"])
        await super().__call__(scope, receive, send)

    async def _post(self, message: dict[str, Any], send: Send) -> None:
        if message.get("method") == "tools/call":
            self.tokens[message["params"]["name"]] = (message["params"].get("_meta") or {}).get("progressToken")
            if message["params"]["name"] == "shapeless":
                wrong = {"jsonrpc": "2.0", "id": message["id"], "error": {"message": 7}}
                await self._send(send, 400, json.dumps(wrong).encode(), JSON)
                return
        await super()._post(message, send)

    @staticmethod
    async def _send(send: Send, status: int, body: bytes = b"", *headers: tuple[bytes, bytes]) -> None:
        await Breaking._send(send, status, body, *headers, (b"set-cookie", b"place=here; Path=/"))

    def first(self, name: str) -> bytes:
        if name == "other":
            return event({"id": 77_777, "result": {"content": []}})
        if name == "wordless":
            return b"data: no message\n\n"
        if name == "huge":
            return b"data: " + b"x" * 300_000 + b"\n\n"
        told = [
            event({"method": "notifications/progress", "params": {"progressToken": self.tokens[name], "progress": at}})
            for at in range(3)
            if self.tokens[name] is not None
        ]
        return b"".join(told) + self.answer(name)


async def test_progress_comes_before_the_answer_and_in_order(lab: Lab, upstreams: Upstreams, era: str) -> None:
    heard: list[float] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(progress)

    async with (
        upstreams.app(Talking()) as url,
        lab.serving(lab.at("far", url + "/mcp")) as address,
        connected(address + "/mcp", era) as client,
    ):
        for _ in range(20):
            heard.clear()
            assert text_of(await client.call_tool("count", {}, progress_callback=hear)) == "far:count"
            assert heard == [0, 1, 2]


async def test_a_connection_whose_stream_has_ended_is_used_again(lab: Lab, upstreams: Upstreams, era: str) -> None:
    app = Talking()
    async with (
        upstreams.app(app) as url,
        lab.serving(lab.at("far", url + "/mcp")) as address,
        connected(address + "/mcp", era) as client,
    ):
        app.came_on.clear()
        for _ in range(20):
            assert text_of(await client.call_tool("get", {})) == "far:get"
    # A stream that ends late may take its connection with it, now and then.
    assert len(app.came_on) < 10


async def test_cookies_and_credentials_of_the_address_go_with_calls(lab: Lab, upstreams: Upstreams, era: str) -> None:
    app = Talking()
    async with upstreams.app(app) as url:
        named = url.replace("http://", "http://me:secret@")
        async with (
            lab.serving(lab.at("far", named + "/mcp")) as address,
            connected(address + "/mcp", era) as client,
        ):
            await client.call_tool("get", {})
    sent = [headers for headers in app.headers if headers.get("mcp-session-id") == "s1"]
    assert sent
    for headers in sent[1:]:
        assert headers["authorization"] == f"Basic {b64encode(b'me:secret').decode()}"
        assert "place=here" in headers["cookie"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("other", "the response to another request"),
        ("wordless", "an event that is not a message"),
        ("huge", "too large"),
        ("shapeless", "a malformed error"),
    ],
)
async def test_an_answer_that_is_none_ends_the_call_that_it_came_for(
    name: str, said: str, lab: Lab, upstreams: Upstreams
) -> None:
    async with (
        upstreams.app(Talking()) as url,
        lab.serving(lab.at("far", url + "/mcp"), max_result=200_000) as address,
        connected(address + "/mcp", "2026-07-28") as client,
    ):
        answer = await client.call_tool(name, {})
        assert answer.is_error
        assert said in text_of(answer)
        assert text_of(await client.call_tool("get", {})) == "far:get"


@pytest.mark.parametrize(
    ("place", "sent"), [("http://127.0.0.1:1/elsewhere", 1), ("/mcp/moved", 2)], ids=["another origin", "its own"]
)
async def test_a_call_that_is_led_elsewhere_is_sent_once_to_each_place(
    place: str, sent: int, lab: Lab, upstreams: Upstreams
) -> None:
    paths: list[str] = []
    behind = Talking()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        is_call = False

        async def read() -> Any:
            nonlocal is_call
            message = await receive()
            is_call = is_call or b"tools/call" in message.get("body", b"")
            return message

        if scope["type"] != "http" or scope["method"] != "POST":
            await behind(scope, receive, send)
            return
        message = await read()
        paths.extend([scope["path"]] if is_call else [])
        if is_call and scope["path"] == "/mcp":
            await RedirectResponse(place, 308)(scope, receive, send)
            return
        given = [message]

        async def again() -> Any:
            return given.pop() if given else await receive()

        await behind({**scope, "path": "/mcp"}, again, send)

    async with (
        upstreams.app(app) as url,
        lab.serving(lab.at("far", url + "/mcp")) as address,
        connected(address + "/mcp", "2026-07-28") as client,
    ):
        answer = await client.call_tool("get", {})
    assert len(paths) == sent
    assert answer.is_error == (sent == 1)


class _Spans(trace.NoOpTracer):
    def __init__(self) -> None:
        self.names: list[str] = []

    def start_span(self, name: str, *_: Any, **__: Any) -> trace.Span:
        self.names.append(name)
        context = trace.SpanContext(0xA, 0xB, is_remote=False, trace_flags=trace.TraceFlags(1))
        return trace.NonRecordingSpan(context)

    def start_as_current_span(self, name: str, *_: Any, **__: Any) -> Any:
        return trace.use_span(self.start_span(name))


class _Provider(trace.NoOpTracerProvider):
    def __init__(self) -> None:
        self.spans = _Spans()

    def get_tracer(self, *_: Any, **__: Any) -> trace.Tracer:
        return self.spans


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> _Provider:
    found = _Provider()
    # The SDK's tracer would keep the provider for good.
    monkeypatch.setattr("mcp.shared._otel._tracer", found.spans)
    monkeypatch.setattr("opentelemetry.trace._TRACER_PROVIDER", found)
    return found


async def test_where_somebody_takes_spans_there_are_some_and_servers_are_told(
    lab: Lab, upstreams: Upstreams, provider: _Provider
) -> None:
    metas: list[dict[str, Any]] = []

    class Told(Talking):
        async def _post(self, message: dict[str, Any], send: Send) -> None:
            if message.get("method") == "tools/call":
                metas.append(message["params"].get("_meta") or {})
            await super()._post(message, send)

    async with (
        upstreams.app(Told()) as url,
        lab.serving(lab.at("far", url + "/mcp")) as address,
        connected(address + "/mcp", "2026-07-28") as client,
    ):
        await client.call_tool("get", {})
        assert (await client.call_tool("other", {})).is_error
    assert "tools/call" in provider.spans.names
    assert "tools/call get" in provider.spans.names
    assert metas[0]["traceparent"] == f"00-{0xA:032x}-{0xB:016x}-01"


async def test_a_silent_stream_is_kept_alive(lab: Lab, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("truename.gateway.http.response_stream.PING_SECONDS", 0.05)
    journal = tmp_path / "ran"
    async with (
        lab.serving(lab.script("j", "journal", str(journal), "hold")) as address,
        connected(address + "/mcp", "legacy") as client,
        anyio.create_task_group() as tasks,
    ):
        answers: list[str] = []

        async def call() -> None:
            answers.append(text_of(await client.call_tool("hold", {})))

        tasks.start_soon(call)
        while not journal.exists():
            await anyio.sleep(0.01)
        await anyio.sleep(0.2)
        journal.with_suffix(".gate").touch()
    assert answers == ["journal:hold"]

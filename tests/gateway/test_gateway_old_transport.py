"""Servers over the old SSE transport: found, called, and none of what they send wrongly harms more than itself."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from mcp.shared.exceptions import MCPError

from tests.conformance.fixture import Everything, refusing
from tests.gateway.conftest import connected, text_of
from tests.gateway.old_transport import STREAM, HandWritten, event, old_app
from tests.support.gateway_asking import Person
from tests.support.gateway_questions import Handshaking
from truename.config import ServerConfig

if TYPE_CHECKING:
    from starlette.types import Receive, Send

    from tests.gateway.conftest import Lab, Upstreams

pytestmark = [
    pytest.mark.anyio,
    # The fixture serves what one of the eras no longer has.
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]


def _old(url: str, **more: Any) -> ServerConfig:
    return ServerConfig(key="far", url=url + "/sse", **{"type": "sse", **more})


@pytest.mark.parametrize("kind", ["sse", "http"])
async def test_a_server_over_the_old_transport_is_called_said_to_be_one_or_not(
    kind: str, lab: Lab, upstreams: Upstreams, era: str
) -> None:
    server = Everything().server
    server.middleware.append(refusing("stateless"))
    async with (
        upstreams.app(old_app(server)) as url,
        lab.serving(_old(url, type=kind)) as address,
        connected(address + "/mcp", era) as client,
    ):
        assert text_of(await client.call_tool("test_simple_text", {})).startswith("This is a simple text")


async def test_a_server_that_refuses_both_transports_is_told_of_with_the_refusal_of_the_new_one(
    lab: Lab, upstreams: Upstreams
) -> None:
    class NoStream(HandWritten):
        status = 404
        first = b""

    async with upstreams.app(NoStream()) as url, lab.gateway(_old(url, type="http")) as gateway:
        told = gateway.status().servers[0].error or ""
        assert "405" in told or "refuses the connection" in told
        assert "stream" not in told


async def test_a_server_of_the_new_transport_that_refuses_by_an_answer_is_not_asked_for_the_old_one(
    lab: Lab, upstreams: Upstreams
) -> None:
    class Refusing(HandWritten):
        async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
            if scope["type"] == "http" and scope["method"] == "POST":
                error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "not today"}}
                head = [(b"content-type", b"application/json")]
                await send({"type": "http.response.start", "status": 400, "headers": head})
                await send({"type": "http.response.body", "body": json.dumps(error).encode()})
            else:
                await super().__call__(scope, receive, send)

    app = Refusing()
    async with upstreams.app(app) as url, lab.gateway(_old(url, type="http")) as gateway:
        assert "not today" in (gateway.status().servers[0].error or "")
        assert app.streams == 0


class Compressed(HandWritten):
    head = (*STREAM, (b"content-encoding", b"gzip"))


class OfAnotherKind(HandWritten):
    head = ((b"content-type", b"text/html"),)


class Closed(HandWritten):
    status = 403


class Elsewhere(HandWritten):
    status = 302
    head = ((b"location", b"http://example.invalid/sse"),)


class OtherOrigin(HandWritten):
    first = b"event: endpoint\ndata: http://127.0.0.1:9/post\n\n"


class OtherScheme(HandWritten):
    first = b"event: endpoint\ndata: file:///etc/passwd\n\n"


class WithAPassword(HandWritten):
    first = b"event: endpoint\ndata: //user:word@127.0.0.1/post\n\n"


class LongAddress(HandWritten):
    first = b"event: endpoint\ndata: /" + b"x" * 10_000 + b"\n\n"


class NoAddress(HandWritten):
    first = event({"method": "notifications/message"}) * 3


class Endless(HandWritten):
    first = b"data: " + b"x" * 100_000


class NoText(HandWritten):
    first = b"\xff\xfe event: endpoint\ndata: \xff\xff\n\n"


class Short(HandWritten):
    first = b": nothing\n\n"

    async def say(self, chunk: bytes) -> None:
        await super().say(chunk)
        self.end()


WRONG = [
    (Compressed, "a compressed response, although none was requested"),
    (OfAnotherKind, "content of type text/html"),
    (Closed, "HTTP 403 Forbidden"),
    (Elsewhere, "redirect to http://example.invalid/sse"),
    (OtherOrigin, "of another web origin ('http://127.0.0.1:9/post')"),
    (OtherScheme, "of another web origin"),
    (WithAPassword, "of another web origin"),
    (LongAddress, "of another web origin"),
    (NoAddress, "did not send within 0.5 seconds its message endpoint"),
    (Endless, "did not send within 0.5 seconds its message endpoint"),
    (NoText, "did not send within 0.5 seconds its message endpoint"),
    (Short, "ended its event stream before it sent its"),
]


@pytest.mark.parametrize(("kind", "problem"), WRONG, ids=[kind.__name__ for kind, _ in WRONG])
async def test_a_stream_that_is_none_is_told_of(
    kind: type[HandWritten], problem: str, lab: Lab, upstreams: Upstreams
) -> None:
    app = kind()
    async with (
        upstreams.app(app) as url,
        lab.gateway(_old(url), lab.normal("fine", "get"), startup_timeout=0.5) as gateway,
    ):
        told = gateway.status().servers[0].error or ""
        assert problem in told, told
        assert told.isprintable()
        assert app.posted == []


class Misbehaving(HandWritten):
    """Does with a call what its name says, and sent an event that is not a message before each answer."""

    forgotten = 0

    async def taken(self, message: dict[str, Any]) -> int:
        name = (message.get("params") or {}).get("name")
        id = message.get("id")
        await self.say(b": a comment\n\ndata: no message\n\nevent: odd\ndata: {}\n\nevent: endpoint\ndata: /x\n\n")
        if name == "refuse":
            return 500
        if name == "forget":
            self.forgotten = self.streams
        if self.forgotten == self.streams:
            return 404
        if name == "lead":
            return 302
        if name == "big":
            text = json.dumps({"jsonrpc": "2.0", "id": id, "result": {"content": [], "big": "x" * 300_000}})
            await self.say(f"data: {text}\n\n".encode())
            return 202
        if name == "shapeless":
            await self.say(f'data: {{"jsonrpc": "2.0", "id": {id}, "result": 5}}\n\n'.encode())
            return 202
        if name == "lines":
            text = json.dumps({"jsonrpc": "2.0", "id": id, "result": {"content": []}}, indent=1)
            await self.say(b"".join(b"data:" + line.encode() + b"\r\n" for line in text.split("\n")) + b"\r\n")
            return 202
        if name == "leave":
            self.end()
            return 202
        return await super().taken(message)

    def result(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method == "tools/list":
            names = ("get", "refuse", "forget", "lead", "big", "shapeless", "lines", "leave", "wait")
            return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]}
        return super().result(method, params)


SINGLE = [
    ("refuse", "refused the request (HTTP 500"),
    ("lead", "violated the protocol (HTTP 302"),
    ("big", "too large"),
    ("shapeless", "a malformed response"),
]


async def test_what_goes_wrong_with_one_exchange_harms_no_other(lab: Lab, upstreams: Upstreams) -> None:
    app = Misbehaving()
    async with (
        upstreams.app(app) as url,
        lab.serving(_old(url), max_result=200_000, breaker_failures=100) as address,
        connected(address + "/mcp", "2026-07-28") as client,
    ):
        for name, problem in SINGLE:
            wrong = await client.call_tool(name, {})
            assert wrong.is_error
            assert problem in text_of(wrong), text_of(wrong)
        assert not (await client.call_tool("lines", {})).is_error
        assert text_of(await client.call_tool("get", {})) == "old:get"
        assert app.streams == 1
        assert [message["method"] for message in app.posted[:3]] == [
            "initialize",
            "notifications/initialized",
            "tools/list",
        ]


@pytest.mark.parametrize(
    ("name", "problem"), [("forget", "was restarted; nothing was run"), ("leave", "closed the connection before")]
)
async def test_a_session_that_is_over_is_opened_anew(
    name: str,
    problem: str,
    lab: Lab,
    upstreams: Upstreams,
) -> None:
    app = Misbehaving()
    async with (
        upstreams.app(app) as url,
        lab.serving(_old(url)) as address,
        connected(address + "/mcp", "2026-07-28") as client,
    ):
        assert problem in text_of(await client.call_tool(name, {}))
        await lab.saw("ready", "far")
        with anyio.fail_after(15):
            while text_of(await client.call_tool("get", {})) != "old:get" or app.streams < 2:
                await anyio.sleep(0.05)
        calls = [message["params"]["name"] for message in app.posted if message["method"] == "tools/call"]
        assert calls.count(name) == 1


async def test_its_questions_reach_the_one_session_that_there_is_and_a_cancelled_call_ends(
    lab: Lab, upstreams: Upstreams
) -> None:
    far, ada = Handshaking(), Person("ada")
    async with (
        upstreams.app(old_app(far.server)) as url,
        lab.serving(_old(url)) as address,
        connected(address + "/mcp", "legacy", **ada.answering) as client,
    ):
        done: Any = (await client.call_tool("ask", {})).structured_content
        assert done["content"] == {"name": "ada"}
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "hold", {})
            with anyio.fail_after(10):
                await far.held.wait()
            tasks.cancel_scope.cancel()
        with anyio.fail_after(10):
            await far.cancelled.wait()
        assert not (await client.call_tool("ask", {})).is_error


async def test_who_is_asked_on_a_stream_that_two_sessions_share_is_nobody(lab: Lab, upstreams: Upstreams) -> None:
    far, ada, bob = Handshaking(), Person("ada"), Person("bob")
    async with (
        upstreams.app(old_app(far.server)) as url,
        lab.serving(_old(url)) as address,
        connected(address + "/mcp", "legacy", **ada.answering) as first,
        connected(address + "/mcp", "legacy", **bob.answering) as second,
    ):
        await first.call_tool("ask", {})
        with pytest.raises(MCPError, match="several clients use this connection"):
            await second.call_tool("ask", {})
    assert bob.asked == []

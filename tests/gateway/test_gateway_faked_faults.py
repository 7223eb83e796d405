"""What a server says is never taken for what its transport found out, and a lost connection is told as one."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
import pytest
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError

from tests.gateway.conftest import text_of
from tests.gateway.shelf import Shelf
from tests.gateway.wire import read_request, response

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from tests.gateway.conftest import Lab, Upstreams

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]

FAKED = [
    (types.INVALID_REQUEST, "Session terminated"),
    (-32000, "Connection closed"),
    (-32000, "SSE stream ended without a response"),
    (-32000, "SSE stream failed: x"),
]


def faking(code: int, text: str) -> Server[Any]:
    async def list_tools(_: Any, __: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool(name="get", input_schema={"type": "object"})])

    async def call_tool(_: Any, __: object) -> types.CallToolResult:
        raise MCPError(code, text)

    return Server("faking", on_list_tools=list_tools, on_call_tool=call_tool)


@pytest.mark.parametrize(("code", "text"), FAKED)
async def test_an_error_of_a_server_passes_as_it_is_whatever_its_text_over_http(
    lab: Lab, era: str, connect: Callable[..., Any], upstreams: Upstreams, *, code: int, text: str
) -> None:
    async with (
        upstreams.serve(faking(code, text)) as url,
        lab.serving(lab.at("far", url)) as address,
        connect(address + "/mcp", era) as client,
    ):
        with pytest.raises(MCPError) as caught:
            await client.call_tool("get", {})
    assert (caught.value.error.code, caught.value.error.message) == (code, text)


@pytest.mark.parametrize(("code", "text"), FAKED)
async def test_an_error_of_a_server_passes_as_it_is_whatever_its_text_over_stdio(
    lab: Lab, connect: Callable[..., Any], code: int, text: str
) -> None:
    async with (
        lab.serving(lab.script("near", "faking", str(code), text)) as address,
        connect(address + "/mcp", "legacy") as client,
    ):
        with pytest.raises(MCPError) as caught:
            await client.call_tool("get", {})
    assert (caught.value.error.code, caught.value.error.message) == (code, text)


class Sessions:
    """A server of sessions, written by hand: it forgets them when it is told to, and may say so in a body."""

    def __init__(self, forgotten: bytes, kind: str) -> None:
        self.forgotten, self.kind = forgotten, kind
        self.begun = 0
        self.called: list[str] = []
        self.breaks_off = False

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[str]:
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        async with listener, anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, self._answer)
            yield f"http://127.0.0.1:{listener.extra(anyio.abc.SocketAttribute.local_port)}/mcp"
            tasks.cancel_scope.cancel()

    async def _answer(self, stream: anyio.abc.SocketStream) -> None:
        async with stream:
            headers, body = await read_request(stream)
            message = json.loads(body or b"{}")
            await stream.send(self._said(headers, message))

    def _said(self, headers: dict[str, str], message: dict[str, Any]) -> bytes:
        method, session = message.get("method"), headers.get("mcp-session-id", "")
        if method == "initialize":
            self.begun += 1
        elif session != str(self.begun):
            asked = json.dumps(message.get("id")).encode()
            return response("404 Not Found", self.kind, self.forgotten.replace(b"ID", asked))
        if "id" not in message:
            return response("202 Accepted" if message else "405 No", "", b"")
        if method == "tools/call":
            self.called.append(session)
            if self.breaks_off:
                return b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n: begun\n\n"
        results: dict[str, Any] = {
            "initialize": {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "x", "version": "1"},
            },
            "tools/list": {"tools": [{"name": "get", "inputSchema": {"type": "object"}}]},
            "tools/call": {"content": []},
            "ping": {},
        }
        if method not in results:
            return response("400 Bad Request", "", b"")
        reply = {"jsonrpc": "2.0", "id": message["id"], "result": results[method]}
        return response("200 OK", "application/json", json.dumps(reply).encode(), f"mcp-session-id: {self.begun}\r\n")


@pytest.mark.parametrize(
    ("forgotten", "kind"),
    [
        (b"", ""),
        (b"Not here", "text/plain"),
        (b'{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}', "application/json"),
        (b'{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"?"}}', "application/json"),
    ],
)
async def test_a_session_that_the_server_forgot_is_begun_anew(
    lab: Lab, connect: Callable[..., Any], forgotten: bytes, kind: str
) -> None:
    far = Sessions(forgotten, kind)
    async with (
        far.serve() as url,
        lab.serving(lab.at("far", url)) as address,
        connect(address + "/mcp", "legacy") as client,
    ):
        far.begun += 1
        told = text_of(await client.call_tool("get", {}))
        assert told == "Server 'far' was restarted; nothing was run. Repeat the call."
        assert far.called == []
        await lab.saw("ready", "far", 2)
        assert not (await client.call_tool("get", {})).is_error


async def test_a_404_that_answers_the_request_itself_is_the_servers_own_error(
    lab: Lab, connect: Callable[..., Any]
) -> None:
    far = Sessions(b'{"jsonrpc":"2.0","id":ID,"error":{"code":-32601,"message":"No such thing"}}', "application/json")
    async with (
        far.serve() as url,
        lab.serving(lab.at("far", url)) as address,
        connect(address + "/mcp", "legacy") as client,
    ):
        far.begun += 1
        with pytest.raises(MCPError, match="No such thing"):
            await client.call_tool("get", {})


async def test_a_stream_that_ends_unanswered_leaves_the_outcome_unknown(lab: Lab, connect: Callable[..., Any]) -> None:
    far = Sessions(b"", "")
    far.breaks_off = True
    async with (
        far.serve() as url,
        lab.serving(lab.at("far", url)) as address,
        connect(address + "/mcp", "legacy") as client,
    ):
        told = text_of(await client.call_tool("get", {}))
    assert told.startswith("Server 'far' closed the connection before it answered")
    assert told.endswith("Whether the call took effect is unknown; check before you repeat it.")
    assert far.called == ["1"]


async def test_what_the_transport_says_of_itself_is_told_to_no_client(
    lab: Lab, connect: Callable[..., Any], upstreams: Upstreams
) -> None:
    shelf = Shelf("a", uris=("test://y",), refuses="stateless")
    async with anyio.create_task_group() as tasks:
        url, stop = await tasks.start(upstreams.hold, shelf.server)
        async with (
            lab.serving(lab.at("a", url)) as address,
            connect(address + "/mcp", "legacy") as client,
        ):
            await client.list_resources()
            await stop()
            with pytest.raises(MCPError) as caught:
                await client.subscribe_resource("test://y")
    assert caught.value.error.data is None
    assert caught.value.error.message.startswith("Server 'a' cannot be reached")

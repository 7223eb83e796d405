"""Answers of servers over HTTP that are none: each becomes a text that says which server, what, and what to do."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from tests.gateway.conftest import text_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from tests.gateway.conftest import Lab

pytestmark = pytest.mark.anyio

WRONG_ANSWERS = [
    (("200 OK", "text/html", b"<html>log in</html>"), "content of type text/html"),
    (("200 OK", "", b"{}"), "content of type nothing"),
    (("202 Accepted", "application/json", b""), "HTTP 202 instead of an answer"),
    (("204 No Content", "", b""), "HTTP 204 instead of an answer"),
    (("304 Not Modified", "", b""), "HTTP 304 instead of an answer"),
    (("200 OK", "application/json", b"[1]"), "a body that is no JSON-RPC object"),
    (("200 OK", "application/json", b"nonsense"), "a body that is no JSON-RPC object"),
    (("200 OK", "application/json", b'{"ok": true}'), "a body that is no JSON-RPC object"),
    (("200 OK", "application/json", b'{"jsonrpc": "2.0", "id": ID, "result": [1]}'), "a result that is no object"),
    (
        ("200 OK", "application/json", b'{"jsonrpc": "2.0", "id": "other", "result": {}}'),
        "the answer to another request",
    ),
]


@pytest.mark.parametrize(("answer", "expected"), WRONG_ANSWERS)
async def test_what_is_no_answer_names_the_server_and_what_to_do(
    lab: Lab, connect: Callable[..., Any], answer: tuple[str, str, bytes], expected: str
) -> None:
    async with (
        odd_server(*answer) as url,
        lab.serving(lab.at("far", url)) as address,
        connect(address + "/mcp", "legacy") as client,
    ):
        result = await client.call_tool("get", {})
    said = text_of(result)

    assert result.is_error
    assert said.startswith(f"Server 'far' answers against the protocol ({expected})")
    assert said.endswith("Check that it is an MCP server, or report it to its authors.")


async def test_an_answer_of_a_wrong_shape_is_not_waited_for_over_stdio(lab: Lab, connect: Callable[..., Any]) -> None:
    async with (
        lab.serving(lab.normal("w", "shapeless", "get")) as address,
        connect(address + "/mcp", "legacy") as client,
    ):
        result = await client.call_tool("shapeless", {})
        assert text_of(await client.call_tool("get", {})) == "w:get"

    assert result.is_error
    assert "Server 'w' answers against the protocol (an answer whose shape is wrong)" in text_of(result)


@asynccontextmanager
async def odd_server(status: str, kind: str, body: bytes) -> AsyncIterator[str]:
    """Serve the handshake and the list as they should be, and this for calls."""

    async def serve(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            text = b""
            while b"\r\n\r\n" not in text or len(text) < _whole(text):
                text += await stream.receive()
            await stream.send(_answer(text.partition(b"\r\n\r\n")[2]))

    def _answer(asked: bytes) -> bytes:
        message = json.loads(asked or b"{}")
        id, method = json.dumps(message.get("id")).encode(), message.get("method")
        if method == "tools/call":
            return _response(status, kind, body.replace(b"ID", id))
        results: dict[str, Any] = {
            "initialize": {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "x", "version": "1"},
            },
            "tools/list": {"tools": [{"name": "get", "inputSchema": {"type": "object"}}]},
            "ping": {},
        }
        if method in results:
            reply = {"jsonrpc": "2.0", "id": message["id"], "result": results[method]}
            return _response("200 OK", "application/json", json.dumps(reply).encode())
        return _response("202 Accepted" if "id" not in message and message else "405 No", "", b"")

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, serve)
        yield f"http://127.0.0.1:{listener.extra(anyio.abc.SocketAttribute.local_port)}/mcp"
        tasks.cancel_scope.cancel()


def _whole(text: bytes) -> int:
    head, _, _ = text.partition(b"\r\n\r\n")
    length = next((int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if b"content-length:" in line), 0)
    return len(head) + 4 + length


def _response(status: str, kind: str, body: bytes) -> bytes:
    named = f"content-type: {kind}\r\n" if kind else ""
    length = "" if status.startswith(("204", "304")) else f"content-length: {len(body)}\r\n"
    return f"HTTP/1.1 {status}\r\n{named}{length}connection: close\r\n\r\n".encode() + body

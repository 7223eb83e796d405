"""Test support: answers, used by tests of several modules."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


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

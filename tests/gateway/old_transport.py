"""Servers of the old transport (2024-11-05): one stream of events, messages sent beside it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anyio
from mcp.server.sse import SseServerTransport
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Mount, Route

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp.server.lowlevel.server import Server
    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

Headers = tuple[tuple[bytes, bytes], ...]
STREAM: Headers = ((b"content-type", b"text/event-stream"),)


def old_app(server: Server[Any]) -> ASGIApp:
    """Serve an SDK server at /sse, by the SDK's own old transport."""
    transport = SseServerTransport("/messages/")

    async def stream(request: Request) -> Response:
        async with transport.connect_sse(request.scope, request.receive, request._send) as (read, write):
            await server.run(read, write, server.create_initialization_options())
        return Response()

    routes = [Route("/sse", endpoint=stream), Mount("/messages/", app=transport.handle_post_message)]
    return Starlette(routes=routes)


def event(message: dict[str, Any], kind: str = "message") -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'jsonrpc': '2.0', **message})}\n\n".encode()


class HandWritten:
    """An ASGI application that answers as its subclass says; ``first`` is sent on each stream at once."""

    first: bytes = b"event: endpoint\ndata: /post?session=1\n\n"
    status = 200
    head: Headers = STREAM

    def __init__(self) -> None:
        self.streams = 0
        self.posted: list[dict[str, Any]] = []
        self.refused: list[str] = []
        self._send: Callable[[Message], Awaitable[None]] | None = None
        self._over = anyio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        if scope["method"] == "GET":
            await self.stream(receive, send)
        elif scope["path"] == "/sse":
            self.refused.append(scope["method"])
            await self.reply(send, 405)
        else:
            await self.post(receive, send)

    async def stream(self, receive: Receive, send: Send) -> None:
        self.streams += 1
        self._over, self._send = anyio.Event(), send
        await send({"type": "http.response.start", "status": self.status, "headers": self.head})
        await self.say(self.first)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._until_gone, receive)
            await self._over.wait()
            tasks.cancel_scope.cancel()
        await send({"type": "http.response.body", "body": b""})

    async def _until_gone(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            continue
        self._over.set()

    async def say(self, chunk: bytes) -> None:
        assert self._send is not None
        await self._send({"type": "http.response.body", "body": chunk, "more_body": True})

    def end(self) -> None:
        self._over.set()

    async def post(self, receive: Receive, send: Send) -> None:
        body = bytearray()
        while (part := await receive()).get("more_body"):
            body += part["body"]
        message = json.loads(bytes(body + part["body"]))
        self.posted.append(message)
        status = await self.taken(message)
        await self.reply(send, status)

    @staticmethod
    async def reply(send: Send, status: int) -> None:
        await send({"type": "http.response.start", "status": status, "headers": ()})
        await send({"type": "http.response.body", "body": b""})

    async def taken(self, message: dict[str, Any]) -> int:
        """Take a message; return the status that it is answered with."""
        if "id" in message:
            result = self.result(message["method"], message.get("params") or {})
            await self.say(event({"id": message["id"], "result": result}))
        return 202

    def result(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method == "initialize":
            told = {"name": "old", "version": "1"}
            return {"protocolVersion": "2024-11-05", "capabilities": {"tools": {}}, "serverInfo": told}
        if method == "tools/list":
            return {"tools": [{"name": "get", "inputSchema": {"type": "object"}}]}
        if method == "tools/call":
            return {"content": [{"type": "text", "text": f"old:{params['name']}"}]}
        return {}

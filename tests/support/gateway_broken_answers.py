"""Test support: broken answers, used by tests of several modules."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import anyio

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send


JSON = (b"content-type", b"application/json")


EVENTS = (b"content-type", b"text/event-stream")


def event(message: dict[str, Any] | None, id: str = "", retry: int | None = None) -> bytes:
    lines = [f"id: {id}"] if id else []
    lines += [] if retry is None else [f"retry: {retry}"]
    lines.append(f"data: {json.dumps({'jsonrpc': '2.0', **message})}" if message else "data:")
    return "".join(line + "\n" for line in lines).encode() + b"\n"


class Breaking:
    """A server of the handshake versions that does with the stream of a call what the tool's name says."""

    names: tuple[str, ...] = ("poll", "tear", "plain", "refuse", "endless", "silent", "slow", "ask", "get")

    def __init__(self) -> None:
        self.posted: Counter[str] = Counter()
        self.resumed: Counter[str] = Counter()
        self.ids: dict[str, Any] = {}
        self.answers: dict[Any, Any] = {}
        self.answered = anyio.Event()
        self.headers: list[dict[str, str]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = {key.decode(): value.decode() for key, value in scope["headers"]}
        if scope["method"] == "GET" and "last-event-id" in headers:
            self.headers.append(headers)
            await self._again(headers["last-event-id"], send)
        elif scope["method"] == "POST":
            body = bytearray()
            while (part := await receive()).get("more_body"):
                body += part["body"]
            await self._post(json.loads(bytes(body + part["body"])), send)
        else:
            await self.follow(send)

    async def follow(self, send: Send) -> None:
        """Answer who asks for the stream of what belongs to no call."""
        await self._send(send, 405)

    @staticmethod
    async def _send(send: Send, status: int, body: bytes = b"", *headers: tuple[bytes, bytes]) -> None:
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _post(self, message: dict[str, Any], send: Send) -> None:
        method, params, id = message.get("method"), message.get("params") or {}, message.get("id")
        if method is None:
            self.answers[id] = message["result"]
            self.answered.set()
        if id is None or method is None:
            await self._send(send, 202)
        elif method == "tools/call":
            name = params["name"]
            self.posted[name] += 1
            self.ids[name] = id
            await self._send(send, 200, self.first(name), EVENTS)
        elif method == "server/discover":
            await self._send(send, 400)
        else:
            body = json.dumps({"jsonrpc": "2.0", "id": id, "result": self.result(method)}).encode()
            await self._send(send, 200, body, JSON, (b"mcp-session-id", b"s1"))

    def result(self, method: str) -> dict[str, Any]:
        if method == "initialize":
            told = {"name": "far", "version": "1"}
            return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": told}
        tools = [{"name": name, "inputSchema": {"type": "object"}} for name in self.names]
        return {"tools": tools} if method == "tools/list" else {}

    def first(self, name: str) -> bytes:
        """What the stream of the call itself has before it breaks off."""
        if name == "get":
            return self.answer(name)
        if name == "tear":
            return event(None, "tear-0", 10) + self.answer(name)[:30]
        if name == "plain":
            return event({"method": "notifications/message", "params": {"level": "info", "data": "x"}})
        return event(None, f"{name}-0", 0 if name == "endless" else 60_000 if name == "slow" else 10)

    def answer(self, name: str) -> bytes:
        result = {"content": [{"type": "text", "text": f"far:{name}"}]}
        return event({"id": self.ids[name], "result": result}, f"{name}-end")

    async def _again(self, last: str, send: Send) -> None:
        name, _, place = last.partition("-")
        self.resumed[name] += 1
        if name == "refuse":
            await self._send(send, 405)
        elif name == "silent":
            await self._send(send, 200, b"", EVENTS)
        elif name == "endless" or (name == "poll" and int(place) < 5):
            await self._send(send, 200, event(None, f"{name}-{int(place) + 1}"), EVENTS)
        elif name == "ask":
            await self._ask(place, send)
        else:
            await self._send(send, 200, self.answer(name), EVENTS)

    async def _ask(self, place: str, send: Send) -> None:
        if place == "0":
            form = {
                "message": "Who?",
                "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
            }
            await self._send(
                send, 200, event({"id": 99, "method": "elicitation/create", "params": form}, "ask-1"), EVENTS
            )
        else:
            await self.answered.wait()
            await self._send(send, 200, self.answer("ask"), EVENTS)

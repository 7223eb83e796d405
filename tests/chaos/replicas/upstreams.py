"""`python -m tests.chaos.replicas.upstreams JOURNAL KEY...`: upstream servers over HTTP, that are changed by commands.

It prints the port of each server as one JSON object, and takes one command for each line of standard input:
``{"server": KEY, "tools": {NAME: VERSION}}`` changes a list and announces it, ``"up": false`` leaves. Each call is
written to the journal before it is answered. The journal outlives the process, which nobody kills.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import time
from typing import Any, Final

_SCHEMA: Final = {
    "type": "object",
    "properties": {"nonce": {"type": "string"}, "seconds": {"type": "number"}},
    "required": ["nonce"],
}
# What each gateway sends in a header, so that the journal tells which one had a tool run.
_BY: Final = re.compile(rb"(?m)^x-gateway: *([0-9]+)\r?$")
_JSON: Final = (
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nmcp-session-id: %s\r\ncontent-length: %d\r\n\r\n%s"
)
_EMPTY: Final = b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n"
_STREAM: Final = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_CHANGED: Final = b'data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\n'


def definition(name: str, version: int) -> dict[str, Any]:
    """Return a tool; the checker reads the version of its definition from its description."""
    return {"name": name, "description": f"Answers what it is, definition {version}.", "inputSchema": _SCHEMA}


class Upstream:
    """One server, on a port of its own that it keeps when it leaves and joins again."""

    def __init__(self, key: str, journal: int) -> None:
        self.key = key
        self.port = 0
        self.tools: dict[str, int] = {}
        self.open: set[asyncio.Transport] = set()
        self.streams: set[asyncio.Transport] = set()
        self._journal = journal
        self._listening: asyncio.Server | None = None

    async def join(self) -> None:
        if self._listening is None:
            loop = asyncio.get_running_loop()
            self._listening = await loop.create_server(lambda: _Connection(self), "127.0.0.1", self.port)
            self.port = self._listening.sockets[0].getsockname()[1]

    def leave(self) -> None:
        if self._listening is not None:
            self._listening.close()
            self._listening = None
        for one in list(self.open):
            one.abort()

    def change(self, tools: dict[str, int]) -> None:
        self.tools = tools
        for one in self.streams:
            one.write(b"%x\r\n%s\r\n" % (len(_CHANGED), _CHANGED))

    def answer(self, message: dict[str, Any], by: int) -> dict[str, Any]:
        params = message.get("params") or {}
        match message["method"]:
            case "tools/call":
                return self._call(params["name"], params["arguments"]["nonce"], by)
            case "tools/list":
                return {"result": {"tools": [definition(*one) for one in self.tools.items()]}}
            case "initialize":
                info = {"name": self.key, "version": "1"}
                capabilities = {"tools": {"listChanged": True}}
                version = params["protocolVersion"]
                return {"result": {"protocolVersion": version, "capabilities": capabilities, "serverInfo": info}}
            case "ping":
                return {"result": {}}
        return {"error": {"code": -32601, "message": "Method not found"}}

    def _call(self, name: str, nonce: str, by: int) -> dict[str, Any]:
        if name not in self.tools:
            return {"error": {"code": -32602, "message": f"Unknown tool {name}; nothing was run."}}
        ran = {"server": self.key, "tool": name, "nonce": nonce, "at": time.monotonic(), "by": by}
        os.write(self._journal, (json.dumps(ran) + "\n").encode())
        return {"result": {"content": [{"type": "text", "text": json.dumps(ran)}]}}


class _Connection(asyncio.Protocol):
    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._upstream.open.add(transport)

    def connection_lost(self, _: Exception | None) -> None:
        self._upstream.open.discard(self._transport)
        self._upstream.streams.discard(self._transport)

    def data_received(self, chunk: bytes) -> None:
        self._buffer += chunk
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[:end].lower()
            whole = end + 4 + int(head.partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
            if len(self._buffer) < whole:
                return
            body, self._buffer = self._buffer[end + 4 : whole], self._buffer[whole:]
            self._respond(head, body)

    def _respond(self, head: bytes, body: bytes) -> None:
        if head.startswith(b"get"):
            self._upstream.streams.add(self._transport)
            self._transport.write(_STREAM)
            return
        message = json.loads(body) if head.startswith(b"post") else {}
        if "id" not in message:
            self._transport.write(_EMPTY)
            return
        by = int(found[1]) if (found := _BY.search(head)) else -1
        text = json.dumps({"jsonrpc": "2.0", "id": message["id"], **self._upstream.answer(message, by)}).encode()
        response = _JSON % (self._upstream.key.encode(), len(text), text)
        if seconds := (message.get("params") or {}).get("arguments", {}).get("seconds", 0):
            asyncio.get_running_loop().call_later(seconds, self._transport.write, response)
        else:
            self._transport.write(response)


async def main(journal: str, keys: list[str]) -> None:
    file = os.open(journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    upstreams = {key: Upstream(key, file) for key in keys}
    for one in upstreams.values():
        await one.join()
    sys.stdout.write(json.dumps({key: one.port for key, one in upstreams.items()}) + "\n")
    sys.stdout.flush()
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        command = json.loads(line)
        upstream = upstreams[command["server"]]
        if "tools" in command:
            upstream.change(command["tools"])
        if command.get("up") is True:
            await upstream.join()
        elif command.get("up") is False:
            upstream.leave()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2:]))

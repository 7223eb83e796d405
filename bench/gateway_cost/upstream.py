"""A server that costs next to nothing, so that what is in front of it is measured.

`python -m bench.gateway_cost.upstream TOOLS [PORT]`: over HTTP on a port, else over standard input and output. It
speaks the handshake eras, and answers a call with its tool's own name and the text that was sent.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any, Final

__all__ = ["Server", "definitions", "over_stdio"]

_SCHEMA: Final = {
    "type": "object",
    "properties": {"text": {"type": "string", "description": "What is sent back."}},
    "required": ["text"],
}
_EMPTY: Final = b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n"
_NOT_SERVED: Final = b"HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n"
_HEAD: Final = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: "


def definitions(count: int) -> list[dict[str, Any]]:
    """Return that many tools: ``tool_00000``, ``tool_00001``..."""
    names = (f"tool_{number:05}" for number in range(count))
    return [{"name": name, "description": f"Sends a text back ({name}).", "inputSchema": _SCHEMA} for name in names]


class Server:
    """The answers to messages; None to what is not answered."""

    def __init__(self, listed: list[dict[str, Any]]) -> None:
        self._tools = {"tools": listed}

    def answer(self, message: bytes) -> bytes | None:
        asked = json.loads(message)
        if "id" not in asked:
            return None
        said = self._said(asked["method"], asked.get("params") or {})
        return json.dumps({"jsonrpc": "2.0", "id": asked["id"], **said}).encode()

    def _said(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        match method:
            case "tools/call":
                text = f"{params['name']}:{params['arguments']['text']}"
                return {"result": {"content": [{"type": "text", "text": text}]}}
            case "tools/list":
                return {"result": self._tools}
            case "initialize":
                info = {"name": "cheap", "version": "1"}
                capabilities: dict[str, Any] = {"tools": {}}
                version = params["protocolVersion"]
                return {"result": {"protocolVersion": version, "capabilities": capabilities, "serverInfo": info}}
            case "ping":
                return {"result": {}}
            case _:
                return {"error": {"code": -32601, "message": "Method not found"}}


class _OverHttp(asyncio.Protocol):
    def __init__(self, server: Server) -> None:
        self._server = server
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, chunk: bytes) -> None:
        self._buffer += chunk
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[:end].lower()
            size = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
            whole = end + 4 + size
            if len(self._buffer) < whole:
                return
            body, self._buffer = self._buffer[end + 4 : whole], self._buffer[whole:]
            self._transport.write(self._response(head, body))

    def _response(self, head: bytes, body: bytes) -> bytes:
        if not head.startswith(b"post"):
            return _NOT_SERVED
        answer = self._server.answer(body)
        return _EMPTY if answer is None else b"%s%d\r\n\r\n%s" % (_HEAD, len(answer), answer)


async def _over_http(server: Server, port: int) -> None:
    listening = await asyncio.get_running_loop().create_server(lambda: _OverHttp(server), "127.0.0.1", port)
    await listening.serve_forever()


def over_stdio(server: Server) -> None:
    for line in sys.stdin.buffer:
        if (answer := server.answer(line)) is not None:
            sys.stdout.buffer.write(answer + b"\n")
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    cheap = Server(definitions(int(sys.argv[1])))
    if len(sys.argv) > 2:
        asyncio.run(_over_http(cheap, int(sys.argv[2])))
    else:
        over_stdio(cheap)

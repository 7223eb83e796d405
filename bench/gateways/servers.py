"""The synthetic servers behind every gateway: cheap, so that what stands in front of them is measured.

It is a script by itself, because a gateway that starts its servers runs it without this project's path:

    servers.py http PORT SERVERS TOOLS [CERTIFICATE KEY]   all servers in one process, at /s0/mcp, /s1/mcp ...
    servers.py stdio KEY TOOLS                             one server on standard input and output

Every tool returns its message with its own origin in front, ``s0 00003:MESSAGE``, and its description begins with the
origin, ``[s0 00003]``. So the load knows which tool a displayed name stands for, and which tool has answered. The
origin is spelled as no gateway spells a name, because some rewrite the names that descriptions mention.

POST /bytes/N answers with N bytes that were made beforehand: the direct answer of the same size.
"""

from __future__ import annotations

import asyncio
import json
import sys
from functools import cache
from typing import Any, Final

__all__ = ["MODERN", "Server", "server_key"]

MODERN: Final = "2026-07-28"
_PREFIX: Final = "tool_"
_HANDSHAKE: Final = ("2025-11-25", "2025-06-18", "2025-03-26")
_META_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
# Results of the stateless version say whether they are complete, and how long they may be kept.
_CACHEABLE: Final[dict[str, Any]] = {"ttlMs": 600_000, "cacheScope": "public", "resultType": "complete"}
_CALLED: Final = b'{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":%s}],"isError":false%s}}'
_CAPABILITIES: Final[dict[str, Any]] = {"tools": {"listChanged": False}}
_METHOD_NOT_FOUND: Final = -32601
_NOT_FOUND: Final = b'"code":%d' % _METHOD_NOT_FOUND


def server_key(number: int) -> str:
    """Return the key of a server, which is also the first part of its path."""
    return f"s{number}"


def _tool(key: str, number: int) -> dict[str, Any]:
    return {
        "name": f"{_PREFIX}{number:05}",
        "description": f"[{key} {number:05}] Returns the message with the origin of the tool in front of it.",
        "inputSchema": {
            "type": "object",
            "properties": {"message": {"type": "string", "description": "The text to return."}},
            "required": ["message"],
        },
    }


class Server:
    """The answers of one server, in the handshake versions and in the stateless one."""

    def __init__(self, key: str, tools: int) -> None:
        listed = {"tools": [_tool(key, number) for number in range(tools)]}
        self._key = key
        self._listed = {
            False: json.dumps(listed, separators=(",", ":")).encode(),
            True: json.dumps(listed | _CACHEABLE, separators=(",", ":")).encode(),
        }

    def answer(self, message: bytes) -> bytes | None:
        """Return the response to a request, None to a notification."""
        asked = json.loads(message)
        if "id" not in asked:
            return None
        params = asked.get("params") or {}
        modern = (params.get("_meta") or {}).get(_META_VERSION) == MODERN
        number = json.dumps(asked["id"]).encode()
        if asked["method"] == "tools/call":
            # Built by hand: the servers share two processors with what is measured.
            origin = f"{self._key} {params['name'].removeprefix(_PREFIX)}"
            text = json.dumps(f"{origin}:{params['arguments']['message']}").encode()
            complete = b',"resultType":"complete"' if modern else b""
            return _CALLED % (number, text, complete)
        if asked["method"] == "tools/list":
            return b'{"jsonrpc":"2.0","id":%s,"result":%s}' % (number, self._listed[modern])
        answer = self._answer(asked["method"], params, modern)
        return b'{"jsonrpc":"2.0","id":%s,%s}' % (number, json.dumps(answer, separators=(",", ":")).encode()[1:-1])

    def _answer(self, method: str, params: dict[str, Any], modern: bool) -> dict[str, Any]:
        info = {"name": self._key, "version": "1"}
        match method:
            case "initialize":
                asked = params["protocolVersion"]
                version = asked if asked in _HANDSHAKE else _HANDSHAKE[0]
                return {"result": {"protocolVersion": version, "capabilities": _CAPABILITIES, "serverInfo": info}}
            case "server/discover" if modern:
                return {
                    "result": {
                        "supportedVersions": [MODERN],
                        "capabilities": _CAPABILITIES,
                        "serverInfo": info,
                        **_CACHEABLE,
                    }
                }
            case "ping":
                return {"result": {}}
            case _:
                return {"error": {"code": _METHOD_NOT_FOUND, "message": "Method not found"}}


@cache
def _page(size: int) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"filler": ""}}).encode()
    return body[:-3] + b"x" * (size - len(body)) + body[-3:]


def _response(body: bytes, *, status: bytes = b"200 OK", header: bytes = b"") -> bytes:
    head = b"HTTP/1.1 %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\n%s\r\n"
    return head % (status, len(body), header) + body


class _Connection(asyncio.Protocol):
    """HTTP/1.1 as far as the compared gateways and the load need it."""

    def __init__(self, servers: dict[bytes, Server]) -> None:
        from httptools import HttpRequestParser  # noqa: PLC0415  # over stdio this program needs nothing installed

        self._servers = servers
        self._parser = HttpRequestParser(self)
        self._body: list[bytes] = []
        self._path = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_begin(self) -> None:
        self._body.clear()
        self._path = b""

    def on_url(self, url: bytes) -> None:
        self._path += url

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        self._transport.write(self._respond(self._parser.get_method(), b"".join(self._body)))

    def _respond(self, verb: bytes, body: bytes) -> bytes:
        if verb != b"POST":
            return _response(b"", status=b"200 OK" if verb == b"DELETE" else b"405 Method Not Allowed")
        _, key, *_ = self._path.split(b"/")
        if key == b"bytes":
            return _response(_page(int(self._path.rpartition(b"/")[2])))
        answer = self._servers[key].answer(body)
        if answer is None:
            return _response(b"", status=b"202 Accepted")
        if b'"initialize"' in body[:200]:
            return _response(answer, header=b"mcp-session-id: session-%s\r\n" % key)
        if _NOT_FOUND in answer[:100] and MODERN.encode() in body:
            return _response(answer, status=b"404 Not Found")
        return _response(answer)


async def _over_http(port: int, servers: dict[bytes, Server], certificate: list[str]) -> None:
    import ssl  # noqa: PLC0415

    context = None
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
    loop = asyncio.get_running_loop()
    listening = await loop.create_server(lambda: _Connection(servers), "127.0.0.1", port, ssl=context, backlog=1024)
    await listening.serve_forever()


def _over_stdio(server: Server) -> None:
    for line in sys.stdin.buffer:
        if line.strip() and (answer := server.answer(line)) is not None:
            sys.stdout.buffer.write(answer + b"\n")
            sys.stdout.buffer.flush()


def main(kind: str, *words: str) -> None:
    """Serve until the input ends or a signal comes."""
    if kind == "stdio":
        _over_stdio(Server(words[0], int(words[1])))
        return
    import uvloop  # noqa: PLC0415

    port, count, tools, *certificate = words
    servers = {server_key(number).encode(): Server(server_key(number), int(tools)) for number in range(int(count))}
    uvloop.run(_over_http(int(port), servers, certificate))


if __name__ == "__main__":
    main(*sys.argv[1:])

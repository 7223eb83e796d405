"""Replay the tool lists of many servers over HTTP: `python -m tests.export.replay FILE PORT`.

The file has ``{key: [definition, ...]}``; server number N is at ``/N/mcp``, in the order of the file. A call answers
with the server's key and the tool's own name, so the caller knows which tool has run.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import uvicorn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["address"]

_MODERN: Final = "2026-07-28"
_META_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
# Results of the stateless version say whether they are complete, and how long they may be kept.
_COMPLETE: Final[dict[str, Any]] = {"resultType": "complete", "ttlMs": 600_000, "cacheScope": "public"}
_VERSIONS: Final = ("2025-11-25", "2025-06-18", "2025-03-26")
_METHOD_NOT_FOUND: Final = -32601
_UNKNOWN_TOOL: Final = -32602


def address(port: int, number: int) -> str:
    """Return the URL of a server."""
    return f"http://127.0.0.1:{port}/{number}/mcp"


class ReplayedServers:
    """The answers of all servers, without any state."""

    def __init__(self, lists: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        self._servers = [(key, list(tools), {tool["name"] for tool in tools}) for key, tools in lists.items()]

    def answer(self, number: int, asked: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the response to a request, None to a notification."""
        if "id" not in asked:
            return None
        key, tools, names = self._servers[number]
        params = asked.get("params") or {}
        more = _COMPLETE if (params.get("_meta") or {}).get(_META_VERSION) == _MODERN else {}
        info = {"name": key, "version": "1"}
        answer: dict[str, Any]
        match asked["method"]:
            case "initialize":
                wanted = params.get("protocolVersion")
                version = wanted if wanted in _VERSIONS else _VERSIONS[0]
                answer = {"result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}}
            case "server/discover" if more:
                found = {"supportedVersions": [_MODERN], "capabilities": {"tools": {}}, "serverInfo": info}
                answer = {"result": found | more}
            case "ping":
                answer = {"result": {}}
            case "tools/list":
                answer = {"result": {"tools": tools} | more}
            case "tools/call" if params.get("name") in names:
                text = json.dumps({"server": key, "tool": params["name"]})
                answer = {"result": {"content": [{"type": "text", "text": text}], "isError": False} | more}
            case "tools/call":
                answer = {"error": {"code": _UNKNOWN_TOOL, "message": "Unknown tool"}}
            case _:
                answer = {"error": {"code": _METHOD_NOT_FOUND, "message": "Method not found"}}
        return {"jsonrpc": "2.0", "id": asked["id"], **answer}

    async def __call__(self, scope: Mapping[str, Any], receive: Any, send: Any) -> None:
        """Serve one HTTP request (ASGI)."""
        if scope["type"] != "http":
            return
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        status, content = 405, b""
        if scope["method"] == "POST":
            answer = self.answer(int(scope["path"].split("/")[1]), json.loads(body))
            status, content = (202, b"") if answer is None else (200, json.dumps(answer).encode())
        elif scope["method"] == "DELETE":
            status = 200
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": content})


def main(file: str, port: str) -> None:
    """Serve until a signal comes."""
    servers = ReplayedServers(json.loads(Path(file).read_text("utf-8")))
    uvicorn.run(servers, host="127.0.0.1", port=int(port), log_level="error", lifespan="off")


if __name__ == "__main__":
    main(*sys.argv[1:])

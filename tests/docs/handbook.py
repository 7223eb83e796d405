"""`python -m tests.docs.handbook PORT KEY`: somebody's MCP server over HTTP, which answers nobody without the key."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import uvicorn
from mcp.server import MCPServer

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

mcp = MCPServer("handbook", version="1.0.0", log_level="WARNING")


@mcp.tool()
def search(query: str) -> list[str]:
    """Search the handbook."""
    return [f"H-7: {query.title()}"]


@mcp.tool()
def read_chapter(number: int) -> str:
    """Return the text of a chapter."""
    return f"Chapter {number}"


def main(port: int, key: str) -> None:
    """Serve until the process ends."""
    inner = mcp.streamable_http_app()

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        is_known = scope["type"] != "http" or dict(scope["headers"]).get(b"authorization") == f"Bearer {key}".encode()
        if is_known:
            await inner(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": 401, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    uvicorn.run(guarded, host="127.0.0.1", port=port, log_level="error")


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])

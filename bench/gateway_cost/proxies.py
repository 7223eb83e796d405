"""The proxies beside which the gateway is measured: `python -m bench.gateway_cost.proxies KIND PORT TARGET...`.

``sdk`` is what one writes by hand on the SDK's low-level server and its client, ``fastmcp`` FastMCP's `create_proxy`
over a client that stays connected, its best case. TARGET is the server's URL, or a command and its arguments. Both have
their own defaults, but for one: the first is told its tools' schemas, for without them the SDK lists all tools at each
call of the stateless era.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import uvicorn
from mcp import Client, StdioServerParameters
from mcp.server.lowlevel.server import Server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcp.server.context import ServerRequestContext
    from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams


def by_hand(target: Any) -> Server[Any]:
    """Return a server that passes tools on: one client, connected once."""
    schemas: dict[str, dict[str, Any]] = {}

    @asynccontextmanager
    async def connected(_: object) -> AsyncIterator[Client]:
        async with Client(target) as client:
            listed = await client.list_tools()
            schemas.update({tool.name: tool.input_schema for tool in listed.tools})
            yield client

    async def tools(ctx: ServerRequestContext[Client, Any], params: PaginatedRequestParams | None) -> ListToolsResult:
        return await ctx.lifespan_context.list_tools(cursor=params.cursor if params else None)

    async def call(ctx: ServerRequestContext[Client, Any], params: CallToolRequestParams) -> CallToolResult:
        return await ctx.lifespan_context.call_tool(params.name, params.arguments)

    return Server(
        "by-hand", lifespan=connected, on_list_tools=tools, on_call_tool=call, get_tool_input_schema=schemas.get
    )


async def _sdk(target: Any, port: int) -> None:
    server = by_hand(target if isinstance(target, str) else StdioServerParameters(command=target[0], args=target[1:]))
    app = server.streamable_http_app()
    await uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning")).serve()


async def _fastmcp(target: Any, port: int) -> None:
    from fastmcp import Client as FastClient  # noqa: PLC0415 - only here, it takes a second
    from fastmcp.client.transports import StdioTransport  # noqa: PLC0415
    from fastmcp.server import create_proxy  # noqa: PLC0415

    where = {"host": "127.0.0.1", "port": port, "show_banner": False, "log_level": "warning"}
    client = FastClient(target if isinstance(target, str) else StdioTransport(target[0], list(target[1:])))
    async with client:
        await create_proxy(client).run_http_async(**where)


def main(kind: str, port: int, *target: str) -> None:
    """Serve until ended."""
    to: Any = target[0] if len(target) == 1 else list(target)
    asyncio.run(_sdk(to, port) if kind == "sdk" else _fastmcp(to, port))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])

"""A gateway by hand on the MCP SDK: `sdk_gateway.py PLACE`. It runs in an environment of its own."""

from __future__ import annotations

import json
import sys
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mcp_types as types
import uvicorn
from mcp import Client, StdioServerParameters
from mcp.server.lowlevel import Server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

PLACE = json.loads(Path(sys.argv[1]).read_text())
clients: dict[str, tuple[Client, str]] = {}
tools: dict[str, types.Tool] = {}


def target(entry: dict[str, Any]) -> Any:
    if "url" in entry:
        return entry["url"]
    return StdioServerParameters(command=entry["command"], args=entry["args"])


@asynccontextmanager
async def connected(_: Any) -> AsyncIterator[dict[str, Any]]:
    async with AsyncExitStack() as stack:
        for key, entry in PLACE["servers"].items():
            client = await stack.enter_async_context(Client(target(entry)))
            for tool in (await client.list_tools()).tools:
                shown = f"{key}_{tool.name}"
                clients[shown] = client, tool.name
                tools[shown] = tool.model_copy(update={"name": shown})
        yield {}


async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
    return types.ListToolsResult(tools=list(tools.values()))


async def call_tool(_context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    client, name = clients[params.name]
    return await client.call_tool(name, params.arguments)


def input_schema(name: str) -> dict[str, Any] | None:
    """Without this, the SDK lists all tools for each call of the stateless version."""
    return tools[name].input_schema if name in tools else None


server = Server(
    "by-hand",
    lifespan=connected,
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    get_tool_input_schema=input_schema,
)
app = server.streamable_http_app(json_response=True, max_request_body_size=64 * 1024 * 1024)
tls = dict(zip(("ssl_certfile", "ssl_keyfile"), PLACE["tls"], strict=False))
uvicorn.run(
    app,
    host="127.0.0.1",
    port=PLACE["port"],
    log_level="error",
    access_log=False,
    loop="uvloop",
    http="httptools",
    **tls,
)

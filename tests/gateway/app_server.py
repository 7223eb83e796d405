"""A server with an app: its page calls `refresh` by the bare name, and the tool says whose it is."""

from __future__ import annotations

from typing import Any

import mcp_types as types
from mcp.server.lowlevel.server import Server

__all__ = ["PAGE", "URI", "app_server"]

URI = "ui://board/index.html"
PAGE = "<!doctype html>\n<html lang=en><head><title>refresh</title></head><body>refresh</body></html>"


def app_server(
    label: str,
    *,
    kind: str = "text/html;profile=mcp-app",
    more: tuple[str, ...] = (),
    only_for_apps: tuple[str, ...] = (),
) -> Server[Any]:
    """Return the server. Its page is not listed: a tool links to it."""

    async def list_tools(_: Any, __: object) -> types.ListToolsResult:
        plain = {"type": "object"}
        ui = {"ui": {"resourceUri": URI, "visibility": ["model", "app"], "x": 1}, "ui/resourceUri": URI}
        names = ("refresh", "show", *more)
        tools = [types.Tool(name=name, input_schema=plain, _meta=ui) for name in names]
        own = {"ui": {"visibility": ["app"]}}
        tools += [types.Tool(name=name, input_schema=plain, _meta=own) for name in only_for_apps]
        return types.ListToolsResult(tools=tools)

    async def call_tool(_: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        return types.CallToolResult(content=[types.TextContent(text=f"{label}:{params.name}")])

    async def list_resources(_: Any, __: object) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=[])

    async def read(_: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        page = PAGE if params.uri == URI else f"{label}:{params.uri}"
        said = types.TextResourceContents(uri=params.uri, text=page, mime_type=kind, _meta={"ui": {"csp": {}}})
        return types.ReadResourceResult(contents=[said])

    return Server(
        label,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_read_resource=read,
    )

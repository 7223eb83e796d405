"""A server with an app: its page calls `refresh` by the bare name, and the tool says whose it is."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.server.apps import client_supports_apps
from mcp.server.lowlevel.server import Server

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["PAGE", "URI", "app_server"]

URI = "ui://board/index.html"
PAGE = "<!doctype html>\n<html lang=en><head><title>refresh</title></head><body>refresh</body></html>"


def app_server(
    label: str,
    *,
    kind: str = "text/html;profile=mcp-app",
    more: tuple[str, ...] = (),
    only_for_apps: tuple[str, ...] = (),
    plain: tuple[str, ...] = (),
    page: str = PAGE,
    link: str = URI,
    is_gated: bool = False,
    prompt: types.PromptMessage | None = None,
    results: Mapping[str, types.CallToolResult] = MappingProxyType({}),
) -> Server[Any]:
    """Return the server. Its page is not listed: a tool links to it.

    One that ``is_gated`` has apps for clients that declare them, and says whether its caller does. ``results`` are what
    tools give.
    """

    async def list_tools(ctx: Any, _: object) -> types.ListToolsResult:
        schema = {"type": "object"}
        has_apps = not is_gated or client_supports_apps(ctx)
        meta = {"ui": {"resourceUri": link, "visibility": ["model", "app"], "x": 1}, "ui/resourceUri": link}
        ui = meta if has_apps else {}
        names = ("refresh", "show", *more)
        tools = [types.Tool(name=name, input_schema=schema, _meta=ui) for name in names]
        tools += [types.Tool(name=name, input_schema=schema) for name in plain]
        own = {"ui": {"visibility": ["app"]}}
        tools += [types.Tool(name=name, input_schema=schema, _meta=own) for name in only_for_apps if has_apps]
        return types.ListToolsResult(tools=tools)

    async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name in results:
            return results[params.name]
        said = f":{client_supports_apps(ctx)}" if is_gated else ""
        return types.CallToolResult(content=[types.TextContent(text=f"{label}:{params.name}{said}")])

    async def list_resources(_: Any, __: object) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=[])

    async def read(_: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        found = page if params.uri == URI else f"{label}:{params.uri}"
        said = types.TextResourceContents(uri=params.uri, text=found, mime_type=kind, _meta={"ui": {"csp": {}}})
        return types.ReadResourceResult(contents=[said])

    async def list_prompts(_: Any, __: object) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=[] if prompt is None else [types.Prompt(name="ask")])

    async def get_prompt(_: Any, __: object) -> types.GetPromptResult:
        return types.GetPromptResult(messages=[] if prompt is None else [prompt])

    return Server(
        label,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_read_resource=read,
    )

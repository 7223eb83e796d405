"""`python -m tests.conformance.fixture`: a server with everything that the official suite asks a server for.

It is written on the SDK's low-level server and speaks both eras; over HTTP it prints its address first.
"""

from __future__ import annotations

import argparse
import socket
import sys
from typing import TYPE_CHECKING, Any, Final

import anyio
import uvicorn
from mcp.server.caching import CacheHint
from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, PromptsListChanged, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    CallToolRequestParams,
    CallToolResult,
    CompleteRequestParams,
    CompleteResult,
    Completion,
    EmptyResult,
    GetPromptRequestParams,
    GetPromptResult,
    InputRequiredResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    ReadResourceRequestParams,
    ReadResourceResult,
    Tool,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from tests.conformance.asking import ASKING_PROMPTS, ASKING_TOOLS
from tests.conformance.contents import text
from tests.conformance.events import Events
from tests.conformance.prompts import PROMPTS, completed, described, said
from tests.conformance.resources import RESOURCES, TEMPLATES, contents_of
from tests.conformance.tasks import TaskedTools
from tests.conformance.tools import SCHEMAS, TOOLS, answered

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from mcp.server.subscriptions import ServerEvent
    from mcp_types import ContentBlock

__all__ = ["Everything", "refusing"]

Request = ServerRequestContext[Any, Any]

_NAME: Final = "everything"
_NO_ARGUMENTS: Final = {"type": "object", "properties": {}}
_UNKNOWN_RESOURCE: Final = -32002
_TOOL_CHANGE: Final = "test_trigger_tool_change"
_PROMPT_CHANGE: Final = "test_trigger_prompt_change"
# Comes and goes when a change is triggered, so that the lists do change.
_COMES_AND_GOES: Final = "test_comes_and_goes"
_RETRY_AFTER_MS: Final = 500
_CACHED: Final = CacheHint(ttl_ms=1000, scope="public")
_AT_ONCE_STALE: Final = CacheHint(ttl_ms=0, scope="public")


class Everything:
    """The server's state: whether the tool, and the prompt, that come and go are there."""

    def __init__(self) -> None:
        self._shown: dict[type[ServerEvent], bool] = {ToolsListChanged: False, PromptsListChanged: False}
        self._bus = InMemorySubscriptionBus()
        self._tasked = TaskedTools(_NAME)
        self.server = _Announcing(
            _NAME,
            version="1",
            instructions="Everything that a conformance suite asks for.",
            on_list_tools=self._list_tools,
            on_call_tool=self._call,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._prompt,
            on_list_resources=_list_resources,
            on_list_resource_templates=_list_templates,
            on_read_resource=_read,
            on_subscribe_resource=_accept,
            on_unsubscribe_resource=_accept,
            on_set_logging_level=_accept,
            on_completion=_complete,
            on_subscriptions_listen=ListenHandler(self._bus),
            get_tool_input_schema=SCHEMAS.get,
            cache_hints={
                "tools/list": _AT_ONCE_STALE,
                "prompts/list": _AT_ONCE_STALE,
                "resources/list": _CACHED,
                "resources/templates/list": _CACHED,
                "resources/read": _CACHED,
            },
        )
        self.server.middleware.append(self._tasked.middleware)
        self.server.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=_NAME))

    def _tools(self) -> list[str]:
        extra = [_COMES_AND_GOES] if self._shown[ToolsListChanged] else []
        return [*TOOLS, *ASKING_TOOLS, _TOOL_CHANGE, _PROMPT_CHANGE, *extra]

    def _prompts(self) -> list[str]:
        extra = [_COMES_AND_GOES] if self._shown[PromptsListChanged] else []
        return [*PROMPTS, *ASKING_PROMPTS, *extra]

    async def _list_tools(self, _: Request, __: object) -> ListToolsResult:
        return ListToolsResult(tools=[*map(_tool, self._tools()), *self._tasked.tools])

    async def _list_prompts(self, _: Request, __: object) -> ListPromptsResult:
        return ListPromptsResult(prompts=[described(name) for name in self._prompts()])

    async def _call(self, request: Request, params: CallToolRequestParams) -> CallToolResult | InputRequiredResult:
        if dialogue := ASKING_TOOLS.get(params.name):
            reached = await dialogue.hold(request, params)
            return answered(text(reached)) if isinstance(reached, str) else reached
        if call := TOOLS.get(params.name):
            return await call(request, params.arguments or {})
        if params.name not in self._tools():
            raise MCPError(INVALID_PARAMS, f"Unknown tool: {params.name}")
        await self._change(request, params.name)
        return answered(text("Done."))

    async def _prompt(self, request: Request, params: GetPromptRequestParams) -> GetPromptResult | InputRequiredResult:
        if dialogue := ASKING_PROMPTS.get(params.name):
            reached = await dialogue.hold(request, params)
            return GetPromptResult(messages=said(text(reached))) if isinstance(reached, str) else reached
        if params.name not in self._prompts():
            raise MCPError(INVALID_PARAMS, f"Unknown prompt: {params.name}")
        words = PROMPTS.get(params.name, _comes_and_goes)
        return GetPromptResult(messages=said(*words(params.arguments or {})))

    async def _change(self, request: Request, name: str) -> None:
        changes: dict[str, tuple[ServerEvent, Callable[[], Awaitable[None]]]] = {
            _TOOL_CHANGE: (ToolsListChanged(), request.session.send_tool_list_changed),
            _PROMPT_CHANGE: (PromptsListChanged(), request.session.send_prompt_list_changed),
        }
        if name not in changes:
            return
        event, tell = changes[name]
        self._shown[type(event)] = not self._shown[type(event)]
        await self._bus.publish(event)
        if request.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            await tell()


class _Announcing(Server[Any]):
    """The SDK's server, which over HTTP doesn't say by itself that its lists can change, and knows of no tasks."""

    def get_capabilities(self, *args: Any, **more: Any) -> Any:
        return TaskedTools.announce(super().get_capabilities(*args, **more), more.get("protocol_version"))

    def create_initialization_options(
        self, notification_options: NotificationOptions | None = None, *rest: Any, **more: Any
    ) -> Any:
        options = NotificationOptions(prompts_changed=True, resources_changed=False, tools_changed=True)
        return super().create_initialization_options(notification_options or options, *rest, **more)


def _comes_and_goes(_: Mapping[str, str]) -> tuple[ContentBlock, ...]:
    return (text("I come and go."),)


def _tool(name: str) -> Tool:
    schema = SCHEMAS.get(name, _NO_ARGUMENTS)
    return Tool(name=name, description=f"Does what the suite calls {name}.", input_schema=dict(schema))


async def _list_resources(request: Request, params: object) -> ListResourcesResult:
    return ListResourcesResult(resources=RESOURCES)


async def _list_templates(request: Request, params: object) -> ListResourceTemplatesResult:
    return ListResourceTemplatesResult(resource_templates=TEMPLATES)


async def _read(request: Request, params: ReadResourceRequestParams) -> ReadResourceResult:
    if (found := contents_of(params.uri)) is None:
        is_modern = request.protocol_version in MODERN_PROTOCOL_VERSIONS
        code = INVALID_PARAMS if is_modern else _UNKNOWN_RESOURCE
        raise MCPError(code, "Resource not found", {"uri": params.uri})
    return ReadResourceResult(contents=[found])


async def _accept(request: Request, params: object) -> EmptyResult:
    return EmptyResult()


async def _complete(request: Request, params: CompleteRequestParams) -> CompleteResult:
    values = completed(params.argument.value)
    return CompleteResult(completion=Completion(values=values, total=len(values), has_more=False))


def refusing(others: str) -> ServerMiddleware[Any]:
    """Refuse what belongs to the other eras, as a server that has never heard of them."""

    async def check(ctx: Request, call_next: CallNext) -> HandlerResult:
        if ("stateless" if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS else "handshake") == others:
            raise MCPError(METHOD_NOT_FOUND, "Method not found")
        return await call_next(ctx)

    return check


async def _over_stdio(server: Server[Any]) -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def _over_http(server: Server[Any], port: int) -> None:
    listening = socket.create_server(("127.0.0.1", port))
    app = server.streamable_http_app(event_store=Events(), retry_interval=_RETRY_AFTER_MS)
    sys.stdout.write(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp\n")
    sys.stdout.flush()
    config = uvicorn.Config(app, log_level="warning", ws="none", timeout_graceful_shutdown=1)
    uvicorn.Server(config).run(sockets=[listening])


def main() -> None:
    """Serve until told to stop."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.fixture", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="the port to listen on (any)")
    parser.add_argument("--stdio", action="store_true", help="serve over standard input and output instead")
    parser.add_argument("--without", choices=["stateless", "handshake"], help="speak only the other eras")
    options = parser.parse_args()
    server = Everything().server
    if options.without:
        server.middleware.append(refusing(options.without))
    if options.stdio:
        anyio.run(_over_stdio, server)
    else:
        _over_http(server, options.port)


if __name__ == "__main__":
    main()

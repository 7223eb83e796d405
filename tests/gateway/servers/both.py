"""both.py: a server on the SDK that speaks both eras, whose tools ask by a request while they run, as most do."""

from __future__ import annotations

import os
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}}
FORM = types.ElicitRequest(params=types.ElicitRequestFormParams(message="Who?", requested_schema=SCHEMA))
HELLO = types.SamplingMessage(role="user", content=types.TextContent(type="text", text="Hi"))
SAMPLE = types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=[HELLO], max_tokens=9))


class Both:
    """``refuses`` is the era that it refuses, as one that never heard of it; what it is sent, it notes."""

    def __init__(self, refuses: str = "") -> None:
        self.refuses = refuses
        self.seen: list[tuple[str, bool]] = []
        self.held, self.let_go = anyio.Event(), anyio.Event()
        names = ("ask", "sample", "me", "hold")
        tools = [types.Tool(name=name, input_schema={"type": "object"}) for name in names]

        async def list_tools(ctx: Any, params: object) -> types.ListToolsResult:
            return types.ListToolsResult(tools=tools)

        async def accept(ctx: Any, params: object) -> types.EmptyResult:
            return types.EmptyResult()

        self.server: Server[Any] = Server(
            "both", on_list_tools=list_tools, on_call_tool=self.call_tool, on_set_logging_level=accept
        )
        self.server.middleware.append(self._note)

    async def _note(self, ctx: Any, call_next: Any) -> Any:
        is_modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        self.seen.append((ctx.method, is_modern))
        if self.refuses == ("stateless" if is_modern else "handshake"):
            raise MCPError(types.METHOD_NOT_FOUND, "Method not found")
        return await call_next(ctx)

    def times(self, method: str, *, modern: bool) -> int:
        """Return how often a method was called in an era."""
        return self.seen.count((method, modern))

    async def call_tool(self, ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        told: dict[str, Any] = {"pid": os.getpid(), "modern": ctx.protocol_version in MODERN_PROTOCOL_VERSIONS}
        if params.name == "hold":
            self.held.set()
            await self.let_go.wait()
        if params.name in {"ask", "sample"}:
            asked: tuple[Any, Any] = (
                (FORM, types.ElicitResult) if params.name == "ask" else (SAMPLE, types.CreateMessageResult)
            )
            answer = await ctx.session.send_request(
                *asked, metadata=ServerMessageMetadata(related_request_id=ctx.request_id)
            )
            told["answer"] = answer.model_dump(by_alias=True, mode="json", exclude_none=True)
        return types.CallToolResult(content=[], structured_content=told)


async def main() -> None:
    server = Both().server
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main)

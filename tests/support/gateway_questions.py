"""Test support: questions, used by tests of several modules."""

from __future__ import annotations

from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata

from tests.support.gateway_asking import form, sampling


class Handshaking:
    """A server that knows the handshake only, and asks while it is called."""

    def __init__(self) -> None:
        self.able: list[types.ClientCapabilities | None] = []
        self.cancelled = anyio.Event()
        self.held = anyio.Event()
        self.gave_up = anyio.Event()
        names = ("ask", "pester", "sample", "roots", "hold")
        tools = [types.Tool(name=name, input_schema={"type": "object"}) for name in names]

        async def list_tools(ctx: Any, params: object) -> types.ListToolsResult:
            return types.ListToolsResult(tools=tools)

        self.server = Server("asking", on_list_tools=list_tools, on_call_tool=self.call_tool)
        self.server.middleware.append(self.only_the_handshake)

    @staticmethod
    async def only_the_handshake(ctx: Any, call_next: Any) -> Any:
        if ctx.method == "server/discover":
            raise MCPError(types.METHOD_NOT_FOUND, "Method not found")
        return await call_next(ctx)

    async def call_tool(self, ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        self.able.append(ctx.session.client_capabilities)
        related = ServerMessageMetadata(related_request_id=ctx.request_id)
        if params.name == "hold":
            self.held.set()
            try:
                await anyio.sleep_forever()
            except anyio.get_cancelled_exc_class():
                self.cancelled.set()
                raise
        asked: tuple[Any, Any] = {
            "sample": (sampling("Hi"), types.CreateMessageResult),
            "roots": (types.ListRootsRequest(), types.ListRootsResult),
        }.get(params.name, (form("Who?"), types.ElicitResult))
        for _ in range(20 if params.name == "pester" else 0):
            await ctx.session.send_request(*asked, metadata=related)
        try:
            answer = await ctx.session.send_request(*asked, metadata=related)
        except BaseException:
            self.gave_up.set()
            raise
        told = answer.model_dump(by_alias=True, mode="json", exclude_none=True)
        return types.CallToolResult(content=[], structured_content=told)

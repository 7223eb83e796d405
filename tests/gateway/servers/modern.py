"""modern.py: an upstream of the stateless era on the SDK, over stdio; its tools change when grow is called."""

import anyio
import mcp_types as types
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged

bus = InMemorySubscriptionBus()
names = ["look", "grow"]


async def list_tools(ctx: object, params: object) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[types.Tool(name=n, input_schema={"type": "object"}) for n in names])


async def call_tool(ctx: object, params: types.CallToolRequestParams) -> types.CallToolResult:
    if params.name == "grow":
        names.append("grown")
        await bus.publish(ToolsListChanged())
    return types.CallToolResult(content=[types.TextContent(type="text", text=f"modern:{params.name}")])


server = Server("modern", on_list_tools=list_tools, on_call_tool=call_tool, on_subscriptions_listen=ListenHandler(bus))


async def main() -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


anyio.run(main)

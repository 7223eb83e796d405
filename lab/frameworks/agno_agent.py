"""Agno."""

from contextlib import AsyncExitStack

from agno.agent import Agent
from agno.models.openai import OpenAIChat
from agno.tools.mcp import MCPTools
from mcp import StdioServerParameters
from setting import KEY, MODEL_V1, PREFIX, PROMPT, SERVERS, run


def tools(server):
    prefix = server["name"] if PREFIX else None
    if "url" in server:
        return MCPTools(url=server["url"], transport="streamable-http", tool_name_prefix=prefix)
    params = StdioServerParameters(command=server["command"], args=server["args"])
    return MCPTools(server_params=params, tool_name_prefix=prefix)


async def main():
    async with AsyncExitStack() as stack:
        agent = Agent(
            model=OpenAIChat(id="fake-model", base_url=MODEL_V1, api_key=KEY),
            tools=[await stack.enter_async_context(tools(server)) for server in SERVERS],
            telemetry=False,
        )
        return (await agent.arun(PROMPT)).content


run(main)

"""Pydantic AI."""

from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import UsageLimits
from setting import KEY, MODEL_V1, PREFIX, PROMPT, SERVERS, TURNS, run


def toolset(server):
    where = server["url"] if "url" in server else StdioTransport(server["command"], server["args"])
    tools = MCPToolset(where)
    return tools.prefixed(server["name"]) if PREFIX else tools


async def main():
    model = OpenAIChatModel("fake-model", provider=OpenAIProvider(base_url=MODEL_V1, api_key=KEY))
    agent = Agent(model, toolsets=[toolset(server) for server in SERVERS], retries=3)
    async with agent:
        return (await agent.run(PROMPT, usage_limits=UsageLimits(request_limit=TURNS))).output


run(main)

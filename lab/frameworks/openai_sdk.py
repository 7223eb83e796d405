"""OpenAI Agents SDK for Python."""

from contextlib import AsyncExitStack

from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, set_tracing_disabled
from agents.mcp import MCPServerStdio, MCPServerStreamableHttp
from openai import AsyncOpenAI
from setting import API, KEY, MODEL_V1, PREFIX, PROMPT, SERVERS, TURNS, run


def connection(server):
    if "url" in server:
        return MCPServerStreamableHttp(params={"url": server["url"]}, name=server["name"])
    return MCPServerStdio(params={"command": server["command"], "args": server["args"]}, name=server["name"])


async def main():
    set_tracing_disabled(True)
    model = OpenAIResponsesModel if API == "responses" else OpenAIChatCompletionsModel
    client = AsyncOpenAI(base_url=MODEL_V1, api_key=KEY, max_retries=0)
    async with AsyncExitStack() as stack:
        agent = Agent(
            name="lab",
            model=model(model="gpt-5.4", openai_client=client),
            mcp_servers=[await stack.enter_async_context(connection(server)) for server in SERVERS],
            mcp_config={"include_server_in_tool_names": True} if PREFIX else {},
        )
        return (await Runner.run(agent, PROMPT, max_turns=TURNS)).final_output


run(main)

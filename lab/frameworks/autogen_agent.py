"""AutoGen."""

from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient
from autogen_ext.tools.mcp import StdioServerParams, StreamableHttpServerParams, mcp_server_tools
from setting import KEY, MODEL_V1, PROMPT, SERVERS, TURNS, run


def connection(server):
    if "url" in server:
        return StreamableHttpServerParams(url=server["url"])
    return StdioServerParams(command=server["command"], args=server["args"])


async def main():
    tools = []
    for server in SERVERS:
        tools += await mcp_server_tools(connection(server))
    model = OpenAIChatCompletionClient(model="gpt-4o", base_url=MODEL_V1, api_key=KEY, max_retries=0)
    agent = AssistantAgent("lab", model_client=model, tools=tools, max_tool_iterations=TURNS)
    return (await agent.run(task=PROMPT)).messages[-1]


run(main)

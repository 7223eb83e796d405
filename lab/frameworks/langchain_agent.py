"""LangChain for Python, with langchain-mcp-adapters."""

from langchain.agents import create_agent
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_openai import ChatOpenAI
from setting import KEY, MODEL_V1, PREFIX, PROMPT, SERVERS, TURNS, run


def connection(server):
    if "url" in server:
        return {"transport": "streamable_http", "url": server["url"]}
    return {"transport": "stdio", "command": server["command"], "args": server["args"]}


async def main():
    servers = {server["name"]: connection(server) for server in SERVERS}
    client = MultiServerMCPClient(servers, tool_name_prefix=PREFIX)
    agent = create_agent(ChatOpenAI(model="fake-model", base_url=MODEL_V1, api_key=KEY), await client.get_tools())
    ended = await agent.ainvoke({"messages": [("user", PROMPT)]}, {"recursion_limit": 2 * TURNS})
    return ended["messages"][-1].content


run(main)

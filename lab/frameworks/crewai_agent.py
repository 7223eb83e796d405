"""CrewAI: its own ``mcps=``, or with ``LAB_ADAPTER`` the MCPServerAdapter of crewai-tools."""

import os

from crewai import LLM, Agent, Crew, Task
from crewai.mcp import MCPServerHTTP, MCPServerStdio
from crewai_tools import MCPServerAdapter
from mcp import StdioServerParameters
from setting import KEY, MODEL_V1, PROMPT, SERVERS, TURNS, run


def own(server):
    if "url" in server:
        return MCPServerHTTP(url=server["url"])
    return MCPServerStdio(command=server["command"], args=server["args"])


def adapted(server):
    if "url" in server:
        return {"url": server["url"], "transport": "streamable-http"}
    return StdioServerParameters(command=server["command"], args=server["args"])


def main():
    if os.environ.get("LAB_ADAPTER"):
        tools = {"tools": MCPServerAdapter([adapted(server) for server in SERVERS]).tools}
    else:
        tools = {"mcps": [own(server) for server in SERVERS]}
    model = LLM(model="openai/gpt-4o", base_url=MODEL_V1, api_key=KEY)
    agent = Agent(role="lab", goal="x", backstory="x", llm=model, max_iter=TURNS, **tools)
    task = Task(description=PROMPT, expected_output="done", agent=agent)
    return Crew(agents=[agent], tasks=[task], tracing=False).kickoff()


run(main)

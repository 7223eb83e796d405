"""Google Agent Development Kit."""

import os

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig
from google.adk.runners import InMemoryRunner
from google.adk.tools.mcp_tool.mcp_session_manager import StdioConnectionParams, StreamableHTTPConnectionParams
from google.adk.tools.mcp_tool.mcp_toolset import McpToolset
from google.genai import types
from mcp import StdioServerParameters
from setting import KEY, MODEL, PREFIX, PROMPT, SERVERS, TURNS, run


def toolset(server):
    if "url" in server:
        where = StreamableHTTPConnectionParams(url=server["url"])
    else:
        command = StdioServerParameters(command=server["command"], args=server["args"])
        where = StdioConnectionParams(server_params=command, timeout=20)
    return McpToolset(connection_params=where, tool_name_prefix=server["name"] if PREFIX else None)


async def main():
    os.environ.update(GOOGLE_GEMINI_BASE_URL=MODEL, GOOGLE_API_KEY=KEY)
    agent = LlmAgent(name="lab", model="gemini-2.5-pro", instruction="x", tools=[toolset(one) for one in SERVERS])
    runner = InMemoryRunner(agent=agent, app_name="lab")
    session = await runner.session_service.create_session(app_name="lab", user_id="lab")
    said = types.Content(role="user", parts=[types.Part(text=PROMPT)])
    bounds = RunConfig(max_llm_calls=2 * TURNS)
    async for event in runner.run_async(user_id="lab", session_id=session.id, new_message=said, run_config=bounds):
        answer = event
    return answer.content.parts if answer.content else answer


run(main)

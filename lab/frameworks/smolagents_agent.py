"""smolagents, whose MCP side is mcpadapt."""

from mcp import StdioServerParameters
from setting import KEY, MODEL_V1, PROMPT, SERVERS, TURNS, run
from smolagents import AgentError, LogLevel, MCPClient, OpenAIServerModel, ToolCallingAgent


def connection(server):
    if "url" in server:
        return {"url": server["url"], "transport": "streamable-http"}
    return StdioServerParameters(command=server["command"], args=server["args"])


def end_without_call(step, agent):
    """End at the first answer in plain text; this agent would ask again until its steps are used up."""
    said = step.model_output_message
    if said is None or not said.tool_calls:
        agent.interrupt()


def main():
    client = MCPClient([connection(server) for server in SERVERS], structured_output=False)
    model = OpenAIServerModel(model_id="fake-model", api_base=MODEL_V1, api_key=KEY)
    agent = ToolCallingAgent(
        tools=client.get_tools(),
        model=model,
        max_steps=TURNS,
        step_callbacks=[end_without_call],
        verbosity_level=LogLevel.ERROR,
    )
    try:
        return agent.run(PROMPT)
    except AgentError as ended:
        if "interrupted" not in str(ended):
            raise
        return "all done"


run(main)

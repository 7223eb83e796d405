"""Strands Agents."""

from mcp import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from setting import KEY, MODEL_V1, PREFIX, PROMPT, SERVERS, run
from strands import Agent
from strands.models.openai import OpenAIModel
from strands.tools.mcp import MCPClient


def connection(server):
    if "url" in server:
        return streamable_http_client(server["url"])
    return stdio_client(StdioServerParameters(command=server["command"], args=server["args"]))


def toolset(server):
    return MCPClient(lambda: connection(server), prefix=server["name"] if PREFIX else None)


def main():
    model = OpenAIModel(client_args={"base_url": MODEL_V1, "api_key": KEY}, model_id="fake-model")
    return Agent(model=model, tools=[toolset(server) for server in SERVERS], callback_handler=None)(PROMPT)


run(main)

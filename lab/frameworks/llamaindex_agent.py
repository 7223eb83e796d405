"""LlamaIndex."""

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.llms.openai_like import OpenAILike
from llama_index.tools.mcp import BasicMCPClient, McpToolSpec
from setting import KEY, MODEL_V1, PROMPT, SERVERS, TURNS, run


def connection(server):
    return BasicMCPClient(server["url"]) if "url" in server else BasicMCPClient(server["command"], args=server["args"])


async def main():
    tools = []
    for server in SERVERS:
        tools += await McpToolSpec(client=connection(server)).to_tool_list_async()
    model = OpenAILike(
        model="fake-model", api_base=MODEL_V1, api_key=KEY, is_chat_model=True, is_function_calling_model=True
    )
    agent = FunctionAgent(tools=tools, llm=model, timeout=None)
    return await agent.run(PROMPT, max_iterations=TURNS)


run(main)

"""Semantic Kernel for Python."""

from contextlib import AsyncExitStack

from openai import AsyncOpenAI
from semantic_kernel.agents import ChatCompletionAgent
from semantic_kernel.connectors.ai import FunctionChoiceBehavior
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion
from semantic_kernel.connectors.mcp import MCPStdioPlugin, MCPStreamableHttpPlugin
from setting import KEY, MODEL_V1, PROMPT, SERVERS, TURNS, run


def plugin(server):
    if "url" in server:
        return MCPStreamableHttpPlugin(name=server["name"], url=server["url"], load_prompts=False)
    return MCPStdioPlugin(name=server["name"], command=server["command"], args=server["args"], load_prompts=False)


async def main():
    client = AsyncOpenAI(base_url=MODEL_V1, api_key=KEY, max_retries=0)
    async with AsyncExitStack() as stack:
        agent = ChatCompletionAgent(
            name="lab",
            service=OpenAIChatCompletion(ai_model_id="fake-model", async_client=client),
            plugins=[await stack.enter_async_context(plugin(server)) for server in SERVERS],
            function_choice_behavior=FunctionChoiceBehavior.Auto(maximum_auto_invoke_attempts=TURNS),
        )
        return await agent.get_response(messages=PROMPT)


run(main)

"""An agent of the OpenAI Agents SDK over real servers and a scripted model, for its tests."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from agents import (
    Agent,
    OpenAIResponsesModel,
    set_tracing_disabled,
)
from agents.mcp import MCPServerStreamableHttp
from openai import AsyncOpenAI

from truename.policy import Policy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from lab.model import ModelServer

ALLOW = Policy(default="allow")


CLIENTS: list[AsyncOpenAI] = []


@pytest.fixture
async def closing(anyio_backend: str) -> AsyncIterator[None]:
    set_tracing_disabled(True)
    yield
    while CLIENTS:
        await CLIENTS.pop().close()


@asynccontextmanager
async def connected(urls: Mapping[str, str]) -> AsyncIterator[dict[str, Any]]:
    async with AsyncExitStack() as stack:
        yield {
            key: await stack.enter_async_context(MCPServerStreamableHttp(params={"url": url}, name=key))
            for key, url in urls.items()
        }


def agent(server: ModelServer, **parts: Any) -> Agent[Any]:
    client = AsyncOpenAI(base_url=f"{server.url}/v1", api_key="lab", max_retries=0)
    CLIENTS.append(client)
    return Agent(name="clerk", model=OpenAIResponsesModel(model="gpt-5.4", openai_client=client), **parts)

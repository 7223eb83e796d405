"""A program of its own runs the gateway, by asyncio.run."""

from __future__ import annotations

import asyncio
import sys

import mcp
import pytest

from tests.shared import ROOT
from truename.config import Config, ServerConfig, Settings
from truename.gateway import Gateway, listening
from truename.ledger import Ledger

SERVER = ServerConfig(
    key="x", command=sys.executable, args=("-m", "tests.gateway.servers.extreme"), cwd=str(ROOT), env={}
)


@pytest.mark.parametrize("flood", ["progress", "changes", "questions"])
def test_messages_that_a_server_sends_by_itself_stop_no_call(flood: str) -> None:
    pytest.importorskip("sniffio")

    async def called() -> str:
        config = Config(servers=(SERVER,), settings=Settings(tool_search="off"))
        async with (
            Gateway(config, ledger=Ledger.memory()) as gateway,
            listening(gateway) as address,
            mcp.Client(f"{address}/mcp", mode="legacy") as client,
            asyncio.timeout(20),
        ):
            result = await client.call_tool(f"x_{flood}", {})
        (content,) = result.content
        return getattr(content, "text", "")

    assert asyncio.run(called()) == "answered"

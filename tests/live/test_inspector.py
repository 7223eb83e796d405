"""MCP Inspector lists and calls through the gateway: in both eras, over HTTP and stdio, and finds no fault."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.to_thread
import pytest

from tests.live.crowd import TEN, Crowd, gathered, laid_out
from tests.live.inspector import ERAS, Inspector
from tests.live.journeys import STARTUP
from truename.config import Config, Settings
from truename.gateway import Gateway, listening
from truename.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.live

# What its --strict asks of schemas, these fulfil by themselves.
SERVERS: Final = tuple(member for member in TEN if member.key in {"time", "everything", "git"})
TOOLS: Final = sum(member.tools for member in SERVERS)
# So many `everything` adds when it has been greeted: who lists at once may come before them, and is told of them.
LATE: Final = 4
CALL: Final = ("--tool-name", "everything_echo", "--tool-args-json", json.dumps({"message": "through the gateway"}))


def check(ask: Callable[..., dict[str, Any]], era: str, least: int = TOOLS) -> None:
    tools = ask(era, "tools/list")["tools"]

    assert least <= len(tools) <= TOOLS
    assert {"time_get_current_time", "everything_echo", "git_log"} <= {tool["name"] for tool in tools}

    answer = ask(era, "tools/call", *CALL)

    assert "through the gateway" in answer["content"][0]["text"]


@pytest.fixture
def crowd(tmp_path: Path) -> Crowd:
    found = gathered(SERVERS, laid_out(tmp_path))

    assert found.missing == {}

    return found


async def over_http(crowd: Crowd, inspector: Inspector) -> None:
    settings = Settings(startup_timeout=STARTUP, state="memory", tool_search="off")
    config = Config(servers=crowd.entries, settings=settings)
    async with Gateway(config, ledger=Ledger.memory()) as gateway, listening(gateway) as address:
        await gateway.settle()
        with anyio.fail_after(STARTUP):
            while len(gateway.catalog) < TOOLS:
                await anyio.sleep(0.05)

        def ask(era: str, method: str, *options: str) -> dict[str, Any]:
            return inspector.over_http(f"{address}/mcp", era, method, *options)

        for era in ERAS:
            await anyio.to_thread.run_sync(check, ask, era)


def test_inspector_lists_strictly_and_calls_over_http_in_both_eras(crowd: Crowd, tmp_path: Path) -> None:
    anyio.run(over_http, crowd, Inspector.installed(tmp_path / "home"))


@pytest.mark.parametrize("era", ERAS)
def test_inspector_lists_strictly_and_calls_over_stdio(crowd: Crowd, tmp_path: Path, era: str) -> None:
    inspector = Inspector.installed(tmp_path / "home")
    entries = {one.key: {"command": one.command, "args": [*one.args], "env": dict(one.env)} for one in crowd.entries}
    settings = {"state": "memory", "tool_search": "off", "startup_timeout": STARTUP}
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": entries, "truename": settings}), encoding="utf-8")

    def ask(era: str, method: str, *options: str) -> dict[str, Any]:
        return inspector.over_stdio([sys.executable, "-m", "truename", "serve", str(file)], era, method, *options)

    check(ask, era, TOOLS - LATE)

"""Servers whose lists are a lie: no call that was decided on runs on another definition, and nobody else waits."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from tests.gateway.office import Office, User
from truename.config.trust import Trust
from truename.policy import read_policy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from mcp import Client

    from tests.gateway.conftest import Lab

pytestmark = pytest.mark.anyio

ASKED = read_policy({"rules": [{"outcome": "ask", "tools": ["fs/read"]}]})


@pytest.fixture
def at(lab: Lab, tmp_path: Path, connect: Callable[..., Any]) -> Callable[..., Any]:
    @asynccontextmanager
    async def at(how: str, drift: Any, *words: str) -> AsyncIterator[Client]:
        settings: dict[str, Any] = {
            "trust": Trust(drift=drift),
            "policy": ASKED,
            "state": Office(tmp_path).state,
            "startup_timeout": 2.0,
            "style": "on-conflict",
        }
        servers = lab.script("fs", "faithless", how, "fs"), lab.normal("other", "look")
        user = {"elicitation_callback": User(*words).elicited}
        async with lab.serving(*servers, **settings) as address, connect(f"{address}/mcp", "legacy", **user) as client:
            yield client

    return at


async def called(client: Client, name: str) -> str:
    result = await client.call_tool(name, {})
    return str((result.meta or {}).get("dev.truename/error", getattr(result.content[0], "text", "")))


@pytest.mark.parametrize("drift", ["warn", "quarantine"])
async def test_a_server_that_announces_a_change_and_does_not_list_it_gets_no_call_that_was_decided_on(
    at: Callable[..., Any], drift: str
) -> None:
    async with at("silent", drift, "always allow") as client:
        assert await called(client, "read") == "A"
        await client.call_tool("turn", {})
        for _ in range(6):
            assert await called(client, "read") == "approval_required"
        # Tools that nobody decided on, and other servers, have no part in it.
        assert await called(client, "free") == "fs:free"
        assert await called(client, "look") == "other:look"


@pytest.mark.parametrize("drift", ["warn", "quarantine"])
async def test_a_server_that_lists_something_else_at_each_look_gets_calls_by_the_list_that_was_decided_on(
    at: Callable[..., Any], drift: str
) -> None:
    async with at("flapping", drift, "always allow") as client:
        assert await called(client, "read") == "A"
        await client.call_tool("turn", {})
        said = [await called(client, "read") for _ in range(6)]
    assert "B" not in said


async def test_a_flood_of_announcements_holds_up_nobody_and_the_change_counts(at: Callable[..., Any]) -> None:
    async with at("flooding", "quarantine", "always allow") as client:
        assert await called(client, "read") == "A"
        await client.call_tool("turn", {})
        with anyio.fail_after(30):
            assert await called(client, "look") == "other:look"
            assert await called(client, "read") == "approval_required"

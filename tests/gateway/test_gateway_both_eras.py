"""Servers that speak both eras: each client is asked in the way of its own, as it would be without the gateway."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from mcp.shared.exceptions import MCPError

from tests.gateway.conftest import PATIENCE, Upstreams, alive, connected, text_of
from tests.gateway.servers.both import Both
from tests.support.gateway_asking import Person

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcp import Client

    from tests.gateway.conftest import Lab
    from truename.config import ServerConfig

pytestmark = [
    pytest.mark.slow,
    pytest.mark.anyio,
    # The server has what the stateless era no longer has: logging.
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]

WAYS = ("http", "stdio")


@asynccontextmanager
async def at(lab: Lab, way: str, far: Both, **more: Any) -> AsyncIterator[ServerConfig]:
    """Give the entry of the server: this one over HTTP, or one like it as a program."""
    if way == "stdio":
        yield lab.script("far", "both", **more)
        return
    async with Upstreams().serve(far.server) as url:
        yield lab.at("far", url, **more)


async def told(client: Client, tool: str) -> Any:
    result = await client.call_tool(tool, {})
    assert not result.is_error, result
    return result.structured_content


@pytest.mark.parametrize("isolation", ["shared", "session", "user"])
@pytest.mark.parametrize("way", WAYS)
async def test_a_client_of_the_handshake_eras_is_asked_and_one_of_the_stateless_era_is_served_in_its_own(
    lab: Lab, way: str, isolation: str
) -> None:
    ada = Person("ada")
    async with (
        at(lab, way, Both(), isolation=isolation) as server,
        lab.serving(server) as address,
        connected(address + "/mcp", "legacy", **ada.answering) as old,
        connected(address + "/mcp", "2026-07-28", **ada.answering) as new,
    ):
        assert (await told(old, "ask"))["answer"]["content"] == {"name": "ada"}
        assert (await told(old, "sample"))["answer"]["content"]["text"] == "ada says"
        assert (await told(new, "me"))["modern"]
        # What the server cannot do in that era, it says itself, as it does without the gateway.
        with pytest.raises(MCPError, match="no back-channel"):
            await new.call_tool("ask", {})


async def test_over_stdio_a_client_is_asked_by_a_server_that_speaks_both_eras(lab: Lab) -> None:
    ada = Person("ada")
    async with connected(lab.over_stdio(lab.script("far", "both")), "legacy", **ada.answering) as client:
        first, second = await told(client, "ask"), await told(client, "ask")
        assert first["answer"]["content"] == {"name": "ada"}
        assert first["pid"] == second["pid"]


async def test_all_sessions_share_the_second_connection_and_each_is_asked_about_its_own_call(lab: Lab) -> None:
    people, far, heard = [Person(f"p{number}") for number in range(3)], Both(), dict[str, str]()

    async def call(client: Client, person: Person) -> None:
        heard[person.name] = (await told(client, "ask"))["answer"]["content"]["name"]

    async with at(lab, "http", far) as server, lab.serving(server) as address:
        target = address + "/mcp"
        async with (
            connected(target, "legacy", **people[0].answering) as first,
            connected(target, "legacy", **people[1].answering) as second,
            connected(target, "legacy", **people[2].answering) as third,
            anyio.create_task_group() as tasks,
        ):
            for client, person in zip((first, second, third), people, strict=True):
                tasks.start_soon(call, client, person)
    assert heard == {"p0": "p0", "p1": "p1", "p2": "p2"}
    assert far.times("initialize", modern=False) == 1


async def test_a_client_that_cannot_be_asked_needs_no_second_connection(lab: Lab) -> None:
    far = Both()
    async with (
        at(lab, "http", far) as server,
        lab.serving(server) as address,
        connected(address + "/mcp", "legacy") as client,
    ):
        assert (await told(client, "me"))["modern"]
    assert far.times("initialize", modern=False) == 0


async def test_a_server_that_refuses_the_handshake_is_asked_for_it_once(lab: Lab) -> None:
    far, ada = Both(refuses="handshake"), Person("ada")
    async with (
        at(lab, "http", far) as server,
        lab.serving(server) as address,
        connected(address + "/mcp", "legacy", **ada.answering) as client,
    ):
        for _ in range(3):
            assert (await told(client, "me"))["modern"]
    assert far.times("initialize", modern=False) == 1


async def test_a_session_of_its_own_falls_back_to_the_era_that_the_server_speaks(lab: Lab) -> None:
    far, ada = Both(refuses="handshake"), Person("ada")
    async with (
        at(lab, "http", far, isolation="session") as server,
        lab.serving(server) as address,
        connected(address + "/mcp", "legacy", **ada.answering) as client,
    ):
        assert (await told(client, "me"))["modern"]


async def test_a_second_program_that_nobody_uses_ends_and_the_next_call_starts_another(lab: Lab) -> None:
    ada = Person("ada")
    async with (
        lab.serving(lab.script("far", "both"), isolation_idle=0.2) as address,
        connected(address + "/mcp", "legacy", **ada.answering) as client,
    ):
        before = (await told(client, "ask"))["pid"]
        with anyio.fail_after(PATIENCE):
            while alive(before):
                await anyio.sleep(0.02)
        assert (await told(client, "ask"))["pid"] != before


async def test_both_connections_count_as_one_where_calls_are_limited(lab: Lab) -> None:
    far, ada = Both(), Person("ada")
    async with (
        at(lab, "http", far, max_concurrent=1, timeout=0.5, tool_timeouts={"hold": 60.0}) as server,
        lab.serving(server) as address,
        connected(address + "/mcp", "2026-07-28") as new,
        connected(address + "/mcp", "legacy", **ada.answering) as old,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(new.call_tool, "hold", {})
        with anyio.fail_after(PATIENCE):
            await far.held.wait()
        refused = await old.call_tool("me", {})
        assert "1 calls are running there, and none ended" in text_of(refused)
        far.let_go.set()
        assert not (await told(old, "me"))["modern"]

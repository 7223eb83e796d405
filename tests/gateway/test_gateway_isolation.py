"""Connections of users' own: who shares one, whom it asks, and when it ends."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
import pytest
from mcp.client.streamable_http import streamable_http_client

from tests.gateway.conftest import alive, connected, text_of
from tests.support.auth_entrance import bearer, known
from tests.support.gateway_asking import Person

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp import Client

    from tests.gateway.conftest import Lab

pytestmark = pytest.mark.anyio

ME = {"name": "me", "arguments": {}}

# What `asking` does with a call that it is to hold is to ask: who has not answered yet, holds it.
ABLE: dict[str, Any] = {"_meta": {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}}}
ASK: dict[str, Any] = {"name": "ask", "arguments": {}, **ABLE}
ANSWER = {"q1": {"action": "accept", "content": {"name": "ada"}}}


async def _pid(client: Client) -> int:
    found: Any = (await client.call_tool("me", {})).structured_content
    return int(found["pid"])


async def _ended(pid: int) -> None:
    with anyio.fail_after(10):
        while alive(pid):
            await anyio.sleep(0.02)


async def test_all_sessions_of_a_user_share_a_program_and_each_is_asked_about_its_own_call(lab: Lab, era: str) -> None:
    ada, phone = Person("ada"), Person("ada's phone")
    async with lab.serving(lab.script("near", "asking", "near", isolation="user")) as address:
        target = address + "/mcp"
        async with (
            connected(target, "legacy", **ada.answering) as first,
            connected(target, era, **phone.answering) as second,
        ):
            pids = {await _pid(first), await _pid(second)}
            for client, person in ((first, ada), (second, phone)):
                done: Any = (await client.call_tool("ask", {})).structured_content
                assert done["answer"]["content"] == {"name": person.name}
                done = (await client.call_tool("roots", {})).structured_content
                assert done["answer"]["roots"] == [{"uri": f"file:///{person.name}".replace(" ", "%20")}]
                pids.add(done["pid"])
    assert len(pids) == 1


async def test_what_two_sessions_of_a_user_may_be_asked_at_once_nobody_is(lab: Lab, raw: Callable[[str], Any]) -> None:
    bob = Person("bob")
    async with (
        lab.serving(lab.script("near", "asking", "near", isolation="user")) as address,
        raw(address) as http,
        connected(address + "/mcp", "legacy", **bob.answering) as client,
    ):
        asked = await http.result("tools/call", ASK)
        done: Any = (await client.call_tool("ask", {})).structured_content
        assert "no session of the user calls now" in done["error"]["message"]
        done = await http.result("tools/call", {**ASK, "requestState": asked["requestState"], "inputResponses": ANSWER})
        assert done["structuredContent"]["answer"] == ANSWER["q1"]
    assert bob.asked == []


async def test_what_comes_between_calls_of_a_user_is_refused(lab: Lab) -> None:
    ada = Person("ada")
    async with (
        lab.serving(lab.script("near", "asking", "near", isolation="user")) as address,
        connected(address + "/mcp", "legacy", **ada.answering) as client,
    ):
        await client.call_tool("burst", {})
        with anyio.fail_after(10):
            while True:
                told: Any = (await client.call_tool("refused", {})).structured_content
                if told["refused"] + len(ada.asked) >= 100:
                    break


async def test_programs_of_users_are_bounded(lab: Lab, raw: Callable[[str], Any]) -> None:
    tokens, access = known("ada", "bob", "eve")
    near = lab.script("near", "asking", "near", isolation="user")
    async with lab.serving(near, max_isolated=2, access=access) as address, raw(address) as http:
        ada, bob, eve = map(bearer, tokens.values())
        for one in (ada, bob):
            assert "structuredContent" in await http.result("tools/call", ME, headers=one)
        refused = await http.result("tools/call", ME, headers=eve)
        assert "has 2 connections of users already, which max_isolated allows" in refused["content"][0]["text"]


async def test_users_who_sign_in_have_programs_of_their_own_and_no_state_of_another_is_theirs(
    lab: Lab, raw: Callable[[str], Any]
) -> None:
    tokens, access = known("ada", "bob")
    near = lab.script("near", "asking", "near", isolation="user")
    async with (
        lab.serving(near, access=access) as address,
        raw(address) as http,
    ):
        ada, bob = map(bearer, tokens.values())
        pids = [(await http.result("tools/call", ME, headers=one))["structuredContent"]["pid"] for one in (ada, bob)]
        assert len(set(pids)) == 2
        state = (await http.result("tools/call", ASK, headers=ada))["requestState"]
        again = {**ASK, "requestState": state, "inputResponses": ANSWER}
        answer = (await http.post("tools/call", again, headers=bob)).json()
        assert "No call waits with this requestState" in answer["error"]["message"]
        done = await http.result("tools/call", again, headers=ada)
        assert done["structuredContent"]["answer"] == ANSWER["q1"]


async def test_nobody_who_signed_in_keeps_all_others_out_by_opening_sessions(lab: Lab) -> None:
    tokens, access = known("ada", "bob")
    near = lab.script("near", "asking", "near", isolation="session")
    async with lab.serving(near, max_isolated=4, access=access) as address, AsyncExitStack() as stack:

        async def enter(token: str) -> Client:
            http = await stack.enter_async_context(httpx2.AsyncClient(headers=bearer(token)))
            target = streamable_http_client(f"{address}/mcp", http_client=http)
            return await stack.enter_async_context(connected(target, "legacy"))

        of_ada = [await enter(tokens["ada"]) for _ in range(3)]
        assert len({await _pid(client) for client in of_ada[:2]}) == 2
        refused = text_of(await of_ada[2].call_tool("me", {}))
        assert "has 2 connections of yours already, half of what max_isolated allows" in refused
        assert len({await _pid(await enter(tokens["bob"])) for _ in range(2)}) == 2


@pytest.mark.parametrize("isolation", ["session", "user"])
async def test_a_connection_that_nobody_uses_ends_and_is_opened_again(isolation: str, lab: Lab, era: str) -> None:
    server = lab.script("near", "asking", "near", isolation=isolation)
    async with (
        lab.serving(server, isolation_idle=0.4) as address,
        connected(address + "/mcp", era) as client,
    ):
        first = await _pid(client)
        await _ended(first)
        assert await _pid(client) != first


async def test_a_connection_on_which_a_call_runs_does_not_end(lab: Lab, raw: Callable[[str], Any]) -> None:
    server = lab.script("near", "asking", "near", isolation="user")
    async with lab.serving(server, isolation_idle=0.2) as address, raw(address) as http:
        asked = await http.result("tools/call", ASK)
        await anyio.sleep(0.5)
        done = await http.result("tools/call", {**ASK, "requestState": asked["requestState"], "inputResponses": ANSWER})
        assert done["structuredContent"]["answer"] == ANSWER["q1"]


async def test_over_a_pipe_a_connection_lasts_as_long_as_it(lab: Lab, era: str) -> None:
    target = lab.over_stdio(lab.script("near", "asking", "near", isolation="session"), isolation_idle=0.2)
    async with connected(target, era) as client:
        first = await _pid(client)
        await anyio.sleep(0.5)
        assert await _pid(client) == first
    await _ended(first)


async def test_the_end_of_a_session_ends_its_program_at_once(lab: Lab) -> None:
    server = lab.script("near", "asking", "near", isolation="session")
    async with lab.serving(server) as address:
        async with connected(address + "/mcp", "legacy") as client:
            pid = await _pid(client)
            assert text_of(await client.call_tool("me", {})) == ""
        await _ended(pid)

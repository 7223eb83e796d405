"""Questions of servers of the handshake eras: requests of their own, which must reach who called and nobody else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata

from tests.gateway.conftest import alive
from tests.support.gateway_asking import Person, form
from tests.support.gateway_questions import Handshaking

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.gateway.conftest import Lab, Upstreams

pytestmark = pytest.mark.anyio


async def test_a_question_on_the_stream_of_a_call_reaches_who_called(
    lab: Lab, connect: Callable[..., Any], upstreams: Upstreams
) -> None:
    people = [Person(f"p{number}") for number in range(3)]
    heard: dict[str, str] = {}

    async def call(client: Any, person: Person) -> None:
        done = await client.call_tool("ask", {})
        heard[person.name] = done.structured_content["content"]["name"]

    far = Handshaking()
    async with upstreams.serve(far.server) as url, lab.serving(lab.at("far", url)) as address:
        target = address + "/mcp"
        async with (
            connect(target, "legacy", **people[0].answering) as first,
            connect(target, "legacy", **people[1].answering) as second,
            connect(target, "legacy", **people[2].answering) as third,
        ):
            for _ in range(3):
                async with anyio.create_task_group() as tasks:
                    for client, person in zip((first, second, third), people, strict=True):
                        tasks.start_soon(call, client, person)
            sampled = await second.call_tool("sample", {})
    assert heard == {"p0": "p0", "p1": "p1", "p2": "p2"}
    assert [len(person.asked) for person in people] == [3, 4, 3]
    assert sampled.structured_content["content"]["text"] == "p1 says"


async def test_a_client_that_cannot_be_asked_is_not_asked(
    lab: Lab, connect: Callable[..., Any], said: Callable[[Any], str], upstreams: Upstreams
) -> None:
    far = Handshaking()
    async with (
        upstreams.serve(far.server) as url,
        lab.serving(lab.at("far", url)) as address,
        connect(address + "/mcp", "legacy") as client,
    ):
        with pytest.raises(MCPError, match=r"This client does not support this request \(elicitation\)"):
            await client.call_tool("ask", {})


@pytest.mark.parametrize("answering", [{}, Person("ada").answering], ids=["mute", "askable"])
async def test_a_cancelled_call_is_cancelled_at_the_server(
    lab: Lab, era: str, connect: Callable[..., Any], upstreams: Upstreams, answering: dict[str, Any]
) -> None:
    far = Handshaking()
    async with (
        upstreams.serve(far.server) as url,
        lab.serving(lab.at("far", url)) as address,
        connect(address + "/mcp", era, **answering) as client,
    ):
        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.call_tool, "hold", {})
                await far.held.wait()
                tasks.cancel_scope.cancel()
            await far.cancelled.wait()


@pytest.mark.parametrize("over", ["stdio", "http"])
async def test_a_question_is_taken_back_when_its_call_is_cancelled(
    lab: Lab, connect: Callable[..., Any], upstreams: Upstreams, over: str
) -> None:
    asked, gone = anyio.Event(), anyio.Event()

    async def never(_: object, __: object) -> types.ElicitResult:
        asked.set()
        try:
            await anyio.sleep_forever()
        finally:
            gone.set()
        return types.ElicitResult(action="decline")

    async with upstreams.serve(Handshaking().server) as url:
        server = lab.at("far", url) if over == "http" else lab.script("near", "asking", "near")
        async with (
            lab.serving(server) as address,
            connect(address + "/mcp", "legacy", elicitation_callback=never) as client,
        ):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.call_tool, "ask", {})
                await asked.wait()
                tasks.cancel_scope.cancel()
            with anyio.fail_after(10):
                await gone.wait()


async def test_a_call_may_wait_for_its_user_longer_than_a_call_may_take(
    lab: Lab, connect: Callable[..., Any], upstreams: Upstreams
) -> None:
    slow = Person("ada")

    async def late(context: object, params: Any) -> types.ElicitResult:
        with anyio.move_on_after(1.2):
            await anyio.sleep_forever()
        return await slow.elicited(context, params)

    async with (
        upstreams.serve(Handshaking().server) as url,
        lab.serving(lab.at("far", url), call_timeout=0.9) as address,
        connect(address + "/mcp", "legacy", elicitation_callback=late) as client,
    ):
        done = await client.call_tool("ask", {})
    assert done.structured_content["content"] == {"name": "ada"}


async def test_a_program_that_one_session_alone_uses_may_ask_it(lab: Lab, connect: Callable[..., Any]) -> None:
    async with (
        lab.serving(lab.script("near", "asking", "near")) as address,
        connect(address + "/mcp", "legacy", **Person("ada").answering) as client,
    ):
        done = (await client.call_tool("ask", {})).structured_content
        able = (await client.call_tool("me", {})).structured_content["able"]
    assert done["answer"] == {"action": "accept", "content": {"name": "ada"}}
    assert set(able) == {"elicitation", "extensions", "sampling"}


async def test_a_program_that_several_sessions_share_asks_nobody(lab: Lab, connect: Callable[..., Any]) -> None:
    ada, bob = Person("ada"), Person("bob")
    async with lab.serving(lab.script("near", "asking", "near")) as address:
        target = address + "/mcp"
        async with (
            connect(target, "legacy", **ada.answering) as first,
            connect(target, "legacy", **bob.answering) as second,
        ):
            await first.call_tool("me", {})
            done = (await second.call_tool("ask", {})).structured_content
    assert done["answer"] is None
    assert "several clients use this connection" in done["error"]["message"]
    assert ada.asked == bob.asked == []


async def test_isolated_sessions_have_programs_of_their_own_and_each_is_asked_by_its_own(
    lab: Lab, connect: Callable[..., Any]
) -> None:
    ada, bob = Person("ada"), Person("bob")
    heard: dict[str, Any] = {}

    async def call(client: Any, person: Person) -> None:
        heard[person.name] = (await client.call_tool("ask", {})).structured_content

    async with lab.serving(lab.script("near", "asking", "near", isolation="session")) as address:
        target = address + "/mcp"
        async with (
            connect(target, "legacy", elicitation_callback=ada.elicited) as first,
            connect(target, "legacy", **bob.answering) as second,
        ):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(call, first, ada)
                tasks.start_soon(call, second, bob)
            roots = (await second.call_tool("roots", {})).structured_content
            mine, other = [(await one.call_tool("me", {})).structured_content for one in (first, second)]
            assert heard["ada"]["answer"]["content"] == {"name": "ada"}
            assert heard["bob"]["answer"]["content"] == {"name": "bob"}
            assert roots["answer"]["roots"] == [{"uri": "file:///bob"}]
            assert set(mine["able"]) == {"elicitation", "extensions"}
            assert set(other["able"]) == {"elicitation", "extensions", "sampling", "roots"}
            pids = mine["pid"], other["pid"]
            assert pids == (heard["ada"]["pid"], heard["bob"]["pid"])
            assert len(set(pids)) == 2
        with anyio.fail_after(10):
            while any(map(alive, pids)):
                await anyio.sleep(0.02)


async def test_connections_of_sessions_are_bounded(
    lab: Lab, connect: Callable[..., Any], said: Callable[[Any], str]
) -> None:
    server = lab.script("near", "asking", "near", isolation="session")
    async with lab.serving(server, max_isolated=1) as address:
        target = address + "/mcp"
        async with connect(target, "legacy") as first, connect(target, "legacy") as second:
            assert not (await first.call_tool("me", {})).is_error
            refused = await second.call_tool("me", {})
            assert refused.is_error
            assert "has 1 connections of sessions already, which max_isolated allows" in said(refused)
            assert not (await first.call_tool("me", {})).is_error


async def test_without_sessions_a_user_has_one_connection(lab: Lab, connect: Callable[..., Any]) -> None:
    async with lab.serving(lab.script("near", "asking", "near", isolation="session")) as address:
        found = set()
        for _ in range(2):
            async with connect(address + "/mcp", "2026-07-28") as client:
                found.add((await client.call_tool("me", {})).structured_content["pid"])
    assert len(found) == 1


async def test_a_server_that_pesters_is_refused(
    lab: Lab, era: str, connect: Callable[..., Any], upstreams: Upstreams
) -> None:
    ada = Person("ada")
    async with (
        upstreams.serve(Handshaking().server) as url,
        lab.serving(lab.at("far", url), max_rounds=3) as address,
        connect(address + "/mcp", era, **ada.answering) as client,
    ):
        with pytest.raises(MCPError, match="this call asked 3 times"):
            await client.call_tool("pester", {})
    assert len(ada.asked) == 3


async def test_questions_that_come_after_a_call_are_bounded(lab: Lab, connect: Callable[..., Any]) -> None:
    ada = Person("ada")
    async with (
        lab.serving(lab.script("near", "asking", "near", isolation="session"), max_rounds=3) as address,
        connect(address + "/mcp", "legacy", **ada.answering) as client,
    ):
        await client.call_tool("burst", {})
        told = 0
        with anyio.fail_after(10):
            while told < 90:
                told = (await client.call_tool("refused", {})).structured_content["refused"]
    assert len(ada.asked) <= 10


@pytest.mark.filterwarnings("ignore:Client-to-server progress is deprecated")
async def test_the_progress_of_an_answer_goes_back_to_who_asked(
    lab: Lab, connect: Callable[..., Any], upstreams: Upstreams
) -> None:
    far, steps = Handshaking(), list[tuple[float, str | None]]()
    told = anyio.Event()

    async def note(progress: float, total: float | None, message: str | None) -> None:
        del total
        steps.append((progress, message))
        told.set()

    async def ask(ctx: Any, call_next: Any) -> Any:
        if ctx.method == "tools/call":
            related = ServerMessageMetadata(related_request_id=ctx.request_id)
            asked = form("Who?"), types.ElicitResult
            await ctx.session.send_request(*asked, metadata=related, progress_callback=note)
        return await call_next(ctx)

    async def answer(context: Any, params: Any) -> types.ElicitResult:
        await context.session.send_progress_notification(context.meta["progress_token"], 0.5, message="half")
        with anyio.fail_after(10):
            await told.wait()
        return await Person("ada").elicited(context, params)

    far.server.middleware.append(ask)
    async with (
        upstreams.serve(far.server) as url,
        lab.serving(lab.at("far", url)) as address,
        connect(address + "/mcp", "legacy", elicitation_callback=answer) as client,
    ):
        with pytest.raises(MCPError, match="roots"):
            await client.call_tool("roots", {})
    assert steps == [(0.5, "half")]

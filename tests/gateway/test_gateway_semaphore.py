"""A call that waits for its client's answer keeps no other call of the same server waiting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio.lowlevel import checkpoint
from hypothesis import given
from hypothesis import strategies as st

from tests.support.gateway_asking import Person
from tests.support.gateway_holding import ANSWER, ASK
from tests.support.gateway_questions import Handshaking
from truename.gateway.elicitation.semaphore import Permit, Semaphore

if TYPE_CHECKING:
    from collections.abc import Callable

    import mcp_types as types

    from tests.gateway.conftest import Lab, Upstreams

pytestmark = pytest.mark.anyio


class Slow(Person):
    """A person who answers when told to."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.was_asked, self.may_answer = anyio.Event(), anyio.Event()

    async def elicited(self, _: object, params: Any) -> types.ElicitResult:
        self.was_asked.set()
        await self.may_answer.wait()
        return await super().elicited(_, params)


async def test_while_a_client_is_asked_another_call_has_the_place(
    lab: Lab, connect: Callable[..., Any], era: str, upstreams: Upstreams
) -> None:
    slow, quick = Slow("slow"), Person("quick")
    heard: list[str] = []

    async def call(client: Any) -> None:
        heard.append((await client.call_tool("ask", {})).structured_content["content"]["name"])

    async with (
        upstreams.serve(Handshaking().server) as url,
        lab.serving(lab.at("far", url, max_concurrent=1)) as address,
        connect(address + "/mcp", era, **slow.answering) as first,
        connect(address + "/mcp", era, **quick.answering) as second,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(call, first)
        with anyio.fail_after(10):
            await slow.was_asked.wait()
            await call(second)
        slow.may_answer.set()
    assert heard == ["quick", "slow"]


async def test_a_held_call_that_nobody_comes_for_keeps_no_place(
    lab: Lab, raw: Callable[[str], Any], upstreams: Upstreams
) -> None:
    async with (
        upstreams.serve(Handshaking().server) as url,
        lab.serving(lab.at("far", url, max_concurrent=1, max_waiting=1)) as address,
        raw(address) as http,
    ):
        asked = [await http.result("tools/call", ASK) for _ in range(5)]
        for one in reversed(asked):
            again = {**ASK, "requestState": one["requestState"], "inputResponses": ANSWER}
            assert (await http.result("tools/call", again))["structuredContent"] == ANSWER["q1"]


async def test_who_comes_back_goes_before_who_comes() -> None:
    semaphore = Semaphore(1)
    order: list[str] = []
    back = anyio.Event()

    async def away(permit: Permit) -> None:
        async with permit.away():
            await back.wait()
        order.append("back")
        permit.leave()

    async def come(name: str) -> None:
        permit = await semaphore.take()
        order.append(name)
        permit.leave()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(away, await semaphore.take())
        await checkpoint()
        other = await semaphore.take()
        tasks.start_soon(come, "one")
        tasks.start_soon(come, "two")
        await checkpoint()
        assert (semaphore.free, semaphore.waiting) == (0, 2)
        back.set()
        for _ in range(3):
            await checkpoint()
        other.leave()
    assert order == ["back", "one", "two"]
    assert semaphore.free == 1


async def test_a_call_that_ends_while_it_is_away_leaves_nothing_behind() -> None:
    semaphore = Semaphore(1)
    permit = await semaphore.take()
    async with permit.away(), permit.away():
        assert semaphore.free == 1
        permit.leave()
        other = await semaphore.take()
    assert semaphore.free == 0
    async with permit.away():
        assert semaphore.free == 0
    other.leave()
    assert semaphore.free == 1


async def test_who_is_cancelled_away_has_its_place_without_waiting() -> None:
    semaphore = Semaphore(1)
    permit = await semaphore.take()
    with anyio.CancelScope() as question:
        async with permit.away():
            other = await semaphore.take()
            question.cancel()
            await checkpoint()
    assert semaphore.free == 0
    other.leave()
    # Two were in, and there is one place.
    assert semaphore.free == 0
    permit.leave()
    assert semaphore.free == 1


@given(st.data())
def test_no_more_are_in_than_there_are_places_and_none_is_lost(data: st.DataObject) -> None:
    most = data.draw(st.integers(1, 3))
    semaphore = Semaphore(most)
    inside, worst = 0, 0

    async def call(pauses: list[int], is_given_up: bool) -> None:
        nonlocal inside, worst
        with anyio.CancelScope() as scope:
            permit = await semaphore.take()
            try:
                inside, worst = inside + 1, max(worst, inside + 1)
                for pause in pauses:
                    inside -= 1
                    async with permit.away():
                        for _ in range(pause):
                            await checkpoint()
                    inside, worst = inside + 1, max(worst, inside + 1)
                if is_given_up:
                    scope.cancel()
                    await checkpoint()
            finally:
                inside -= 1
                permit.leave()

    async def run() -> None:
        async with anyio.create_task_group() as tasks:
            for _ in range(data.draw(st.integers(1, 8))):
                pauses = data.draw(st.lists(st.integers(0, 4), max_size=3))
                tasks.start_soon(call, pauses, data.draw(st.booleans()))

    anyio.run(run)
    assert worst <= most
    assert (semaphore.free, semaphore.waiting) == (most, 0)

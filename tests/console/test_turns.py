"""People take turns: whoever asks for many pages at once keeps nobody else waiting."""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from typing import TYPE_CHECKING

import anyio
import pytest

from tests.console.conftest import serving
from truename.console.fair_semaphore import MOST_WAITING, FairSemaphore
from truename.console.refusals import RefusedError
from truename.trust.approval_decisions import ApprovalDecisions

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from tests.gateway.conftest import Lab
    from truename.trust.approval_queue import PendingCall

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_each_person_who_waits_has_the_next_turn_after_one_of_each_other_person() -> None:
    turns, gate, order = FairSemaphore(1), threading.Event(), []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(turns.run, "eve", gate.wait)
        await anyio.wait_all_tasks_blocked()
        for whose in ("eve", "eve", "eve", "ann", "ben", "ann"):
            tasks.start_soon(turns.run, whose, lambda whose=whose: order.append(whose))
            await anyio.wait_all_tasks_blocked()
        gate.set()
    assert order == ["eve", "ann", "ben", "eve", "ann", "eve"]


async def test_of_one_person_so_many_wait_and_the_next_is_refused_and_nobody_else_is() -> None:
    turns, gate, done = FairSemaphore(2), threading.Event(), []
    async with anyio.create_task_group() as tasks:
        for _ in range(2 + MOST_WAITING):
            tasks.start_soon(turns.run, "eve", gate.wait)
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(RefusedError) as refused:
            await turns.run("eve", gate.wait)
        assert refused.value.status == 429
        tasks.start_soon(turns.run, "ann", lambda: done.append("ann"))
        await anyio.wait_all_tasks_blocked()
        assert not done
        gate.set()
    assert done == ["ann"]
    assert await turns.run("eve", lambda: "again") == "again"


def failing() -> None:
    raise RefusedError(404, "There is nothing.")


@pytest.mark.parametrize("make", [failing, lambda: None])
async def test_a_turn_is_handed_on_whatever_becomes_of_it(make: Callable[[], None]) -> None:
    turns = FairSemaphore(1)
    for _ in range(3):
        try:
            await turns.run("ann", make)
        except RefusedError:
            assert make is failing
    with anyio.fail_after(5):
        assert await turns.run("ben", lambda: "mine") == "mine"


async def test_who_leaves_while_waiting_takes_no_turn() -> None:
    turns, gate = FairSemaphore(1), threading.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(turns.run, "eve", gate.wait)
        await anyio.wait_all_tasks_blocked()
        async with anyio.create_task_group() as leaving:
            for _ in range(2):
                leaving.start_soon(turns.run, "ann", lambda: None)
            await anyio.wait_all_tasks_blocked()
            leaving.cancel_scope.cancel()
        gate.set()
    with anyio.fail_after(5):
        assert [await turns.run("ann", int), await turns.run("ben", int)] == [0, 0]


async def test_who_leaves_at_the_moment_of_their_turn_hands_it_on() -> None:
    turns, gate = FairSemaphore(1), threading.Event()

    async def first(leaving: asyncio.Task[int]) -> None:
        await turns.run("eve", gate.wait)
        # It is Ann's turn now, and she does not know yet.
        leaving.cancel()

    async with anyio.create_task_group() as tasks:
        waits = anyio.Event()

        async def ann() -> int:
            await waits.wait()
            return await turns.run("ann", int)

        leaving = asyncio.create_task(ann())
        tasks.start_soon(first, leaving)
        await anyio.wait_all_tasks_blocked()
        waits.set()
        await anyio.wait_all_tasks_blocked()
        gate.set()
    assert leaving.cancelled()
    with anyio.fail_after(5):
        assert await turns.run("ben", int) == 0


async def test_who_sends_many_decisions_keeps_nobody_else_from_deciding(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    came: list[str] = []
    gate = threading.Event()
    find, turn = ApprovalDecisions.pending, FairSemaphore.turn

    def looked_up(self: ApprovalDecisions, key: str) -> PendingCall | None:
        order.append(key)
        gate.wait()
        return find(self, key)

    def noted(self: FairSemaphore, whose: str) -> AbstractAsyncContextManager[None]:
        came.append(whose)
        return turn(self, whose)

    async with serving(lab) as world, world.browser("app") as eve, world.browser("op") as ann:
        said = {"answer": "grant", "scope": "call"}
        many, one = {**said, "csrf": await eve.csrf()}, {**said, "csrf": await ann.csrf()}
        monkeypatch.setattr(ApprovalDecisions, "pending", looked_up)
        monkeypatch.setattr(FairSemaphore, "turn", noted)
        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(partial(eve.post, f"/console/approvals/eve{number}/decision", **many))
            await until(lambda: len(came) == 20)
            tasks.start_soon(partial(ann.post, "/console/approvals/ann/decision", **one))
            await until(lambda: "op" in came)
            gate.set()
    assert len(order) == 21
    # One was decided on when she came, and the next one had its turn before her.
    assert order.index("ann") == 2


async def until(is_so: Callable[[], bool]) -> None:
    with anyio.fail_after(20):
        while not is_so():
            await anyio.sleep(0.01)

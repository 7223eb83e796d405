"""A block that others end, alone or within others, and threads that outlive nobody who waits for them."""

from __future__ import annotations

import asyncio
import threading
from functools import partial

import anyio
import pytest

from truename.gateway.cancellation import Cancellation
from truename.gateway.deadline import Deadline
from truename.gateway.protocol.turns import beside_loop, go_on, in_thread

pytestmark = pytest.mark.anyio


def soon(do: object) -> None:
    assert callable(do)
    asyncio.get_running_loop().call_soon(do)


async def test_a_block_ends_at_its_await_and_what_follows_goes_on() -> None:
    told = list[str]()
    with Cancellation() as cancellation:
        soon(cancellation.cancel)
        await anyio.sleep_forever()
        told.append("after the await")
    await asyncio.sleep(0)

    assert (told, cancellation.has_ended_block) == ([], True)


async def test_a_block_that_was_cancelled_before_it_began_ends_at_its_first_await() -> None:
    cancellation, told = Cancellation(), list[str]()
    cancellation.cancel()
    with cancellation:
        told.append("begun")
        await asyncio.sleep(60)
        told.append("waited")
    await asyncio.sleep(0)

    assert (told, cancellation.has_ended_block) == (["begun"], True)


async def test_who_cancels_a_block_that_has_ended_changes_nothing() -> None:
    with Cancellation() as cancellation:
        await asyncio.sleep(0)
    cancellation.cancel()
    await asyncio.sleep(0)

    assert not cancellation.has_ended_block


async def test_a_task_that_cancels_its_own_block_without_another_await_goes_on_behind_it() -> None:
    with Cancellation() as cancellation:
        cancellation.cancel()
    for _ in range(3):
        await asyncio.sleep(0)

    assert not cancellation.has_ended_block


async def test_the_outer_of_two_blocks_that_are_cancelled_at_once_ends_too() -> None:
    told = list[str]()
    with Cancellation() as outer:
        with Cancellation() as inner:
            soon(inner.cancel)
            soon(outer.cancel)
            await anyio.sleep_forever()
        told.append("between")
    await asyncio.sleep(0)

    assert (told, inner.has_ended_block, outer.has_ended_block) == ([], False, True)


async def test_a_cancelled_task_is_not_kept_by_a_block_that_is_cancelled_with_it() -> None:
    async def block() -> None:
        with cancellation:
            await anyio.sleep_forever()

    cancellation = Cancellation()
    task = asyncio.create_task(block())
    await asyncio.sleep(0)
    cancellation.cancel()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("is_inner", [True, False])
async def test_a_cancelled_scope_of_anyio_and_a_block_end_each_their_own(*, is_inner: bool) -> None:
    told = list[str]()
    with Cancellation() as cancellation:
        with anyio.CancelScope() as scope:
            soon(scope.cancel if is_inner else cancellation.cancel)
            await anyio.sleep_forever()
        told.append("between")
    await asyncio.sleep(0)

    assert told == (["between"] if is_inner else [])
    assert (scope.cancelled_caught, cancellation.has_ended_block) == (is_inner, not is_inner)


async def test_a_deadline_within_a_block_is_over_for_itself() -> None:
    with Cancellation() as cancellation, pytest.raises(TimeoutError), Deadline(0.01):
        await anyio.sleep_forever()
    await asyncio.sleep(0)

    assert not cancellation.has_ended_block


async def test_a_task_group_in_a_block_that_is_cancelled_has_no_task_left() -> None:
    ended = list[int]()

    async def child(number: int) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append(number)

    with Cancellation() as cancellation:
        async with anyio.create_task_group() as tasks:
            for number in range(3):
                tasks.start_soon(child, number)
            soon(cancellation.cancel)

    assert (sorted(ended), cancellation.has_ended_block) == ([0, 1, 2], True)


@pytest.mark.parametrize("way", ["block", "anyio", "twice"])
async def test_a_lock_is_held_until_the_thread_behind_it_has_ended(way: str) -> None:
    lock, may_end, order = anyio.Lock(), threading.Event(), list[str]()

    def work() -> None:
        may_end.wait(10)
        order.append("thread")

    async def first() -> None:
        async with lock:
            await in_thread(work)

    async def second() -> None:
        async with lock:
            order.append("next")

    cancellation, scope = Cancellation(), anyio.CancelScope()

    async def cancelled() -> None:
        with cancellation, scope:
            await first()

    one = asyncio.create_task(cancelled())
    await anyio.wait_all_tasks_blocked()
    two = asyncio.create_task(second())
    await asyncio.sleep(0)
    scope.cancel() if way == "anyio" else cancellation.cancel()
    await asyncio.sleep(0)
    if way == "twice":
        scope.cancel()
        await asyncio.sleep(0)
    assert order == []
    may_end.set()
    await one
    await two

    assert order == ["thread", "next"]


async def test_work_beside_the_loop_stops_where_nobody_waits_for_it_any_more() -> None:
    begun, ended = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        try:
            while not ended.wait(0.001):
                go_on()
        finally:
            ended.set()

    loop = asyncio.get_running_loop()
    with Cancellation() as cancellation:
        loop.run_in_executor(None, lambda: begun.wait(10) and loop.call_soon_threadsafe(cancellation.cancel))
        await beside_loop(work)

    assert (cancellation.has_ended_block, ended.is_set()) == (True, True)


async def test_what_a_thread_raises_is_raised_to_who_waits() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        await in_thread(partial(int, "x"))

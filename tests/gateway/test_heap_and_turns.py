"""Long work beside the event loop, and what Python's garbage collector leaves alone meanwhile."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import TYPE_CHECKING, Any

import anyio
import anyio.from_thread
import pytest
from anyio.lowlevel import checkpoint

from truename.gateway.calls.draining import Answering
from truename.gateway.drain import ANSWERS_KEY, DrainTracker
from truename.gateway.heap import Heap, growing, still
from truename.gateway.protocol.turns import beside_loop, go_on, in_slices

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.slow, pytest.mark.anyio]


class Shown:
    """What is shown, and refers to itself if it is told to."""

    def __init__(self, *, itself: bool = False) -> None:
        self.itself = self if itself else None


@pytest.fixture
def collector() -> Iterator[None]:
    before = gc.get_threshold(), gc.get_freeze_count()
    yield
    gc.unfreeze()
    assert gc.isenabled()
    assert gc.get_threshold() == before[0]


@pytest.mark.usefixtures("collector")
def test_full_collections_begin_again_when_the_last_list_is_made() -> None:
    before = gc.get_threshold()
    with growing():
        with growing():
            assert gc.get_threshold()[:2] == before[:2]
            assert gc.get_threshold()[2] > before[2]
        assert gc.get_threshold()[2] > before[2]
    assert gc.get_threshold() == before


@pytest.mark.usefixtures("collector")
def test_there_is_no_collection_in_a_block_that_is_still_and_one_that_is_off_stays_off() -> None:
    with still():
        assert not gc.isenabled()
        with still():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


@pytest.mark.usefixtures("collector")
def test_only_large_lists_are_left_out_of_collections() -> None:
    heap = Heap()
    gc.unfreeze()
    heap.keep([Shown()], 100)
    assert gc.get_freeze_count() == 0
    heap.keep([Shown()], 20_000)
    assert gc.get_freeze_count() > 0


@pytest.mark.usefixtures("collector")
def test_what_is_shown_no_more_goes_though_it_was_left_out() -> None:
    heap, shown = Heap(), Shown()
    heap.keep([shown], 20_000)
    gone = weakref.ref(shown)
    del shown
    assert gone() is None


@pytest.mark.usefixtures("collector")
def test_what_keeps_itself_is_collected_in_the_end() -> None:
    heap = Heap()
    first = weakref.ref(Shown())
    for number in range(12):
        shown = Shown(itself=True)
        first = weakref.ref(shown) if number == 0 else first
        heap.keep([shown], 20_000)
        del shown
        gc.collect()
    assert first() is None


@pytest.mark.usefixtures("collector")
def test_all_is_looked_at_again_after_some_lists() -> None:
    heap, frozen = Heap(), list[bool]()
    for _ in range(20):
        shown = Shown()
        heap.keep([shown], 20_000)
        frozen.append(gc.get_freeze_count() > 0)
    assert False in frozen
    assert frozen[0]
    assert frozen[-1]


async def test_others_have_their_turns_while_long_work_is_done_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("truename.gateway.protocol.turns.SLICE_SECONDS", 0.0)
    seen: list[int | str] = []

    async def other() -> None:
        seen.append("other")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(other)
        async for number in in_slices(range(3)):
            seen += [number]
    assert sorted(map(str, seen)) == ["0", "1", "2", "other"]
    assert seen[-1] == 2


async def test_work_beside_the_loop_gives_back_what_it_made_and_keeps_nothing() -> None:
    made = await beside_loop(Shown)
    gone = weakref.ref(made)
    del made
    assert gone() is None


async def test_work_that_nobody_waits_for_ends_where_it_asks() -> None:
    begun, go, after = anyio.Event(), threading.Event(), list[str]()

    def work() -> None:
        anyio.from_thread.run_sync(begun.set)
        assert go.wait(60)
        go_on()
        after.append("it went on")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(beside_loop, work)
        await begun.wait()
        tasks.cancel_scope.cancel()
        # The task hears of it in its next turn, and the thread from the task.
        with anyio.CancelScope(shield=True):
            for _ in range(3):
                await checkpoint()
        go.set()
    assert not after
    go_on()


def test_a_request_that_was_answered_is_let_go_of_without_a_collection() -> None:
    scope: dict[str, Any] = {}
    with still():
        with Answering(scope, DrainTracker(), "truename"):
            answers = weakref.ref(scope.pop(ANSWERS_KEY))

        assert answers() is None

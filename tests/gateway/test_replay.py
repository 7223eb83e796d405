"""What is kept for clients whose stream broke off: of its session and stream alone, and within bounds."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truename.gateway.http.replay import STANDALONE, Bounds, Key, Replay, SessionEvents
from truename.gateway.mcp.messages import notification, response

pytestmark = pytest.mark.anyio

WIDE = Bounds(events=1_000, bytes=1_000_000, total=10_000_000)


def told(text: str) -> dict[str, Any]:
    return notification("notifications/message", {"data": text})


def answer(id: int, text: str = "") -> dict[str, Any]:
    return response(id, {"text": text})


class Bench:
    """Sessions over one memory; ``live`` are the streams that are being sent."""

    def __init__(self, bounds: Bounds = WIDE) -> None:
        self.live: set[Key] = set()
        self.replay = Replay(bounds)

    def session(self) -> SessionEvents:
        return self.replay.session(self.live.__contains__)


async def after(session: SessionEvents, id: str) -> list[str]:
    """Return what is kept after an event, without waiting for more."""
    position = session.after(id)
    assert position is not None
    found = []
    with anyio.move_on_after(0):
        async for event in session.following(position):
            found.append(event.text.decode())  # noqa: PERF401 - what comes before it is let go counts
    return found


async def test_a_client_goes_on_after_the_event_that_it_has() -> None:
    session = Bench().session()
    first = session.begin("1")
    second = session.store("1", told("a")).id
    session.store("2", told("of another"))
    session.store("1", answer(1, "b"))
    assert [json.loads(text).get("method", "answer") for text in await after(session, first)] == [
        "notifications/message",
        "answer",
    ]
    assert [json.loads(text)["id"] for text in await after(session, second)] == [1]


async def test_who_goes_on_gets_what_comes_later_too_and_the_answer_ends_it() -> None:
    session = Bench().session()
    position = session.after(session.begin("1"))
    assert position is not None
    found: list[Any] = []

    async def follow() -> None:
        async for event in session.following(position):
            found.append(json.loads(event.text))  # noqa: PERF401 - it does not end by itself

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follow)
            await anyio.wait_all_tasks_blocked()
            session.store("1", told("a"))
            await anyio.wait_all_tasks_blocked()
            session.store("1", answer(1))
    assert [one.get("id") for one in found] == [None, 1]


@pytest.mark.parametrize("end", ["another", "close", "live", "again"])
async def test_who_follows_is_let_go(end: str) -> None:
    bench = Bench()
    session = bench.session()
    position = session.after(session.begin("1"))
    assert position is not None

    async def follow() -> None:
        async for _ in session.following(position):
            pass

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follow)
            await anyio.wait_all_tasks_blocked()
            if end == "another":
                await after(session, f"{position.stream.number}-{position.serial}")
            elif end == "close":
                session.close()
            elif end == "live":
                bench.live.add("1")
                session.store("1", told("a"))
            else:
                session.begin("1")


async def test_nothing_of_another_session_is_given() -> None:
    bench = Bench()
    mine, other = bench.session(), bench.session()
    id = mine.begin("1")
    mine.store("1", answer(1, "secret"))
    assert other.after(id) is None
    other.begin("1")
    assert other.after(id) is None


@pytest.mark.parametrize("id", ["", "-", "1", "x-1", "1-x", "1-", "9" * 30 + "-1", "¹-²", "0-0", "1-1-1", " 1-1"])
async def test_an_id_that_is_none_is_of_nothing(id: str) -> None:
    session = Bench().session()
    session.begin("1")
    assert session.after(id) is None


async def test_an_id_that_a_client_uses_again_begins_another_stream() -> None:
    session = Bench().session()
    first = session.begin("1")
    session.store("1", answer(1, "old"))
    second = session.begin("1")
    session.store("1", answer(1, "new"))
    assert ["old" in text for text in await after(session, first)] == [True]
    assert ["new" in text for text in await after(session, second)] == [True]
    # Clients before 2025-11-25 are told no place at which a stream begins.
    third = session.store("1", told("later")).id
    assert await after(session, third) == []


async def test_what_no_client_can_ask_for_is_not_kept() -> None:
    bench = Bench()
    session = bench.session()
    id = session.store(STANDALONE, told("a")).id
    assert session.after(id) is None
    assert len(bench.replay) == 0
    bench.live.add(STANDALONE)
    id = session.store(STANDALONE, {**ERROR, "id": None}).id
    bench.live.clear()
    session.store(STANDALONE, told("b"))
    assert len(await after(session, id)) == 1


ERROR = {"jsonrpc": "2.0", "error": {"code": -32700, "message": "?"}}


async def test_in_place_of_an_answer_that_is_too_large_an_error_says_so() -> None:
    bench = Bench(Bounds(events=10, bytes=2_000, total=100_000))
    session = bench.session()
    begin = session.begin("1")
    session.store("1", told("x" * 5_000))
    session.store("1", told("small"))
    # Who is there is sent the answer itself.
    assert len(session.store("1", answer(1, "x" * 5_000)).text) > 5_000
    small, error = map(json.loads, await after(session, begin))
    assert small["params"]["data"] == "small"
    assert error["id"] == 1
    assert "too large to keep for a client" in error["error"]["message"]


async def test_what_is_gone_is_gone_whole() -> None:
    bench = Bench(Bounds(events=2, bytes=100_000, total=100_000))
    session = bench.session()
    first = session.begin("1")
    session.store("1", answer(1))
    for number in (2, 3):
        session.begin(str(number))
        session.store(str(number), answer(number))
    assert session.after(first) is None


STEPS = st.lists(
    st.tuples(
        st.integers(0, 2), st.integers(1, 4), st.sampled_from(["begin", "tell", "answer", "close"]), st.integers(0, 900)
    ),
    max_size=60,
)


@given(STEPS, st.integers(1, 5), st.integers(400, 3_000), st.integers(400, 4_000))
def test_bounds_hold_and_nobody_gets_what_is_not_theirs(
    steps: list[tuple[int, int, str, int]], events: int, size: int, total: int
) -> None:
    bench = Bench(Bounds(events, size, total))
    sessions = [bench.session() for _ in range(3)]
    ids: defaultdict[int, list[str]] = defaultdict(list)

    async def run() -> None:
        for who, key, what, length in steps:
            if what == "close":
                sessions[who].close()
                continue
            text = f"{who}/{key}/" + "x" * length
            session = sessions[who]
            message = told(text) if what == "tell" else answer(key, text)
            ids[who].append(session.begin(str(key)) if what == "begin" else session.store(str(key), message).id)
            assert bench.replay.size <= total
            assert len(bench.replay) <= 3 * events
        for who, own in ids.items():
            for id in own:
                assert all(other.after(id) is None for other in sessions if other is not sessions[who])
                position = sessions[who].after(id)
                if position is not None:
                    found = await after(sessions[who], id)
                    assert all(f"{who}/{position.stream.key}/" in one or "too large" in one for one in found)
        for session in sessions:
            session.close()
        assert (len(bench.replay), bench.replay.size) == (0, 0)

    anyio.run(run)

"""The table of tasks: whatever is begun, over and forgotten, an id leads to the one task that it was shown for."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truename.gateway.protocol.tasks import Begun, begun_in, related_to, renamed, time_to_live
from truename.gateway.views.tasks import Task, TaskPlace, Tasks


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def at(server: str, id: str = "1", connection: str | None = None) -> TaskPlace:
    return TaskPlace(server, "", "", connection, id)


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(("begin", "forget", "pass", "leave")),
        st.sampled_from("xyz"),
        st.sampled_from("abc"),
        st.sampled_from(("1", "2", "3")),
        st.sampled_from((None, 0, 5_000, 60_000)),
    ),
    max_size=60,
)


@given(_STEPS)
def test_an_id_never_leads_to_another_task(steps: list[tuple[str, str, str, str, float | None]]) -> None:
    clock = Clock()
    tasks = Tasks(5, clock)
    begun: list[Task] = []
    for what, owner, server, id, ttl in steps:
        if what == "begin":
            begun.append(tasks.begin(owner, at(server, id), ttl))
            assert tasks.at(at(server, id)) is begun[-1]
        elif what == "forget" and begun:
            tasks.forget(begun[len(begun) // 2])
        elif what == "leave":
            tasks.forget_all(owner)
            assert tasks.of(owner) == ()
        else:
            clock.now += 3
        assert len(tasks) <= 5
        for task in begun:
            for who in "xyz":
                found = tasks.find(who, task.shown)
                assert found is None or (found.owner == who and found.shown == task.shown)
        shown = [task.shown for who in "xyz" for task in tasks.of(who)]
        assert len(shown) == len(set(shown))


def test_a_task_is_kept_as_long_as_its_server_says() -> None:
    clock = Clock()
    tasks = Tasks(10, clock)
    short, long, endless = (tasks.begin("x", at("a", id), ttl) for id, ttl in (("1", 1_000), ("2", 1_000), ("3", None)))
    tasks.keep(long, 5_000)
    clock.now = 3
    assert tasks.find("x", short.shown) is None
    assert [task.shown for task in tasks.of("x")] == ["2", "3"]
    tasks.keep(long, 1_000)
    assert tasks.find("x", long.shown) is long
    tasks.keep(endless, 4_000)
    clock.now = 6
    assert tasks.of("x") == ()


def test_who_has_the_most_loses_the_oldest() -> None:
    clock = Clock()
    tasks = Tasks(3, clock)
    kept = tasks.begin("x", at("a", "1"))
    tasks.begin("y", at("a", "2"))
    tasks.begin("y", at("a", "3"))
    tasks.begin("x", at("a", "4"))
    assert tasks.find("x", kept.shown) is kept
    assert [task.shown for task in tasks.of("y")] == ["3"]
    # What is over goes first, whoever has it.
    tasks.keep(kept, 0)
    clock.now = 1
    tasks.begin("y", at("a", "5"))
    assert [len(tasks.of(who)) for who in "xy"] == [1, 2]


def test_connections_of_their_own_may_have_the_same_ids() -> None:
    tasks = Tasks(10)
    mine, yours = tasks.begin("x", at("a", "1", "x")), tasks.begin("y", at("a", "1", "y"))
    assert (tasks.find("x", mine.shown), tasks.find("y", yours.shown)) == (mine, yours)
    assert mine.shown != yours.shown


@pytest.mark.parametrize(
    ("result", "modern", "expected"),
    [
        ({"task": {"taskId": "1", "ttl": 5}}, False, Begun("1", 5)),
        ({"task": {"taskId": "1", "ttl": None}}, False, Begun("1", None)),
        ({"task": {"taskId": 1}}, False, None),
        ({"task": "1"}, False, None),
        ({"resultType": "task", "taskId": "1"}, False, None),
        ({"resultType": "task", "taskId": "1", "ttlMs": 7}, True, Begun("1", 7)),
        ({"resultType": "task"}, True, None),
        ({"resultType": "complete", "taskId": "1"}, True, None),
        ({"task": {"taskId": "1"}}, True, None),
    ],
)
def test_what_began_a_task(result: dict[str, Any], modern: bool, expected: Begun | None) -> None:
    assert begun_in(result, modern=modern) == expected


@pytest.mark.parametrize(
    ("said", "kept"),
    [(60, 60), (0, 0), (-5, 0), (math.inf, 1e15), (10**400, 1e15), (math.nan, None), (True, None), ("5", None)],
)
def test_how_long_a_task_is_kept(said: Any, kept: float | None) -> None:
    assert time_to_live({"ttl": said}, modern=False) == kept


RELATED = "io.modelcontextprotocol/related-task"


@pytest.mark.parametrize(
    "message",
    [
        {},
        {"_meta": None},
        {"_meta": {RELATED: "1"}},
        {"_meta": {RELATED: {"taskId": 1}}},
        {"taskId": ["1"]},
        {"task": 1},
    ],
)
def test_what_names_no_task_stays_as_it_is(message: dict[str, Any]) -> None:
    assert related_to(message) is None
    assert renamed(message, "1", "2") == message


def test_an_id_is_renamed_wherever_the_protocol_has_it() -> None:
    meta = {"x": 1, RELATED: {"taskId": "1", "y": 2}}
    message = {"task": {"taskId": "1"}, "taskId": "1", "text": "1", "result": {"_meta": meta}, "_meta": meta}
    found = renamed(message, "1", "2")
    assert found == {
        "task": {"taskId": "2"},
        "taskId": "2",
        "text": "1",
        "result": {"_meta": {"x": 1, RELATED: {"taskId": "2", "y": 2}}},
        "_meta": {"x": 1, RELATED: {"taskId": "2", "y": 2}},
    }
    assert renamed(found, "2", "1") == message
    assert renamed(message, "3", "4") == message

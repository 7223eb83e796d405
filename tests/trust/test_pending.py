"""What waits for a word: one request for one call, bounded, forgotten in time, and read strictly."""

from __future__ import annotations

import os
import sqlite3
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.trust_pending import call, wanted
from truename.errors import StoreError
from truename.policy import Approvals
from truename.trust import approval_queue
from truename.trust.approval_queue import ApprovalQueue, PendingCall, decided

if TYPE_CHECKING:
    from truename.policy import Call
    from truename.storage import StateLocation


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def ask(book: ApprovalQueue, made: Call, most: int = 10) -> PendingCall:
    return book.ask(wanted(made), most=most, lasts=60.0)


def test_the_same_call_is_one_request_and_another_is_another(place: StateLocation) -> None:
    with ApprovalQueue(place) as book:
        first = ask(book, call(x=1))
        assert ask(book, call(key="c2", x=1)).key == first.key
        others = [call(x=2), call(principal="bob", x=1), call(name="git_pull", x=1)]
        assert len({first.key, *(ask(book, other).key for other in others)}) == 4
        assert book.all()[0].key == first.key


def test_a_request_is_forgotten_in_time(place: StateLocation) -> None:
    clock = Clock()
    with ApprovalQueue(place, now=clock) as book:
        first = ask(book, call(x=1))
        clock.now += 59
        assert book.find(first.key) == first
        clock.now += 1
        assert book.find(first.key) is None
        assert book.all() == []
        assert ask(book, call(x=1)).key != first.key


def test_so_many_of_one_principal_wait_and_others_are_not_concerned(place: StateLocation) -> None:
    with ApprovalQueue(place) as book:
        for number in range(3):
            ask(book, call(x=number), most=3)
        with pytest.raises(StoreError) as caught:
            ask(book, call(x=3), most=3)
        assert caught.value.code == "full"
        assert ask(book, call(x=0), most=3).is_open
        assert ask(book, call(principal="bob", x=3), most=3).is_open
        # What is decided waits no more.
        book.settle(book.all()[0].key, book.all()[0].until)
        assert ask(book, call(x=3), most=3).is_open


def test_who_answers_their_own_questions_without_end_keeps_nobody_else_from_asking(
    place: StateLocation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(approval_queue, "MAX_PENDING_CALLS", 12)
    monkeypatch.setattr(approval_queue, "MAX_DECIDED_CALLS", 10)
    with ApprovalQueue(place) as book:
        for number in range(40):
            last = ask(book, call(principal="mallory", x=number))
            book.settle(last.key, last.until)
        assert ask(book, call(principal="ann")).is_open
        # The last ones are known still.
        assert ask(book, call(principal="mallory", x=39)).key == last.key


def test_of_one_caller_so_many_decisions_are_kept_where_that_is_said(place: StateLocation) -> None:
    approvals = Approvals()
    with ApprovalQueue(place) as book:
        first = ask(book, call(principal="ann"))
        decided(first, "always", approvals, book, approved=True, by="ann", lasts=60.0, most=3)
        for number in range(10):
            made = ask(book, call(principal="mallory", x=number))
            decided(made, "arguments", approvals, book, approved=True, by="mallory", lasts=60.0, most=3)
        by_hand = ask(book, call(principal="mallory", x="by hand"))
        decided(by_hand, "arguments", approvals, book, approved=True, by="operator", lasts=60.0)
    assert [one.by for one in approvals.grants()] == ["ann", "mallory", "mallory", "mallory", "operator"]
    assert approvals.status(call(principal="mallory", x=9)).state == "approved"
    assert approvals.status(call(principal="mallory", x=6)).state == "undecided"


def test_a_decision_for_a_session_is_for_the_one_that_called_last(place: StateLocation) -> None:
    with ApprovalQueue(place) as book:
        assert "session" not in ask(book, call(x=1)).scopes
        again = ask(book, call(x=1, session="s2"))
        assert (again.session, "session" in again.scopes) == ("s2", True)
        found = book.find(again.key)
        assert found is not None
        assert found.session == "s2"


@pytest.mark.parametrize("approved", [True, False])
@pytest.mark.parametrize("scope", ["call", "arguments", "session", "always"])
def test_whoever_decides_makes_the_same_grant(tmp_path: Path, scope: Any, *, approved: bool) -> None:
    path = tmp_path / "state.db"
    with ApprovalQueue(path) as book:
        one = ask(book, call(session="s", x=1))
        grant = decided(one, scope, Approvals.open(path), book, approved=approved, by="ada", lasts=60.0)
        state = "approved" if approved else "rejected"
        approvals = Approvals.open(path)
        # Of one call its key tells it, in whatever session.
        same = call(key=one.key, x=1) if scope == "call" else call(session="s", key="later", x=1)
        assert approvals.status(same).state == state
        assert approvals.status(call(principal="bob", key=one.key, session="s", x=1)).state == "undecided"
        assert (approvals.status(call(key="later", session="s", x=2)).state == state) is (
            scope in {"session", "always"}
        )
        assert bool(grant.until) is (scope == "call")
        left = book.find(one.key)
        assert (left is not None) is (scope == "call")
        assert left is None or left.arguments == ""


def test_several_threads_and_processes_keep_one_request(tmp_path: Path) -> None:
    path = tmp_path / "pending"

    def asked(number: int) -> str:
        with ApprovalQueue(path) as book:
            return ask(book, call(key=f"c{number}", x=1)).key

    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(asked, range(24)))) == 1


def test_nobody_else_reads_the_file_and_what_was_decided_is_gone_from_it(tmp_path: Path) -> None:
    path = tmp_path / "sub" / "state.db"
    with ApprovalQueue(path) as book:
        one = book.ask(PendingCall(**{**vars(wanted(call(x=1))), "arguments": "canary-4711"}), most=1, lasts=60.0)
        decided(one, "call", Approvals.open(path), book, approved=True, lasts=60.0)
    for file in filter(Path.is_file, path.parent.rglob("*")):
        assert b"canary-4711" not in file.read_bytes()
        if os.name == "posix":
            assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE pending_call SET tool = 'no tool'",
        "UPDATE pending_call SET principal = x'00ff'",
        "UPDATE part SET version = 9",
        "ALTER TABLE pending_call DROP COLUMN reason",
    ],
)
def test_a_file_that_is_not_ours_any_more_is_refused(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "pending"
    with ApprovalQueue(path) as book:
        ask(book, call(x=1))
    data = sqlite3.connect(path)
    data.execute(statement)
    data.commit()
    data.close()
    before = path.read_bytes()
    with pytest.raises(StoreError), ApprovalQueue(path) as book:
        book.all()
    assert path.read_bytes() == before


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 3)), max_size=30))
def test_requests_are_one_to_one_with_calls(calls: list[tuple[str, int]]) -> None:
    with ApprovalQueue() as book:
        keys = {(who, x): ask(book, call(principal=who, x=x), most=99).key for who, x in calls}
        assert len(set(keys.values())) == len(keys)
        assert {one.key for one in book.all()} == set(keys.values())


def test_a_request_ends_with_the_approval_that_answered_it(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, approvals = Clock(), Approvals()
    clock.now += 0.7
    monkeypatch.setattr("time.time", clock)
    with ApprovalQueue(now=clock) as book:
        one = ask(book, call(x=1))
        grant = decided(one, "call", approvals, book, approved=True, lasts=60.0, grant_lasts=3.0)
        assert grant.until == approval_queue.stamp(1_003)
        clock.now = 1_002.9
        assert ask(book, call(x=1)).key == one.key
        clock.now = 1_003.0
        assert ask(book, call(x=1)).key != one.key

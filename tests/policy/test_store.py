"""Stores: all or nothing, shared by threads and processes, bounded, and never written over when damaged."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.policy.calls import call, search_of, shown
from tests.shared import ROOT
from truename.errors import CallRepeated, StoreError, TruenameError
from truename.policy import Approvals, Caller, MemoryStore, SqlApprovalStore
from truename.policy import store as book_module
from truename.storage import StateLocation

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from truename.policy import Grant, Scope


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "state.db"


def test_what_was_decided_is_there_for_the_next_process(place: StateLocation) -> None:
    first = Approvals.open(place)
    first.approve(search_of("docs", "c1", '{"q": 1}'), "always", by="eve")
    first.reject(search_of("docs", "c2"), message='no "x" \ud800 é')
    with first.once(search_of("docs", "c3")):
        pass
    second = Approvals.open(place)

    assert second.grants() == first.grants()
    assert second.status(search_of("docs", "c4")).state == "approved"
    assert second.status(search_of("docs", "c2")).state == "rejected"
    with pytest.raises(CallRepeated, match="it is done"):
        second.begin(search_of("docs", "c3"))
    with pytest.raises(CallRepeated, match="another call"):
        second.status(search_of("docs", "c1", '{"q": 2}'))


def test_looking_creates_nothing(path: Path) -> None:
    approvals = Approvals.open(path)

    assert approvals.status(search_of("docs")).state == "undecided"
    assert not path.parent.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="permissions are of another kind there")
def test_the_file_is_for_its_owner_only(path: Path) -> None:
    Approvals.open(path).approve(search_of("docs"))

    assert path.stat().st_mode & 0o777 == 0o600
    assert {file.stat().st_mode & 0o777 for file in path.parent.iterdir()} == {0o600}


def test_others_changes_are_seen_at_once(place: StateLocation) -> None:
    one, other = Approvals.open(place), Approvals.open(place)
    grant = one.approve(search_of("docs", "c1"), "always")
    seen = other.status(search_of("docs", "c2")).state
    other.revoke(grant.key)

    assert (seen, one.status(search_of("docs", "c3")).state) == ("approved", "undecided")


def test_what_was_asked_before_is_asked_again_after_any_decision(place: StateLocation) -> None:
    one, other = Approvals.open(place), Approvals.open(place)

    def state() -> str:
        return one.status(search_of("docs", "asked")).state

    states = [state(), state()]
    kept = other.approve(search_of("docs", "c1"), "always")
    states += [state(), state()]
    one.revoke(kept.key)
    states.append(state())
    other.reject(search_of("docs", "c2"), "always")
    states.append(state())

    assert states == ["undecided", "undecided", "approved", "approved", "undecided", "rejected"]


def test_a_call_that_runs_elsewhere_is_known_to_who_found_none_before(place: StateLocation) -> None:
    one, other = Approvals.open(place), Approvals.open(place)
    assert one.status(search_of("docs", "c1")).state == "undecided"
    other.begin(search_of("docs", "c1"))

    with pytest.raises(CallRepeated):
        one.status(search_of("mail", "c1"))


def test_what_is_asked_in_a_change_that_fails_is_not_kept(place: StateLocation) -> None:
    store = SqlApprovalStore(place)
    approvals = Approvals(store)
    grant = approvals.approve(search_of("docs", "c1"), "always")

    def fail() -> None:
        with store.change() as book:
            book.drop(grant.key)
            assert approvals.status(search_of("docs", "c2")).state == "undecided"
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert approvals.status(search_of("docs", "c2")).state == "approved"


def test_a_change_that_fails_leaves_everything_as_it_was(place: StateLocation) -> None:
    for store in (SqlApprovalStore(place), MemoryStore()):
        approvals = Approvals(store)
        approvals.approve(search_of("docs", "c1"), "always")

        def fail(store: SqlApprovalStore | MemoryStore = store) -> None:
            with store.change() as book:
                book.drop(book.grants()[0].key)
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fail()
        assert approvals.status(search_of("docs", "c2")).state == "approved"


def test_threads_that_run_one_call_run_it_once(place: StateLocation) -> None:
    ran: list[int] = []
    refused: list[CallRepeated] = []
    stores = [SqlApprovalStore(place), SqlApprovalStore(place)]

    def work(number: int) -> None:
        try:
            with Approvals(stores[number % 2]).once(search_of("docs")):
                ran.append(number)
        except CallRepeated as error:
            refused.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (len(ran), len(refused)) == (1, 7)


PROCESS = """
import sys
from tests.policy.calls import search_of
from truename.policy import Approvals
from truename.errors import CallRepeated
approvals = Approvals.open(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
for number in range(10):
    try:
        with approvals.once(search_of("docs", f"c{number}")):
            print(number, flush=True)
    except CallRepeated:
        pass
"""


def test_processes_that_run_the_same_calls_run_each_once(place: StateLocation) -> None:
    command = [sys.executable, "-c", PROCESS, str(place.address)]
    pipe = subprocess.PIPE
    both = [subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) for _ in range(2)]
    for process in both:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    # Nobody has begun before both are told to.
    told = [process.communicate("go\n", timeout=120)[0] for process in both]

    assert sorted(int(word) for text in told for word in text.split()) == list(range(10))
    assert [process.returncode for process in both] == [0, 0]


KILLED = """
import os, sys
from tests.policy.calls import search_of
from truename.policy import Approvals
Approvals.open(sys.argv[1]).begin(search_of("docs"))
os._exit(9)
"""


def test_a_call_whose_process_was_killed_is_not_run_again(place: StateLocation) -> None:
    subprocess.run([sys.executable, "-c", KILLED, str(place.address)], cwd=ROOT, check=False, timeout=120)

    with pytest.raises(CallRepeated, match="it is running"):
        Approvals.open(place).begin(search_of("docs"))


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE approval_grant SET tool = 'docs'",
        "UPDATE approval_grant SET until = 'soon'",
        "UPDATE approval_grant SET message = x'ff'",
        "UPDATE approval_call SET tool = 'Docs/search'",
        "UPDATE approval_call SET at = x'ff'",
    ],
)
def test_a_row_that_means_nothing_is_refused(path: Path, statement: str) -> None:
    approvals = Approvals.open(path)
    grant = approvals.approve(search_of("docs", "c1"))
    with closing(sqlite3.connect(path)) as data:
        data.execute(statement)
        data.commit()

    with pytest.raises(StoreError, match="is damaged") as refused:
        (approvals.grants(), approvals.state_of(grant))
    assert refused.value.code == "corrupt"


@pytest.mark.parametrize(
    ("scope", "column"),
    [("call", "call_id"), ("arguments", "arguments"), ("session", "session"), ("always", "digest")],
)
def test_no_row_loses_the_limit_of_its_grant(path: Path, scope: Scope, column: str) -> None:
    approvals = Approvals.open(path)
    approvals.approve(search_of("docs", "c1", caller=Caller(principal="ada", session="s")), scope)
    with closing(sqlite3.connect(path)) as data, pytest.raises(sqlite3.IntegrityError):
        data.execute(f"UPDATE approval_grant SET {column} = ''")


def test_a_file_that_vanished_takes_no_rejection_with_it(path: Path) -> None:
    approvals = Approvals.open(path)
    approvals.reject(search_of("docs", "c1"), "always")
    path.unlink()
    for ask in (approvals.status, approvals.approve, approvals.begin):
        with pytest.raises(StoreError, match="it was moved, removed or replaced") as caught:
            ask(search_of("docs", "c2"))
        assert caught.value.code == "unusable"


def test_a_text_that_is_too_long_is_refused(place: StateLocation) -> None:
    approvals = Approvals.open(place)
    one = search_of("docs", "c2")
    endless = replace(one, origin=replace(one.origin, server_id="x" * 9_000))
    with pytest.raises(StoreError, match="server has more than 8,192 characters") as caught:
        approvals.approve(endless)

    assert (caught.value.code, approvals.grants()) == ("full", ())


def test_a_path_that_can_not_be_used_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError) as read:
        Approvals.open(tmp_path)
    approvals = Approvals.open(tmp_path / "new" / "approvals.json")
    (tmp_path / "new").write_text("")
    with pytest.raises(StoreError) as wrote:
        approvals.approve(search_of("docs"))

    assert [caught.value.code for caught in (read, wrote)] == ["unusable", "unusable"]


def test_a_lock_that_another_has_is_told(place: StateLocation) -> None:
    one, other = SqlApprovalStore(place), Approvals(SqlApprovalStore(place, patience=0.0))
    with one.change(), pytest.raises(StoreError) as caught:
        other.approve(search_of("docs"))

    assert caught.value.code == "busy"
    assert "another process is writing" in str(caught.value)
    assert other.approve(search_of("docs")).approved


def test_calls_beyond_the_bound_are_forgotten_with_their_decisions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(book_module, "MAX_CALLS", 3)
    approvals = Approvals()
    approvals.begin(search_of("docs", "c0"))
    for number in range(1, 6):
        approvals.approve(search_of("docs", f"c{number}"))
    states = [approvals.status(search_of("docs", f"c{number}")).state for number in range(6)]

    assert states == ["undecided", "undecided", "undecided", "undecided", "approved", "approved"]
    with pytest.raises(CallRepeated):
        approvals.begin(search_of("docs", "c0"))


def test_a_flood_of_one_caller_s_calls_takes_nobody_else_s_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(book_module, "MAX_CALLS", 3)
    approvals, names = Approvals(), shown({"docs": ["search"]})
    anns = call(names, "docs_search", "c0", caller=Caller(principal="ann"))
    approvals.approve(anns)
    for number in range(5):
        approvals.approve(call(names, "docs_search", f"c{number}", caller=Caller(principal="mallory")))
    assert approvals.status(anns).state == "approved"


def test_more_than_can_be_kept_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(book_module, "MAX_CALLS", 2)
    monkeypatch.setattr(book_module, "MAX_GRANTS", 2)
    approvals = Approvals()
    names = shown({"docs": ["search", "fetch", "list"]})
    caller = Caller(principal="bob")
    for number, name in enumerate(["docs_search", "docs_fetch"]):
        approvals.approve(call(names, name, f"c{number}", caller=caller), "always")
    with pytest.raises(StoreError, match="2 decisions") as decisions:
        approvals.approve(call(names, "docs_list", "c2", caller=caller), "always")
    approvals.begin(search_of("docs", "c1"))
    approvals.begin(search_of("docs", "c2"))
    with pytest.raises(StoreError, match="2 calls are running") as running:
        approvals.begin(search_of("docs", "c3"))

    assert {caught.value.code for caught in (decisions, running)} == {"full"}


TEXTS = st.text(max_size=4) | st.sampled_from(["\ud800", "\ufffe", '\ufffe"x"', "\x00"])


@given(TEXTS, TEXTS, st.sampled_from(["call", "arguments", "session", "always"]))
def test_every_decision_comes_back_as_it_was_made(message: str, agent: str, scope: Scope) -> None:
    approvals = Approvals.open(StateLocation())
    caller = Caller(principal="ada", agent=agent, session="s")
    grant = approvals.reject(search_of("docs", caller=caller), scope, message=message)

    assert approvals.grants("ada", agent) == (grant,)
    assert approvals.status(search_of("docs", caller=caller)).grant == grant
    assert approvals.state_of(grant) == "seen"


_CALLERS = [Caller(principal=who, session=session) for who in ("ann", "bob") for session in ("", "s", "t")]
_STEPS = st.tuples(
    st.sampled_from(["approve", "reject", "begin", "finish", "revoke", "end"]),
    st.sampled_from(_CALLERS),
    st.sampled_from(["c1", "c2", "c3"]),
    st.sampled_from(['{"q": 1}', "{}"]),
    st.sampled_from(["call", "arguments", "session", "always"]),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(_STEPS, max_size=20))
def test_a_database_answers_as_memory_does(steps: list[tuple[str, Caller, str, str, Scope]]) -> None:
    """Whatever is decided, run, revoked or forgotten, and although few calls and decisions have room."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(book_module, "MAX_CALLS", 4)
        patched.setattr(book_module, "MAX_GRANTS", 4)
        both = [Approvals(), Approvals.open(StateLocation())]
        for step in steps:
            assert len({_done(approvals, step) for approvals in both}) == 1
            assert len({tuple(map(_plain, approvals.grants())) for approvals in both}) == 1


def _done(approvals: Approvals, step: tuple[str, Caller, str, str, Scope]) -> object:
    what, caller, call_id, arguments, scope = step
    one = search_of("docs", call_id, arguments, caller=caller)
    grants = approvals.grants()
    ways: dict[str, Callable[[], object]] = {
        "approve": lambda: approvals.approve(one, scope) and None,
        "reject": lambda: approvals.reject(one, scope) and None,
        "begin": lambda: approvals.begin(one),
        "finish": lambda: approvals.finish(one),
        "revoke": lambda: approvals.revoke(grants[0].key if grants else "none") is None,
        "end": lambda: approvals.end_session(caller.principal, caller.session),
    }
    try:
        return ways[what](), approvals.status(one).state
    except TruenameError as error:
        return type(error).__name__, getattr(error, "code", "")


def _plain(grant: Grant) -> Grant:
    return replace(grant, key="", at="")

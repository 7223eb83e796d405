"""Stores: all or nothing, shared by threads and processes, bounded, and never written over when damaged."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from tests.policy.calls import call, search_of, shown
from tests.shared import ROOT
from truename.errors import CallRepeated, StoreError
from truename.policy import Approvals, Caller, FileStore, MemoryStore
from truename.policy import grants as book_module
from truename.policy import store as store_module

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "approvals.json"


def test_what_was_decided_is_there_for_the_next_process(path: Path) -> None:
    first = Approvals.open(path)
    first.approve(search_of("docs", "c1", '{"q": 1}'), "always", by="eve")
    first.reject(search_of("docs", "c2"), message='no "x" \ud800 é')
    with first.once(search_of("docs", "c3")):
        pass
    second = Approvals.open(path)

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
    assert sorted(file.name for file in path.parent.iterdir()) == ["approvals.json", "approvals.json.lock"]


def test_others_changes_are_seen_at_once(path: Path) -> None:
    one, other = Approvals.open(path), Approvals.open(path)
    grant = one.approve(search_of("docs", "c1"), "always")
    seen = other.status(search_of("docs", "c2")).state
    other.revoke(grant.key)

    assert (seen, one.status(search_of("docs", "c3")).state) == ("approved", "undecided")


def test_a_change_that_fails_leaves_everything_as_it_was(path: Path) -> None:
    for store in (FileStore(path), MemoryStore()):
        approvals = Approvals(store)
        approvals.approve(search_of("docs", "c1"), "always")
        before = path.read_bytes()

        def fail(store: FileStore | MemoryStore = store) -> None:
            with store.change() as book:
                book.drop(book.grants()[0].key)
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fail()
        assert approvals.status(search_of("docs", "c2")).state == "approved"
        assert path.read_bytes() == before


def test_threads_that_run_one_call_run_it_once(path: Path) -> None:
    ran: list[int] = []
    refused: list[CallRepeated] = []
    stores = [FileStore(path), FileStore(path)]

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


def test_processes_that_run_the_same_calls_run_each_once(path: Path) -> None:
    command = [sys.executable, "-c", PROCESS, str(path)]
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


def test_a_call_whose_process_was_killed_is_not_run_again(path: Path) -> None:
    subprocess.run([sys.executable, "-c", KILLED, str(path)], cwd=ROOT, check=False, timeout=120)

    with pytest.raises(CallRepeated, match="it is running"):
        Approvals.open(path).begin(search_of("docs"))


def test_damage_while_running_is_told_and_never_written_over(path: Path) -> None:
    approvals = Approvals.open(path)
    approvals.approve(search_of("docs", "c1"), "always")
    path.write_text("{}")
    ask: list[Callable[[], object]] = [
        lambda: approvals.status(search_of("docs", "c2")),
        lambda: approvals.reject(search_of("docs", "c3")),
        lambda: approvals.begin(search_of("docs", "c4")),
    ]
    for one in ask:
        with pytest.raises(StoreError, match="holds no approvals"):
            one()
    assert path.read_text() == "{}"


def test_a_file_that_vanished_takes_no_rejection_with_it(path: Path) -> None:
    approvals = Approvals.open(path)
    approvals.reject(search_of("docs", "c1"), "always")
    path.unlink()
    for ask in (approvals.status, approvals.approve, approvals.begin):
        with pytest.raises(StoreError, match="it was there, and is gone") as caught:
            ask(search_of("docs", "c2"))
        assert caught.value.code == "unusable"


def test_a_file_that_is_too_large_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    approvals = Approvals.open(path)
    approvals.approve(search_of("docs", "c1"), "always")
    before = path.read_bytes()
    for module in ("store",):
        monkeypatch.setattr(f"truename.policy.{module}.MAX_BYTES", 600)
    with pytest.raises(StoreError) as caught:
        approvals.approve(search_of("docs", "c2"))

    assert caught.value.code == "full"
    assert path.read_bytes() == before
    path.write_bytes(before + b" " * 600)
    with pytest.raises(StoreError, match="larger than 600 bytes"):
        Approvals.open(path)


def test_a_path_that_can_not_be_used_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError) as read:
        Approvals.open(tmp_path)
    approvals = Approvals.open(tmp_path / "new" / "approvals.json")
    (tmp_path / "new").write_text("")
    with pytest.raises(StoreError) as wrote:
        approvals.approve(search_of("docs"))

    assert [caught.value.code for caught in (read, wrote)] == ["unusable", "unusable"]


def test_a_disk_that_fails_changes_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    approvals = Approvals.open(path)
    approvals.approve(search_of("docs", "c1"))
    before = path.read_bytes()

    def fail(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fail)
        with pytest.raises(StoreError, match="No space left on device"):
            approvals.approve(search_of("docs", "c2"))
    assert path.read_bytes() == before
    assert approvals.status(search_of("docs", "c2")).state == "undecided"
    assert not list(path.parent.glob("*.draft"))


def test_a_lock_that_another_has_is_told(path: Path) -> None:
    one, other = FileStore(path), Approvals(FileStore(path, patience=0.0))
    with one.change(), pytest.raises(StoreError) as caught:
        other.approve(search_of("docs"))

    assert caught.value.code == "busy"
    assert "another process has its lock. Wait for it" in str(caught.value)
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


def test_a_file_that_was_left_alone_for_a_while_is_not_opened_again_and_news_is_seen_all_the_same(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = Approvals.open(path), Approvals.open(path)
    grant = one.approve(search_of("docs", "c1"), "always")
    opened: list[Path] = []
    opening = type(path).open

    def counted(self: Path, *args: Any) -> Any:
        opened.append(self)
        return opening(self, *args)

    # As if it had been put in place long ago: that can't be said of a file, whose times the system keeps.
    monkeypatch.setattr(store_module, "_TICK", -1_000_000_000)
    monkeypatch.setattr(type(path), "open", counted)
    states = [other.status(search_of("docs", f"c{number}")).state for number in range(2, 6)]
    assert (states, opened) == (["approved"] * 4, [path])

    one.revoke(grant.key)
    assert other.status(search_of("docs", "c9")).state == "undecided"


def test_a_file_that_can_t_be_read_stays_so_however_often_it_is_asked(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "_TICK", -1_000_000_000)
    store = FileStore(path)
    path.parent.mkdir()
    path.write_text("{")
    for _ in range(3):
        with pytest.raises(StoreError, match=r"approvals\.json"):
            store.read()

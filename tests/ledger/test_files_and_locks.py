"""The journal as a file: reading creates nothing, failures of the disk change nothing, a lock is waited for."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tests.ledger.stories import claim, show
from truename import Ledger, ToolId
from truename.errors import LedgerError
from truename.ledger.lock import locked

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

AB = ToolId.parse("a/b")


def full(*_arguments: object) -> int:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_reading_creates_nothing(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "no" / "ledger", readonly=True)

    assert ledger.readonly
    assert dict(ledger.bindings()) == {}
    ledger.refresh()
    assert list(tmp_path.iterdir()) == []


def test_a_ledger_that_nothing_was_recorded_in_is_no_file(tmp_path: Path) -> None:
    Ledger.open(tmp_path / "ledger")

    assert not (tmp_path / "ledger").exists()


def test_reading_only_shows_names_and_records_none(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    show(Ledger.open(path), "a/b")
    (tmp_path / "ledger.lock").unlink()
    before = path.read_bytes()

    ledger = Ledger.open(path, readonly=True)
    names = show(ledger, "a/b", "a/c")
    canonical = show(ledger, "a/b", client="native", style="canonical")

    assert dict(names) == {AB: "a_b", ToolId.parse("a/c"): "a_c"}
    assert dict(canonical) == {AB: "a@1/b@1"}
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["ledger"]


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda ledger: ledger.retire("a_b"), "a_b"),
        (lambda ledger: ledger.redirect("old", "a_b"), "old"),
        (lambda ledger: ledger.restyle(ledger.settings), "settings"),
    ],
)
def test_a_ledger_open_for_reading_refuses_to_change(
    tmp_path: Path, change: Callable[[Ledger], None], name: str
) -> None:
    show(Ledger.open(tmp_path / "ledger"), "a/b")
    reader = Ledger.open(tmp_path / "ledger", readonly=True)

    with pytest.raises(LedgerError) as caught:
        change(reader)

    assert (caught.value.code, caught.value.name) == ("readonly", name)


def test_a_reader_sees_what_is_written_when_it_looks_again(tmp_path: Path) -> None:
    writer = Ledger.open(tmp_path / "ledger")
    reader = Ledger.open(tmp_path / "ledger", readonly=True)
    writer.record([claim("x", "a/b")])

    assert reader.holder("x") is None
    reader.refresh()

    assert reader.holder("x") == AB


def test_folders_are_made_and_the_file_is_private(tmp_path: Path) -> None:
    path = tmp_path / "state" / "truename" / "ledger"

    show(Ledger.open(str(path)), "a/b")

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("call", ["fsync", "write"])
def test_a_full_disk_leaves_memory_and_file_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    path = tmp_path / "ledger"
    ledger = Ledger.open(path)
    show(ledger, "a/b")
    before = path.read_bytes()

    with monkeypatch.context() as patch:
        if call == "fsync":
            patch.setattr(os, "fsync", full)
        else:
            patch.setattr("truename.ledger.journal._overwrite", half_written)
        with pytest.raises(LedgerError) as caught:
            show(ledger, "a/b", "a/c")

    assert (caught.value.code, caught.value.path, caught.value.reason) == ("unusable", path, "No space left on device")
    assert path.read_bytes() == before
    assert ledger.holder("a_c") is None
    assert Ledger.open(path).holder("a_c") is None
    show(ledger, "a/b", "a/c")
    assert Ledger.open(path).holder("a_c") == ToolId.parse("a/c")


def half_written(file: Any, offset: int, text: bytes) -> None:
    file.seek(offset)
    file.write(text[: len(text) // 2])
    full()


def test_the_first_write_that_fails_leaves_a_ledger_that_can_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger.open(tmp_path / "ledger")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(LedgerError, match="can't be used as a ledger: No space left on device"):
            ledger.record([claim("x", "a/b")])

    ledger.record([claim("x", "a/b")])

    assert Ledger.open(tmp_path / "ledger").holder("x") == AB


def test_a_disk_that_writes_little_at_a_time_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow:
        def __init__(self, file: Any) -> None:
            self.file = file

        def write(self, text: memoryview) -> int:
            return int(self.file.write(text[:3]))

        def __getattr__(self, name: str) -> Any:
            return getattr(self.file, name)

    from truename.ledger import journal  # noqa: PLC0415

    real = journal._overwrite
    monkeypatch.setattr(journal, "_overwrite", lambda file, offset, text: real(Slow(file), offset, text))  # type: ignore[arg-type]

    show(Ledger.open(tmp_path / "ledger"), "a/b")

    assert Ledger.open(tmp_path / "ledger").holder("a_b") == AB


@pytest.mark.parametrize("readonly", [True, False])
def test_a_path_that_is_a_folder_is_told(tmp_path: Path, readonly: bool) -> None:
    with pytest.raises(LedgerError) as caught:
        Ledger.open(tmp_path, readonly=readonly)

    assert (caught.value.code, caught.value.path) == ("unusable", tmp_path)
    assert "Is a directory" in str(caught.value)


def test_a_path_below_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(LedgerError) as caught:
        Ledger.open(tmp_path / "file" / "ledger")

    assert caught.value.code == "unusable"


def test_a_lock_is_waited_for_and_then_given_up(tmp_path: Path) -> None:
    path = tmp_path / "ledger"

    with locked(path, shared=False):
        with pytest.raises(LedgerError) as caught, locked(path, shared=False, patience=0.02):
            pytest.fail("two writers at once")
        with pytest.raises(LedgerError), locked(path, shared=True, patience=0.02):
            pytest.fail("a reader beside a writer")

    assert (caught.value.code, caught.value.path) == ("busy", path)
    assert str(caught.value) == f"{path} is locked by another process. Wait for it, or end it, and try again."
    with locked(path, shared=True), locked(path, shared=True, patience=0.02):
        pass


def test_a_ledger_that_another_keeps_locked_is_busy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ledger"
    ledger = Ledger.open(path)
    clock = iter(range(1_000))
    waits: list[float] = []
    monkeypatch.setattr(
        "truename.ledger.lock.time", SimpleNamespace(monotonic=lambda: float(next(clock)), sleep=waits.append)
    )

    with locked(path, shared=False), pytest.raises(LedgerError) as caught:
        ledger.record([claim("x", "a/b")])

    assert caught.value.code == "busy"
    assert len(waits) > 3
    assert not path.exists()
    ledger.record([claim("x", "a/b")])
    assert ledger.holder("x") == AB


def test_readers_do_without_a_lock_file(tmp_path: Path) -> None:
    with locked(tmp_path / "ledger", shared=True):
        assert list(tmp_path.iterdir()) == []


def test_who_may_not_wait_is_told_that_another_process_writes(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    ledger, other, memory = Ledger.open(path), Ledger.open(path), Ledger.memory()
    other.record([claim("x", "a/b")])

    with locked(path, shared=False):
        assert ledger.is_locked()
        assert not ledger.refresh(wait=False)
        assert ledger.holder("x") is None
    assert not ledger.is_locked()
    assert not memory.is_locked()
    with ledger.transaction():
        assert not ledger.is_locked()
    assert ledger.holder("x") == AB
    other.record([claim("y", "a/c")])
    assert ledger.refresh(wait=False)


def test_who_may_not_wait_is_told_that_another_thread_writes(tmp_path: Path) -> None:
    ledger, other = Ledger.open(tmp_path / "ledger"), Ledger.open(tmp_path / "ledger")
    other.record([claim("x", "a/b")])
    told: list[tuple[bool, bool, bool]] = []

    def look() -> None:
        told.append((ledger.is_locked(), ledger.refresh(wait=False), ledger.has_news()))

    assert ledger.has_news()
    with ledger.transaction():
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        assert not ledger.refresh()
    # What the transaction read is news for who looks after it, once.
    assert told == [(True, False, True)]
    assert (ledger.has_news(), ledger.refresh(wait=False), ledger.has_news(), ledger.refresh()) == (
        *(True, True),
        *(False, False),
    )
    with ledger.transaction():
        ledger.record([claim("y", "a/c")])
        assert not ledger.has_news()
    assert not ledger.refresh()


def test_a_ledger_that_can_not_be_locked_at_all_is_not_locked_by_another(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "there" / "ledger")
    shutil.rmtree(tmp_path / "there")

    assert not ledger.is_locked()

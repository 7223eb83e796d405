"""A journal on a disk that is full, or on which somebody else moves, removes and plants files."""

from __future__ import annotations

import errno
import os
import shutil
import sys
from typing import TYPE_CHECKING

import pytest

from truename.audit import AuditLog, verify_log
from truename.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ONE = [("call", {"tool": "git@1/push@1"})]
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be moved there")


def full(most: int) -> Callable[[int, bytes], int]:
    """Return a ``write`` for a disk on which so many writes more have room."""
    real, left = os.write, iter(range(most))

    def write(descriptor: int, raw: bytes) -> int:
        if next(left, None) is None:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, raw)

    return write


@pytest.mark.parametrize("is_begun", [False, True])
@pytest.mark.parametrize("room", [0, 1])
def test_a_full_disk_does_not_fill_a_directory_with_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int, is_begun: bool
) -> None:
    with AuditLog(tmp_path) as journal:
        if is_begun:
            journal.append(ONE)
        for _ in range(5):
            with monkeypatch.context() as broken:
                broken.setattr(os, "write", full(room))
                with pytest.raises(StoreError, match="No space left"):
                    journal.append(ONE)
        journal.append(ONE)
        assert [one.name for one in tmp_path.glob("*.jsonl")] == ["000001.jsonl"]
    assert verify_log(tmp_path)[1] == ()


def _remove(path: Path) -> None:
    shutil.rmtree(path)
    path.mkdir()


def _move(path: Path) -> None:
    path.rename(path.with_name("moved"))
    path.mkdir()


def _move_file(path: Path) -> None:
    (path / "000001.jsonl").rename(path.with_name("moved"))


def _move_head(path: Path) -> None:
    (path / "journal.head").rename(path.with_name("moved"))


@POSIX
@pytest.mark.parametrize("change", [_remove, _move, _move_file, _move_head])
def test_nothing_is_written_into_files_that_are_no_longer_in_their_place(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    path = tmp_path / "audit"
    with AuditLog(path) as journal:
        journal.append(ONE)
        change(path)
        with pytest.raises(StoreError, match="missing") as refused:
            journal.append(ONE)
    assert refused.value.code == "corrupt"


@POSIX
def test_a_journal_that_is_back_in_its_place_is_written_on(tmp_path: Path) -> None:
    path = tmp_path / "audit"
    with AuditLog(path) as journal:
        journal.append(ONE)
        path.rename(tmp_path / "moved")
        with pytest.raises(StoreError):
            journal.append(ONE)
        (tmp_path / "moved").rename(path)
        journal.append(ONE)
    assert verify_log(path) == (3, ())


def _link(file: Path, other: Path) -> None:
    file.symlink_to(other)


def _pipe(file: Path, _: Path) -> None:
    os.mkfifo(file)


def _second_name(file: Path, other: Path) -> None:
    file.hardlink_to(other)


def _larger(file: Path, other: Path) -> None:
    shutil.copy(other, file)


@POSIX
@pytest.mark.parametrize(
    ("name", "plant"),
    [
        ("journal.head", _link),
        ("journal.head", _pipe),
        ("journal.head", _second_name),
        ("journal.head", _larger),
        ("000001.jsonl", _link),
        ("000001.jsonl", _pipe),
    ],
)
def test_what_somebody_planted_is_neither_waited_for_nor_written_to(
    tmp_path: Path, name: str, plant: Callable[[Path, Path], None]
) -> None:
    path, other = tmp_path / "audit", tmp_path / "other"
    path.mkdir()
    size = 400 if plant is _second_name else 4_000
    other.write_bytes(b"x" * size)
    plant(path / name, other)
    with pytest.raises(StoreError) as refused, AuditLog(path) as journal:
        journal.append(ONE)
    assert refused.value.code == "unusable"
    assert other.read_bytes() == b"x" * size


@POSIX
def test_a_pipe_in_the_place_of_a_lock_keeps_nobody_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "turn.lock")
    with AuditLog(tmp_path) as journal:
        journal.append(ONE)
    assert verify_log(tmp_path) == (2, ())


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owner there")
def test_who_reads_another_s_journal_proves_it_and_does_not_write_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with AuditLog(tmp_path) as journal:
        journal.append(ONE)
    monkeypatch.setattr(os, "geteuid", lambda: (tmp_path / "journal.head").stat().st_uid + 1)
    assert verify_log(tmp_path) == (2, ())
    with pytest.raises(StoreError, match="not a regular file of yours"), AuditLog.beside(tmp_path) as other:
        other.append(ONE)
    assert verify_log(tmp_path) == (2, ())

"""The recorder: nobody waits for the disk, nothing is lost unsaid, and who must not go on without it is told."""

from __future__ import annotations

import threading
from concurrent.futures import wait
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from truename.audit import AuditLog, AuditRecord, AuditRecorder, read_records
from truename.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path


def bodies(path: Path, kind: str = "call") -> list[Mapping[str, Any]]:
    return [found.body for found in read_records(path) if isinstance(found, AuditRecord) and found.kind == kind]


class Disk(AuditLog):
    """A journal whose disk can be taken away, and given back."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.is_there = threading.Event()
        self.was_asked = threading.Event()
        self.is_there.set()
        self.fails = False

    def append(self, records: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
        self.was_asked.set()
        self.is_there.wait()
        if self.fails:
            raise StoreError(file="audit", key="", problem="no space", remedy="Free some.", code="unusable")
        super().append(records)


def test_records_of_many_threads_are_all_written_in_each_ones_order(tmp_path: Path) -> None:
    with AuditRecorder(AuditLog(tmp_path)) as recorder:

        def write(thread: int) -> None:
            for number in range(200):
                recorder.write("call", {"thread": thread, "n": number})

        threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = bodies(tmp_path)
    assert len(found) == 800
    for thread_number in range(4):
        assert [body["n"] for body in found if body["thread"] == thread_number] == list(range(200))


def test_who_asks_knows_when_it_is_on_the_disk(tmp_path: Path) -> None:
    with AuditRecorder(AuditLog(tmp_path)) as recorder:
        recorder.written("begin", {"call": "c1"}).result(10)
        assert bodies(tmp_path, "begin") == [{"call": "c1"}]


def test_what_there_is_no_room_for_is_counted_and_said(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    disk.is_there.clear()
    with AuditRecorder(disk, most_waiting=3) as recorder:
        recorder.write("call", {"n": 0})
        assert disk.was_asked.wait(10)
        for number in range(1, 6):
            recorder.write("call", {"n": number})
        with pytest.raises(StoreError, match="queue of records is full"):
            recorder.require()
        with pytest.raises(StoreError, match="queue of records is full"):
            recorder.written("begin", {}).result(10)
        disk.is_there.set()
    assert [body["n"] for body in bodies(tmp_path)] == [0, 1, 2]
    assert sum(body["lost"] for body in bodies(tmp_path, "gap")) == 4


def test_while_the_disk_is_full_records_wait_and_who_must_not_go_on_is_told(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    disk.fails = True
    with AuditRecorder(disk) as recorder:
        with pytest.raises(StoreError, match="no space"):
            recorder.written("begin", {"call": "c1"}).result(10)
        with pytest.raises(StoreError, match="no space"):
            recorder.require()
        recorder.write("call", {"n": 1})
        disk.fails = False
        # It is tried again without being asked.
        wait([recorder.written("begin", {"call": "c2"})], 10)
        recorder.require()
    assert bodies(tmp_path) == [{"n": 1}]
    assert [body["call"] for body in bodies(tmp_path, "begin")] == ["c1", "c2"]


def test_how_long_the_oldest_waits_is_known_until_it_is_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    disk = Disk(tmp_path)
    disk.is_there.clear()
    with AuditRecorder(disk) as recorder:
        assert recorder.lag == 0.0
        with monkeypatch.context() as clock:
            clock.setattr("truename.audit.recorder.time", SimpleNamespace(monotonic=lambda: now[0]))
            first = recorder.written("call", {"n": 1})
            now[0] += 30.0
            recorder.write("call", {"n": 2})
            assert recorder.lag == 30.0
        disk.is_there.set()
        assert first.result(10) is None
        recorder.written("call", {"n": 3}).result(10)
        assert recorder.lag == 0.0


def test_a_record_that_no_journal_can_hold_costs_no_other(tmp_path: Path) -> None:
    with AuditRecorder(AuditLog(tmp_path)) as recorder:
        recorder.write("call", {"n": 1})
        with pytest.raises(StoreError, match="cannot be written"):
            recorder.written("call", {"n": float("nan")}).result(10)
        recorder.write("call", {"n": 2})
    assert [body["n"] for body in bodies(tmp_path)] == [1, 2]
    assert sum(body["lost"] for body in bodies(tmp_path, "gap")) <= 1


def test_who_waits_no_more_costs_the_others_nothing(tmp_path: Path) -> None:
    with AuditRecorder(AuditLog(tmp_path)) as recorder:
        gone = recorder.written("begin", {"call": "gone"})
        gone.cancel()
        recorder.written("begin", {"call": "c1"}).result(10)
    assert bodies(tmp_path, "begin")[-1] == {"call": "c1"}


def test_a_fault_that_nobody_thought_of_is_told_and_tried_again(tmp_path: Path) -> None:
    class Odd(Disk):
        def append(self, records: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
            if self.fails:
                raise TypeError("odd")
            super().append(records)

    disk = Odd(tmp_path)
    disk.fails = True
    with AuditRecorder(disk) as recorder:
        with pytest.raises(StoreError, match="TypeError"):
            recorder.written("begin", {"call": "c1"}).result(10)
        disk.fails = False
        recorder.written("begin", {"call": "c2"}).result(10)
    assert [body["call"] for body in bodies(tmp_path, "begin")] == ["c1", "c2"]


def test_a_closed_recorder_takes_nothing_more(tmp_path: Path) -> None:
    recorder = AuditRecorder(AuditLog(tmp_path))
    recorder.close()
    with pytest.raises(StoreError, match="closed"):
        recorder.require()

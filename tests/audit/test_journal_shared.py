"""One journal, several processes: whoever adds to it, there is one chain, and nobody's record is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.shared import ROOT
from truename.audit import AuditLog, AuditRecord, LogDefect, read_records, verify_log
from truename.audit.log import write_lock
from truename.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Sequence

KEY = b"k" * 32
# Adds so many records beside whoever else writes, and says when it begins.
WRITER = """
import sys
from pathlib import Path
from truename.audit import AuditLog
path, who, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
sys.stdout.write("ready\\n"); sys.stdout.flush(); sys.stdin.readline()
for number in range(count):
    with AuditLog.beside(path, max_bytes=8_192) as journal:
        journal.append([("approval", {"who": who, "place": number})])
"""


def process(path: Path, who: str, count: int) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-c", WRITER, str(path), who, str(count)]
    return subprocess.Popen(arguments, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def begin(writers: Sequence[subprocess.Popen[str]]) -> None:
    """Have them begin together: starting takes longer than what they do."""
    for one in writers:
        assert one.stdout is not None
        assert one.stdout.readline() == "ready\n"
    for one in writers:
        assert one.stdin is not None
        one.stdin.write("\n")
        one.stdin.flush()


def told(path: Path, kind: str = "approval", key: bytes | None = None) -> list[tuple[str, int]]:
    found = [one for one in read_records(path, key) if isinstance(one, AuditRecord) and one.kind == kind]
    return [(one.body["who"], one.body["place"]) for one in found]


def test_two_processes_and_a_gateway_write_one_chain_while_it_is_verified(tmp_path: Path) -> None:
    writers = [process(tmp_path, who, 60) for who in ("ann", "bob")]
    with AuditLog(tmp_path, max_bytes=8_192) as gateway:
        begin(writers)
        looks, place = 0, 0
        while any(one.poll() is None for one in writers):
            gateway.append([("call", {"who": "gateway", "place": place})])
            place += 1
            count, broken = verify_log(tmp_path)
            assert broken == ()
            assert count > 0
            looks += 1
    for one in writers:
        one.communicate()
        assert one.returncode == 0
    assert looks > 1
    assert verify_log(tmp_path)[1] == ()
    for who in ("ann", "bob"):
        assert [number for name, number in told(tmp_path) if name == who] == list(range(60))
    assert told(tmp_path, "call") == [("gateway", number) for number in range(place)]


def test_a_process_that_is_killed_at_any_moment_stops_nobody_and_leaves_one_chain(tmp_path: Path) -> None:
    with AuditLog(tmp_path) as gateway:
        writer = process(tmp_path, "ann", 100_000)
        begin([writer])
        place = 0
        while len(told(tmp_path)) < 5:
            gateway.append([("call", {"who": "gateway", "place": place})])
            place += 1
        writer.send_signal(signal.SIGKILL)
        writer.communicate()
        gateway.append([("call", {"who": "gateway", "place": place})])
    assert verify_log(tmp_path)[1] == ()
    numbers = [number for _, number in told(tmp_path)]
    assert numbers == list(range(len(numbers)))


def test_whoever_does_not_end_their_turn_keeps_a_writer_for_some_seconds_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("truename.audit.log.LOCK_TIMEOUT", 0.05)
    with AuditLog(tmp_path) as gateway:
        gateway.append([("call", {})])
        with write_lock(tmp_path), pytest.raises(StoreError, match="does not release it") as refused:
            gateway.append([("call", {})])
        assert refused.value.code == "busy"
        with write_lock(tmp_path):
            # Who only reads does so all the same.
            assert verify_log(tmp_path) == (2, ())
        gateway.append([("call", {})])
    assert verify_log(tmp_path)[1] == ()


@settings(max_examples=40, deadline=None)
@given(
    turns=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), min_size=1, max_size=12),
    cuts=st.dictionaries(st.integers(0, 11), st.integers(1, 400), max_size=3),
    key=st.sampled_from([None, KEY]),
)
def test_any_turns_and_any_kills_leave_one_chain(
    turns: list[tuple[int, int]], cuts: dict[int, int], key: bytes | None
) -> None:
    """A kill leaves what got to the disk, behind the head of the last whole write."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        path = Path(folder)
        kept = [0, 0, 0]
        writers = [AuditLog(path, key, max_bytes=700, alone=not number) for number in range(3)]
        for one in writers:
            stack.callback(one.close)
        for place, (who, count) in enumerate(turns):
            before = _state(path)
            writers[who].append([("call", {"who": str(who), "place": number}) for number in range(count)])
            if place in cuts:
                _cut(path, before, cuts[place])
                writers[who].close()
                writers[who] = AuditLog(path, key, max_bytes=700, alone=not who)
            else:
                kept[who] += count
        assert [one for one in read_records(path, key) if isinstance(one, LogDefect) and one.kind != "torn"] == []
        writers[0].append([("call", {"who": "end", "place": 0})])
        assert verify_log(path, key)[1] == ()
        found = [who for who, _ in told(path, "call", key)]
        assert all(found.count(str(who)) >= count for who, count in enumerate(kept))


def _state(path: Path) -> tuple[bytes | None, dict[str, int]]:
    head = path / "journal.head"
    sizes = {file.name: file.stat().st_size for file in path.glob("*.jsonl")}
    return head.read_bytes() if head.exists() else None, sizes


def _cut(path: Path, before: tuple[bytes | None, dict[str, int]], size: int) -> None:
    """Take some bytes off the last write, as if its process had been killed in it."""
    head, sizes = before
    if head is None:
        return
    last = max(path.glob("*.jsonl"))
    left = max(sizes.get(last.name, 0), last.stat().st_size - size)
    (path / "journal.head").write_bytes(head)
    with last.open("r+b") as stream:
        stream.truncate(left)


def test_who_comes_beside_reads_only_the_end(tmp_path: Path) -> None:
    with AuditLog(tmp_path) as gateway:
        gateway.append([("call", {"text": "x" * 1_000}) for _ in range(300)])
    file = tmp_path / "000001.jsonl"
    raw = bytearray(file.read_bytes())
    raw[5_000] ^= 1
    file.write_bytes(bytes(raw))
    with AuditLog.beside(tmp_path) as journal:
        journal.append([("approval", {"who": "ann", "place": 0})])
    # What is wrong far before is for `verify` to find, and for a gateway that starts.
    assert [one.kind for one in read_records(tmp_path) if isinstance(one, LogDefect)] == ["changed"]
    with pytest.raises(StoreError) as refused:
        AuditLog(tmp_path)
    assert refused.value.code == "corrupt"


def test_a_journal_may_be_begun_by_a_command(tmp_path: Path) -> None:
    with AuditLog.beside(tmp_path / "new") as first, AuditLog.beside(tmp_path / "new") as second:
        second.append([("approval", {"who": "bob", "place": 0})])
        first.append([("approval", {"who": "ann", "place": 0})])
    assert verify_log(tmp_path / "new") == (3, ())
    assert told(tmp_path / "new") == [("bob", 0), ("ann", 0)]


def test_a_kill_before_the_first_record_leaves_a_journal_that_can_be_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with AuditLog(tmp_path) as gateway:
        with monkeypatch.context() as broken:
            broken.setattr(os, "write", killed)
            with pytest.raises(StoreError):
                gateway.append([("call", {})])
        assert verify_log(tmp_path) == (0, ())
    with AuditLog(tmp_path) as gateway:
        gateway.append([("call", {})])
    assert verify_log(tmp_path) == (2, ())


@pytest.mark.parametrize("harm", ["cut", "gone", "changed", "no head", "another key"])
def test_nothing_is_added_to_a_journal_that_was_harmed_meanwhile(tmp_path: Path, harm: str) -> None:
    with AuditLog(tmp_path) as gateway:
        gateway.append([("call", {"place": 1})])
        file, head = tmp_path / "000001.jsonl", tmp_path / "journal.head"
        whole = file.read_bytes()
        match harm:
            case "cut":
                file.write_bytes(whole[:-50])
            case "gone":
                file.unlink()
                (tmp_path / "000002.jsonl").write_bytes(whole)
            case "changed":
                file.write_bytes(whole + whole.splitlines(keepends=True)[-1])
            case "no head":
                head.unlink()
                file.write_bytes(whole + b"x")
            case _:
                with suppress(StoreError), AuditLog.beside(tmp_path, KEY) as other:
                    other.append([("call", {})])
                assert verify_log(tmp_path)[1] == ()
                return
        before = {one.name: one.read_bytes() for one in tmp_path.iterdir()}
        with pytest.raises(StoreError) as refused:
            gateway.append([("call", {"place": 2})])
        assert refused.value.code == "corrupt"
        assert {one.name: one.read_bytes() for one in tmp_path.iterdir()} == before

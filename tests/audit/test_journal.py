"""The audit journal: appended to by one process, cut off anywhere, and any change of it found."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truename.audit import AuditLog, AuditRecord, LogDefect, read_records, recent_records, records_since, verify_log
from truename.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterable

KEY = b"k" * 32


def written(path: Path, count: int, key: bytes | None = None, *, max_bytes: int = 1_000) -> Path:
    """Write a journal of some calls, several to a segment."""
    with AuditLog(path, key, max_bytes=max_bytes) as journal:
        for number in range(count):
            journal.append([("call", {"tool": f"git@1/push@{number}", "who": "ann"})])
    return path


def kinds(path: Path, key: bytes | None = None) -> list[str]:
    return [found.kind for found in read_records(path, key) if isinstance(found, LogDefect)]


def calls(path: Path) -> list[str]:
    return [
        found.body["tool"] for found in read_records(path) if isinstance(found, AuditRecord) and found.kind == "call"
    ]


def files(path: Path) -> list[Path]:
    return sorted(path.glob("*.jsonl"))


@pytest.mark.parametrize("key", [None, KEY])
def test_what_was_written_is_read_and_proved(tmp_path: Path, key: bytes | None) -> None:
    path = written(tmp_path / "audit", 12, key)
    assert len(files(path)) > 2
    count, broken = verify_log(path, key)
    assert (count - len(files(path)), broken) == (12, ())


def test_a_journal_goes_on_where_it_ended(tmp_path: Path) -> None:
    path = written(written(tmp_path, 3), 2)
    assert len(calls(path)) == 5
    assert kinds(path) == []


def test_the_last_records_are_read_without_all_before_them_and_those_that_come(tmp_path: Path) -> None:
    path = written(tmp_path, 9)
    assert len(files(path)) > 2
    files(path)[0].write_bytes(b"not looked at")
    last, place = recent_records(path, 4)
    assert [found.number for found in last] == list(range(last[-1].number - 3, last[-1].number + 1))
    assert records_since(path, place) == ([], place)
    written_on = [*last, *_added(path, 7)]
    found, place = records_since(path, place)
    assert [one.number for one in found] == [one.number for one in written_on[4:]]
    assert records_since(path, place) == ([], place)
    assert recent_records(path, 0)[0] == []


def _added(path: Path, count: int) -> list[AuditRecord]:
    before = recent_records(path, 1)[0][0].number
    written(path, count)
    return [one for one in recent_records(path, 100)[0] if one.number > before]


def test_a_line_that_is_being_written_is_read_when_it_is_whole(tmp_path: Path) -> None:
    path = written(tmp_path, 2, max_bytes=10_000)
    whole = files(path)[0].read_bytes()
    files(path)[0].write_bytes(whole[:-5])
    found, place = recent_records(path, 10)
    assert [one.number for one in found] == [1, 2]
    files(path)[0].write_bytes(whole)
    assert [one.number for one in records_since(path, place)[0]] == [3]


def test_nobody_but_its_owner_can_read_it(tmp_path: Path) -> None:
    path = written(tmp_path / "audit", 1)
    assert path.stat().st_mode & 0o077 == 0
    assert [file.stat().st_mode & 0o077 for file in path.iterdir()] == [0] * len(list(path.iterdir()))


def test_two_processes_can_not_write_one_journal(tmp_path: Path) -> None:
    with AuditLog(tmp_path), pytest.raises(StoreError, match="another process writes to this log") as refused:
        AuditLog(tmp_path)
    assert refused.value.code == "busy"
    assert kinds(tmp_path) == []


def test_a_line_that_a_kill_cut_off_is_noted_and_stays(tmp_path: Path) -> None:
    path = written(tmp_path, 4, max_bytes=10_000)
    whole = files(path)[0].read_bytes()
    half = whole + b'{"at":"2026'
    files(path)[0].write_bytes(half)
    assert kinds(path) == ["torn"]
    written(path, 1)
    assert files(path)[0].read_bytes() == half
    assert kinds(path) == []
    assert len(calls(path)) == 5


@settings(max_examples=60, deadline=None)
@given(cut=st.integers(0, 10_000))
def test_a_journal_killed_at_any_byte_goes_on_and_is_whole(cut: int) -> None:
    """The head is as old as the last whole write, so what a kill leaves is at least as long."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "audit"
        with AuditLog(path) as journal:
            journal.append([("call", {"tool": "first"})])
            head = (path / "journal.head").read_bytes()
            kept = files(path)[0].stat().st_size
            journal.append([("call", {"tool": "second"}), ("call", {"tool": "third"})])
        (path / "journal.head").write_bytes(head)
        _cut(files(path)[0], kept + cut % (files(path)[0].stat().st_size - kept + 1))
        with AuditLog(path) as journal:
            journal.append([("call", {"tool": "fourth"})])
        assert kinds(path) == []
        assert (calls(path)[0], calls(path)[-1]) == ("first", "fourth")


def _cut(file: Path, size: int) -> None:
    with file.open("r+b") as stream:
        stream.truncate(size)


def test_two_kills_in_a_row_are_both_noted(tmp_path: Path) -> None:
    path = written(tmp_path, 2, max_bytes=10_000)
    files(path)[0].write_bytes(files(path)[0].read_bytes() + b'{"cut')
    (path / "000002.jsonl").write_bytes(b'{"at":"20')
    written(path, 1)
    assert kinds(path) == []
    assert len(calls(path)) == 3


def _lines(path: Path) -> list[list[bytes]]:
    return [file.read_bytes().splitlines(keepends=True) for file in files(path)]


def _put(path: Path, lines: Iterable[Iterable[bytes]]) -> None:
    for file, content in zip(files(path), lines, strict=True):
        file.write_bytes(b"".join(content))


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("audit"), 9)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_any_byte_that_is_changed_is_found(journal: Path, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(shutil.copytree(journal, Path(folder) / "copy"))
        file = data.draw(st.sampled_from([*files(path), path / "journal.head"]))
        raw = bytearray(file.read_bytes())
        place = data.draw(st.integers(0, len(raw) - 1))
        raw[place] = data.draw(st.integers(0, 255).filter(lambda byte: byte != raw[place]))
        file.write_bytes(raw)
        assert kinds(path)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_any_record_that_is_taken_out_doubled_or_moved_is_found(journal: Path, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(shutil.copytree(journal, Path(folder) / "copy"))
        lines = _lines(path)
        places = [(file, line) for file, content in enumerate(lines) for line in range(len(content))]
        file, line = data.draw(st.sampled_from(places))
        taken = lines[file].pop(line) if data.draw(st.booleans()) else lines[file][line]
        to_file, to_line = data.draw(st.sampled_from(places))
        if data.draw(st.booleans()):
            lines[to_file].insert(to_line, taken)
        if lines == _lines(path):
            return
        _put(path, lines)
        assert kinds(path)


def test_records_off_the_end_are_missed(journal: Path, tmp_path: Path) -> None:
    path = Path(shutil.copytree(journal, tmp_path / "copy"))
    lines = _lines(path)
    lines[-1].pop()
    _put(path, lines)
    left = sum(map(len, lines))
    broken = [str(found) for found in read_records(path) if isinstance(found, LogDefect)]
    assert broken == [f"journal.head: record {left + 1}, which was written, is missing; the last is {left}"]


def test_a_whole_file_off_the_end_is_missed(journal: Path, tmp_path: Path) -> None:
    path = Path(shutil.copytree(journal, tmp_path / "copy"))
    files(path)[-1].unlink()
    assert kinds(path) == ["truncated"]


def test_a_journal_that_lost_its_end_is_not_written_on(journal: Path, tmp_path: Path) -> None:
    path = Path(shutil.copytree(journal, tmp_path / "copy"))
    files(path)[-1].unlink()
    with pytest.raises(StoreError, match="are missing from the end") as refused:
        AuditLog(path)
    assert refused.value.code == "corrupt"


@pytest.mark.parametrize("gone", ["journal.head", "all"])
def test_a_journal_without_its_head_or_its_records_is_not_begun_anew(journal: Path, tmp_path: Path, gone: str) -> None:
    path = Path(shutil.copytree(journal, tmp_path / "copy"))
    for file in [path / "journal.head"] if gone == "journal.head" else files(path):
        file.unlink()
    with pytest.raises(StoreError, match="missing"):
        AuditLog(path)


@pytest.mark.parametrize("line", [0, 1])
def test_a_line_of_the_head_that_a_power_cut_tore_is_told_and_written_anew(
    journal: Path, tmp_path: Path, line: int
) -> None:
    path = Path(shutil.copytree(journal, tmp_path / "copy"))
    head = path / "journal.head"
    raw = bytearray(head.read_bytes())
    half = len(raw) // 2
    raw[half * line + 20 : half * line + 60] = bytes(40)
    head.write_bytes(raw)
    assert kinds(path) == ["truncated"]
    with AuditLog(path) as again:
        again.append([("call", {"tool": "next"})])
    assert kinds(path) == []
    assert calls(path)[-1] == "next"


def test_a_head_of_which_both_lines_are_torn_proves_nothing(journal: Path, tmp_path: Path) -> None:
    path = Path(shutil.copytree(journal, tmp_path / "copy"))
    head = path / "journal.head"
    head.write_bytes(bytes(len(head.read_bytes())))
    with pytest.raises(StoreError, match="missing or damaged"):
        AuditLog(path)


def test_a_chain_written_anew_is_found_by_who_has_the_key(tmp_path: Path) -> None:
    path = written(tmp_path / "audit", 5, KEY)
    forged = written(tmp_path / "forged", 5)
    for file in files(path):
        file.unlink()
    for file in [*files(forged), forged / "journal.head"]:
        shutil.copy(file, path)
    assert kinds(path) == []
    assert set(kinds(path, KEY)) == {"changed", "truncated"}


def test_files_of_another_journal_are_found(tmp_path: Path) -> None:
    one, other = written(tmp_path / "one", 9), written(tmp_path / "other", 9)
    shutil.copy(files(other)[1], files(one)[1])
    assert "order" in kinds(one)


def test_what_no_journal_can_hold_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    with AuditLog(tmp_path) as journal:
        journal.append([("call", {"tool": "a"})])
        before = [file.read_bytes() for file in files(tmp_path)]
        with pytest.raises(ValueError, match="more than"):
            journal.append([("call", {"tool": "b"}), ("call", {"text": "x" * 2_000_000})])
        assert [file.read_bytes() for file in files(tmp_path)] == before
        journal.append([("call", {"tool": "c"})])
    assert kinds(tmp_path) == []
    assert calls(tmp_path) == ["a", "c"]


def test_a_line_without_end_costs_no_memory_and_is_found(tmp_path: Path) -> None:
    path = written(tmp_path, 1)
    with files(path)[0].open("ab") as file:
        file.write(b'"' * 5_000_000 + b"\n")
    assert kinds(path) == ["changed"]


@pytest.mark.parametrize(
    "line", ["[]", "{}", '{"number": true}', "[" * 100_000, '{"a": NaN}', "\x00", '{"number": 1e999}']
)
def test_any_line_is_read_without_harm(tmp_path: Path, line: str) -> None:
    path = written(tmp_path, 1)
    with files(path)[0].open("a") as file:
        file.write(f"{line}\n")
    assert kinds(path) == ["changed"]


def test_a_record_is_plain_json_for_other_programs(tmp_path: Path) -> None:
    path = written(tmp_path, 1)
    record = json.loads(files(path)[0].read_text().splitlines()[1])
    assert (record["kind"], record["tool"], record["number"]) == ("call", "git@1/push@0", 2)

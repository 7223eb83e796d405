"""Recordings: what is recordable is written down, one line a call, and read back whatever became of the file."""

from __future__ import annotations

import json
import os
import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.policy.calls import call
from truename import Catalog, ToolId, project
from truename.errors import StoreError
from truename.migration.recordings import BrokenLine, CallRecorder, RecordedCall, read_recording
from truename.policy import Caller, Context, Exposure

if TYPE_CHECKING:
    from pathlib import Path

    from truename.policy import Call

NAMES = project(
    Catalog.from_mcp({"phone": ["tap", {"name": "wrap", "_meta": {"trailblaze/isRecordable": False}}]}), "openai"
)
PHONE = Caller(principal="ada", platform="iOS", app="MyApp")


def made(name: str = "phone_tap", id: str = "c1", arguments: object = "{}") -> Call:
    return call(NAMES, name, id, arguments, PHONE)


def recorder(path: Path, exposure: Exposure | None = None, **options: Any) -> CallRecorder:
    return CallRecorder(path, exposure, now=lambda: "2026-11-22T00:00:00Z", **options)


def test_a_call_is_written_and_read_back(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    one = made(arguments={"x": 1, "text": "ünï\u2028\n"})
    with recorder(path) as book:
        assert book.write(one, catalog="sha256:ab", protocol="0.3")

    (found,) = read_recording(path)
    assert found == RecordedCall(
        id=ToolId.parse("phone/tap"),
        arguments={"x": 1, "text": "ünï\u2028\n"},
        context=Context(platform="ios", app="myapp"),
        name="phone_tap",
        server="phone",
        tool="tap",
        call_id="c1",
        digest=one.digest,
        catalog="sha256:ab",
        protocol="0.3",
        at="2026-11-22T00:00:00Z",
    )
    assert isinstance(found, RecordedCall)
    assert (found.line, path.read_text("ascii").count("\n")) == (1, 1)


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")
def test_a_new_recording_is_readable_by_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    with recorder(path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_what_is_not_recordable_leaves_no_trace(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    hidden = Exposure(metadata={"phone/tap": {"is_recordable": False}, "phone/wrap": {"is_recordable": True}})
    with recorder(path) as book:
        assert not book.write(made("phone_wrap"))
        assert path.read_bytes() == b""
    with recorder(path, hidden) as book:
        assert not book.write(made("phone_tap"))
        assert book.write(made("phone_wrap"))

    assert [one.name for one in read_recording(path) if isinstance(one, RecordedCall)] == ["phone_wrap"]


def test_a_recording_goes_on_where_it_ended(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    for number in range(3):
        with recorder(path) as book:
            book.write(made(id=f"c{number}"))

    assert [one.call_id for one in read_recording(path) if isinstance(one, RecordedCall)] == ["c0", "c1", "c2"]


@given(st.data())
def test_a_kill_at_any_byte_costs_that_one_line(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    path = tmp_path_factory.mktemp("killed") / "calls.jsonl"
    with recorder(path) as book:
        book.write(made(id="c0"))
        whole = path.stat().st_size
        book.write(made(id="c1", arguments={"text": "x" * 50}))
    full = path.stat().st_size
    cut = data.draw(st.integers(whole + 1, full - 1))
    os.truncate(path, cut)

    first, torn = read_recording(path)
    assert isinstance(first, RecordedCall)
    # Only the end of the line may be missing: then nothing of the call is.
    is_whole = cut == full - 1
    assert isinstance(torn, RecordedCall if is_whole else BrokenLine)
    assert is_whole or "is incomplete" in str(torn)
    with recorder(path) as book:
        book.write(made(id="c2"))
    kinds = [one.call_id if isinstance(one, RecordedCall) else "" for one in read_recording(path)]
    assert kinds == ["c0", "c1" if is_whole else "", "c2"]


def test_many_threads_and_two_recorders_never_mix_lines(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    with recorder(path) as one, recorder(path) as other, ThreadPoolExecutor(8) as pool:
        text = "x" * 10_000
        list(
            pool.map(
                lambda number: (one, other)[number % 2].write(made(id=f"c{number}", arguments={"t": text})), range(200)
            )
        )

    found = list(read_recording(path))
    assert {one.call_id for one in found if isinstance(one, RecordedCall)} == {f"c{number}" for number in range(200)}


def test_a_full_recording_takes_no_more_and_keeps_what_it_has(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    with recorder(path, max_bytes=600) as book:
        book.write(made())
        before = path.read_bytes()
        with pytest.raises(StoreError) as caught:
            book.write(made(arguments={"t": "x" * 600}))

    assert (caught.value.code, path.read_bytes()) == ("full", before)


def test_a_write_that_the_disk_cut_off_does_not_spoil_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, write = tmp_path / "calls.jsonl", os.write
    with recorder(path) as book:
        book.write(made(id="c0"))
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", lambda file, line: write(file, line[:20]))
            with pytest.raises(StoreError, match="disk is full"):
                book.write(made(id="c1"))
        book.write(made(id="c2"))

    kinds = [one.call_id if isinstance(one, RecordedCall) else "" for one in read_recording(path)]
    assert kinds == ["c0", "", "c2"]


@pytest.mark.parametrize("written", [0, 1])
def test_a_disk_that_takes_nothing_is_told_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: int
) -> None:
    path, write = tmp_path / "calls.jsonl", os.write
    path.write_bytes(b'{"truename": 1, "id": "torn')
    with recorder(path) as book:
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", lambda file, line: write(file, line[:written]))
            for _ in range(2):
                with pytest.raises(StoreError, match="disk is full"):
                    book.write(made(id="c1"))
        book.write(made(id="c2"))

    torn, last = read_recording(path)
    assert isinstance(torn, BrokenLine)
    assert isinstance(last, RecordedCall)


def test_a_file_that_can_not_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> int:
        raise OSError(5, "Input/output error")

    with recorder(tmp_path / "calls.jsonl") as book:
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", fail)
            with pytest.raises(StoreError, match="Input/output error") as caught:
                book.write(made())
        assert book.write(made())
    assert caught.value.code == "unusable"


def test_a_closed_recorder_says_so(tmp_path: Path) -> None:
    book = recorder(tmp_path / "calls.jsonl")
    book.close()
    book.close()

    with pytest.raises(StoreError, match="closed"):
        book.write(made())


@pytest.mark.skipif(sys.platform == "win32", reason="there are no named pipes in the file system")
def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", tmp_path / "no" / "folder", tmp_path / ("x" * 400)):
        with pytest.raises(StoreError) as caught:
            recorder(path)
        assert caught.value.code == "unusable"
        with pytest.raises(StoreError):
            list(read_recording(path))


LINE: dict[str, Any] = {"truename": 1, "id": "phone@1/tap@1", "arguments": {}, "context": {"platform": "ios"}}
BROKEN: list[tuple[Any, str]] = [
    ("{", "not JSON"),
    ("[" * 100_000, "not JSON"),
    ("\ufffe", "not JSON"),
    ([], "not a recorded call"),
    ({}, "not a recorded call"),
    ({**LINE, "truename": True}, "not a recorded call"),
    ({**LINE, "truename": 0}, "not a recorded call"),
    ({**LINE, "id": "tap"}, "tap"),
    ({**LINE, "id": 7}, "not text"),
    ({**LINE, "name": ["x"]}, "not text"),
    ({**LINE, "arguments": []}, "not an object"),
    ({**LINE, "arguments": None}, "missing"),
    ({**LINE, "context": {"origin": "root"}}, "is not an origin"),
    ({**LINE, "context": {"platform": 1}}, "is not a text of at most"),
    ({**LINE, "context": {"user": "x"}}, "not a context"),
    ({**LINE, "context": "ios"}, "not a context"),
    ({key: value for key, value in LINE.items() if key != "context"}, "not a context"),
]


@pytest.mark.parametrize(("line", "told"), BROKEN)
def test_a_damaged_line_is_told_and_the_others_are_read(tmp_path: Path, line: Any, told: str) -> None:
    path = tmp_path / "calls.jsonl"
    text = line if isinstance(line, str) else json.dumps(line)
    path.write_text(f"{json.dumps(LINE)}\n\n{text}\n{json.dumps(LINE)}\n", "utf-8")

    first, broken, last = read_recording(path)
    assert isinstance(first, RecordedCall)
    assert isinstance(last, RecordedCall)
    assert isinstance(broken, BrokenLine)
    assert told in broken.problem
    assert str(broken).startswith("line 3: ")


def test_a_line_of_a_later_version_stops_the_reading(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_text(json.dumps({**LINE, "truename": 2, "surprise": 1}) + "\n")

    with pytest.raises(StoreError) as caught:
        list(read_recording(path))
    assert caught.value.code == "newer"


@given(st.binary(max_size=300))
def test_no_bytes_do_anything_else_than_being_read_or_told(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = tmp_path_factory.mktemp("noise") / "calls.jsonl"
    path.write_bytes(content)

    for one in read_recording(path):
        assert isinstance(one, BrokenLine)

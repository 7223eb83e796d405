"""Files of state: shared by processes, changed whole, refused and left alone when they are not as they were written."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from truename.errors import StoreError
from truename.state import Schema, StateFile

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = Schema(1, ("CREATE TABLE word (text TEXT PRIMARY KEY)",))


def words(file: StateFile) -> list[str]:
    return [text for (text,) in file.rows("SELECT text FROM word ORDER BY text")]


def put(file: StateFile, *texts: str) -> None:
    with file.change() as data:
        data.executemany("INSERT INTO word VALUES (?)", [(text,) for text in texts])


def test_what_one_process_writes_another_hears_of_once(tmp_path: Path) -> None:
    one, other = StateFile(tmp_path / "x", SCHEMA), StateFile(tmp_path / "x", SCHEMA)
    assert other.has_news()
    assert not other.has_news()
    put(one, "a")
    assert (other.has_news(), other.has_news(), words(other)) == (True, False, ["a"])
    one.has_news()
    put(one, "b")
    assert not one.has_news()
    one.close()
    other.close()


def test_what_another_process_wrote_is_seen_without_being_heard(tmp_path: Path) -> None:
    one, other = StateFile(tmp_path / "x", SCHEMA), StateFile(tmp_path / "x", SCHEMA)
    other.has_news()
    put(other, "a")
    assert not other.is_behind()
    put(one, "b")
    assert (other.is_behind(), other.is_behind(), other.has_news(), other.is_behind()) == (True, True, True, False)
    seen: list[bool] = []

    def look() -> None:
        with other.change():
            thread = threading.Thread(target=lambda: seen.append(other.is_behind()))
            thread.start()
            thread.join()

    look()
    put(one, "c")
    look()
    assert (seen, other.is_behind()) == ([False, True], True)
    other.close()
    assert other.is_behind()


def test_a_change_that_fails_leaves_nothing(tmp_path: Path) -> None:
    file = StateFile(tmp_path / "x", SCHEMA)
    put(file, "a")
    with pytest.raises(StoreError):
        put(file, "b", "a")
    assert words(file) == ["a"]
    file.close()


def test_threads_write_one_after_the_other(tmp_path: Path) -> None:
    file = StateFile(tmp_path / "x", SCHEMA)
    threads = [threading.Thread(target=put, args=(file, f"{number}")) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(words(file)) == 20
    file.close()


def test_a_busy_file_is_a_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("truename.state.file._PATIENCE", 0.05)
    one, other = StateFile(tmp_path / "x", SCHEMA), StateFile(tmp_path / "x", SCHEMA)
    with one.change(), pytest.raises(StoreError, match="another process is writing") as refused:
        put(other, "a")
    assert refused.value.code == "busy"
    one.close()
    other.close()


_KILLED = """
import os, sys
from tests.state.test_state_file import SCHEMA, put
from truename.state import StateFile
file = StateFile(sys.argv[1], SCHEMA)
put(file, "whole")
with file.change() as data:
    data.executemany("INSERT INTO word VALUES (?)", [(f"{n}" * 500,) for n in range(2_000)])
    os.kill(os.getpid(), 9)
"""


_FULL = """
import resource, signal, sys
from pathlib import Path
from tests.state.test_state_file import SCHEMA, put
from truename.errors import StoreError
from truename.state import StateFile
file = StateFile(sys.argv[1], SCHEMA)
put(file, "kept")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
no_limit = resource.getrlimit(resource.RLIMIT_FSIZE)
# The file itself has no room; then neither has the journal of the change.
for room in Path(sys.argv[1]).stat().st_size + 100, 0:
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, no_limit[1]))
    try:
        put(file, *(f"{n}" * 500 for n in range(100)))
    except StoreError as error:
        print(error.code)
resource.setrlimit(resource.RLIMIT_FSIZE, no_limit)
put(file, "again")
print("kept")
"""


def test_a_process_that_is_killed_in_the_middle_leaves_what_was_before(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", _KILLED, str(tmp_path / "x")], check=False)
    file = StateFile(tmp_path / "x", SCHEMA)
    assert words(file) == ["whole"]
    file.close()


def _damaged(path: Path, how: str) -> None:
    if how == "text":
        path.write_text("this is no file of ours, and it is longer than a head would be " * 20)
    elif how == "torn":
        path.write_bytes(path.read_bytes()[:5_000])
    elif how == "cut off":
        path.write_bytes(path.read_bytes()[:1])
    elif how == "one of two copies":
        # Of what is looked up one copy stands in the table, one in its index.
        path.write_bytes(path.read_bytes().replace(b"299" * 100, b"299" * 99 + b"29x", 1))
    elif how == "no text":
        path.write_bytes(path.read_bytes().replace(b"CREATE", b"CR\xedATE"))
    elif how == "directory":
        path.unlink()
        path.mkdir()
    elif how == "pipe":
        path.unlink()
        os.mkfifo(path)
    else:
        data = sqlite3.connect(path)
        data.execute(how)
        data.commit()
        data.close()


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ("text", "corrupt"),
        ("torn", "corrupt"),
        ("cut off", "corrupt"),
        ("no text", "corrupt"),
        ("one of two copies", "corrupt"),
        ("directory", "unusable"),
        pytest.param(
            *("pipe", "unusable"), marks=pytest.mark.skipif(sys.platform == "win32", reason="there are none there")
        ),
        ("PRAGMA user_version = 9", "newer"),
        ("PRAGMA user_version = 0", "corrupt"),
        ("ALTER TABLE word RENAME COLUMN text TO next", "corrupt"),
        ("ALTER TABLE word ADD COLUMN more TEXT", "corrupt"),
        ("CREATE TRIGGER spy AFTER INSERT ON word BEGIN DELETE FROM word; END", "corrupt"),
    ],
)
def test_a_file_that_is_not_as_it_was_written_is_refused_and_stays(tmp_path: Path, how: str, code: str) -> None:
    path = tmp_path / "x"
    file = StateFile(path, SCHEMA)
    put(file, *(f"{number}" * 100 for number in range(300)))
    file.close()
    _damaged(path, how)
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(StoreError) as refused:
        StateFile(path, SCHEMA)
    assert (refused.value.code, path.read_bytes() if path.is_file() else b"") == (code, before)


def test_nobody_else_can_read_it_and_a_link_is_not_followed(tmp_path: Path) -> None:
    StateFile(tmp_path / "state" / "x", SCHEMA).close()
    assert (tmp_path / "state" / "x").stat().st_mode & 0o077 == 0
    assert (tmp_path / "state").stat().st_mode & 0o077 == 0
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="it is a link") as refused:
        StateFile(tmp_path / "link", SCHEMA)
    assert (refused.value.code, (tmp_path / "elsewhere").exists()) == ("unusable", False)


def test_what_others_keep_from_its_end_is_taken_back_and_keeps_nobody_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("truename.state.file._PATIENCE", 0.05)
    file, other = StateFile(tmp_path / "x", SCHEMA), StateFile(tmp_path / "x", SCHEMA)
    with closing(sqlite3.connect(tmp_path / "x", isolation_level=None)) as reader:
        # One that is stopped in the middle of a look.
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM word").fetchall()
        with pytest.raises(StoreError) as refused:
            put(file, "a")
        assert refused.value.code == "busy"
    put(other, "b")
    put(file, "c")
    assert words(file) == ["b", "c"]
    file.close()
    other.close()


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit of file sizes")
def test_a_full_disk_leaves_what_was_and_what_comes_when_there_is_room_is_kept(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _FULL, str(tmp_path / "x")], check=False, capture_output=True, text=True
    )
    assert (done.stdout.split(), done.stderr) == (["unusable", "unusable", "kept"], "")
    file = StateFile(tmp_path / "x", SCHEMA)
    assert words(file) == ["again", "kept"]
    file.close()


@pytest.mark.skipif(sys.platform == "win32", reason="an open file can't be moved there")
@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_another_file_in_its_place_is_told_and_not_taken_for_it(tmp_path: Path, how: str) -> None:
    path = tmp_path / "x"
    file = StateFile(path, SCHEMA)
    put(file, "a")
    path.rename(tmp_path / "moved")
    if how == "replaced":
        StateFile(path, SCHEMA).close()
    for use in file.has_news, lambda: put(file, "b"):
        with pytest.raises(StoreError, match="moved, removed or replaced") as refused:
            use()
        assert refused.value.code == "unusable"
    assert words(file) == ["a"]
    file.close()

"""Files of state: shared by processes, changed whole, refused and left alone when they are not as they were written."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from truename.policy import StoreError
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
        ("PRAGMA user_version = 9", "newer"),
        ("PRAGMA user_version = 0", "corrupt"),
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
    with pytest.raises(StoreError, match="can't be used"):
        StateFile(tmp_path / "link", SCHEMA)
    assert not (tmp_path / "elsewhere").exists()

"""A state database that lost changes, or that is another file, is refused and left alone until somebody accepts it."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tests.support.state_database import KILLED, SCHEMA, put, words
from truename.errors import StoreError
from truename.storage import Revision, StateLocation, accept_state, open_database

if TYPE_CHECKING:
    from pathlib import Path


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
    elif how == "emptied":
        path.write_bytes(b"")
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
        ("emptied", "corrupt"),
        ("directory", "unusable"),
        pytest.param(
            *("pipe", "unusable"), marks=pytest.mark.skipif(sys.platform == "win32", reason="there are none there")
        ),
        ("UPDATE part SET version = 9", "newer"),
        ("PRAGMA application_id = 7", "corrupt"),
        ("UPDATE state SET revision = revision - 1", "corrupt"),
        ("UPDATE state SET id = 'another'", "corrupt"),
        ("ALTER TABLE word RENAME COLUMN text TO next", "corrupt"),
        ("ALTER TABLE word ADD COLUMN more TEXT", "corrupt"),
        ("CREATE TRIGGER spy AFTER INSERT ON word BEGIN DELETE FROM word; END", "corrupt"),
    ],
)
def test_a_file_that_is_not_as_it_was_written_is_refused_and_stays(tmp_path: Path, how: str, code: str) -> None:
    path = tmp_path / "x"
    file = open_database(path, SCHEMA)
    put(file, *(f"{number}" * 100 for number in range(300)))
    file.close()
    _damaged(path, how)
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(StoreError) as refused:
        open_database(path, SCHEMA)
    assert (refused.value.code, path.read_bytes() if path.is_file() else b"") == (code, before)


@pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be moved there")
@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_another_file_in_its_place_is_told_and_not_taken_for_it(tmp_path: Path, how: str) -> None:
    path = tmp_path / "x"
    file = open_database(path, SCHEMA)
    put(file, "a")
    path.rename(tmp_path / "moved")
    (tmp_path / "x.revision").unlink()
    if how == "replaced":
        open_database(path, SCHEMA).close()
    for use in file.has_news, lambda: put(file, "b"):
        with pytest.raises(StoreError, match="moved, removed or replaced") as refused:
            use()
        assert refused.value.code == "unusable"
    file.close()


def test_a_database_that_is_gone_is_not_begun_anew_until_somebody_says_so(tmp_path: Path) -> None:
    file = open_database(tmp_path / "x", SCHEMA)
    put(file, "a")
    put(file, "b")
    file.close()
    (tmp_path / "x").unlink()
    with pytest.raises(StoreError) as refused:
        open_database(tmp_path / "x", SCHEMA)
    assert refused.value.code == "corrupt"
    assert "it is missing, but it had 3 changes" in str(refused.value)
    assert f"run `truename state accept {tmp_path / 'x'}`" in str(refused.value)
    assert not (tmp_path / "x").exists()
    (tmp_path / "x.revision").unlink()
    fresh = open_database(tmp_path / "x", SCHEMA)
    assert words(fresh) == []
    fresh.close()


def test_an_older_copy_is_refused_and_says_how_much_it_lacks(tmp_path: Path) -> None:
    file = open_database(tmp_path / "x", SCHEMA)
    put(file, "a")
    file.close()
    copy = (tmp_path / "x").read_bytes()
    file = open_database(tmp_path / "x", SCHEMA)
    put(file, "b")
    file.close()
    (tmp_path / "x").write_bytes(copy)
    for readonly in (False, True):
        with pytest.raises(StoreError, match="it has 2 changes, but it had 3 changes"):
            open_database(tmp_path / "x", SCHEMA, readonly=readonly)


def test_what_a_killed_process_wrote_last_may_be_missing_beside_the_database(tmp_path: Path) -> None:
    file = open_database(tmp_path / "x", SCHEMA)
    before = (tmp_path / "x.revision").read_bytes()
    put(file, "a")
    file.close()
    (tmp_path / "x.revision").write_bytes(before)
    file = open_database(tmp_path / "x", SCHEMA)
    assert words(file) == ["a"]
    file.close()


@pytest.fixture
def replaced(tmp_path: Path) -> Path:
    """Return the path of a database that was open while a copy of it was taken, and written to after that."""
    path = tmp_path / "x"
    file = open_database(path, SCHEMA)
    put(file, "a")
    file.close()
    (tmp_path / "copy").write_bytes(path.read_bytes())
    subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert (tmp_path / "x-wal").stat().st_size
    return path


@pytest.mark.parametrize("how", ["an older copy", "another database"])
def test_the_log_of_a_database_that_was_replaced_is_not_mixed_into_the_new_one(replaced: Path, how: str) -> None:
    file = open_database(replaced, SCHEMA)
    put(file, "b")
    log = replaced.with_name("x-wal").read_bytes()
    file.close()
    put(file := open_database(replaced, SCHEMA), *map(str, range(3_000)))
    file.close()
    if how == "another database":
        open_database(replaced.with_name("copy.db"), SCHEMA).close()
        replaced.write_bytes(replaced.with_name("copy.db").read_bytes())
    else:
        # A log whose changes are all in the copy would take it back to an earlier state.
        assert log
    before = replaced.read_bytes()
    replaced.with_name("x-wal").write_bytes(log)
    replaced.with_name("x.revision").unlink()
    for readonly in (False, True):
        with pytest.raises(StoreError, match=r"write-ahead log beside it \(x-wal\) belongs to another file") as refused:
            open_database(replaced, SCHEMA, readonly=readonly)
        assert refused.value.code == "corrupt"
    assert (replaced.read_bytes(), replaced.with_name("x-wal").read_bytes()) == (before, log)
    replaced.with_name("x-wal").unlink()
    open_database(replaced, SCHEMA).close()


def test_a_log_that_continues_a_later_copy_is_not_mixed_into_an_older_one(replaced: Path) -> None:
    # The log begins behind what the database had; the older copy lacks what is between.
    file = open_database(replaced, SCHEMA)
    put(file, "b")
    file.close()
    copy = replaced.with_name("copy").read_bytes()
    subprocess.run([sys.executable, "-c", KILLED.replace('"whole"', '"more"'), str(replaced)], check=False)
    replaced.write_bytes(copy)
    replaced.with_name("x.revision").unlink()
    with pytest.raises(StoreError, match="belongs to another file"):
        open_database(replaced, SCHEMA)


def test_the_log_that_a_killed_process_left_is_replayed(replaced: Path) -> None:
    file = open_database(replaced, SCHEMA)
    assert words(file) == ["a", "whole"]
    file.close()


def test_a_revision_that_the_audit_log_has_is_one_that_the_database_must_have(tmp_path: Path) -> None:
    file = open_database(tmp_path / "x", SCHEMA)
    put(file, "a")
    had = file.revision()
    file.close()
    (tmp_path / "x.revision").unlink()
    open_database(StateLocation(tmp_path / "x", known=had), SCHEMA).close()
    for known in (Revision(had.database, had.number + 1), Revision("0" * 32, 1)):
        with pytest.raises(StoreError, match="but it had") as refused:
            open_database(StateLocation(tmp_path / "x", known=known), SCHEMA)
        assert refused.value.code == "corrupt"
    (tmp_path / "x").unlink()
    (tmp_path / "x.revision").unlink()
    with pytest.raises(StoreError, match="it is missing, but it had 2 changes"):
        open_database(StateLocation(tmp_path / "x", known=had), SCHEMA)
    assert not (tmp_path / "x").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="needs links and pipes")
@pytest.mark.parametrize("how", ["another program's", "damaged", "with another's log", "a link", "a pipe"])
def test_only_a_whole_state_database_is_accepted(tmp_path: Path, how: str) -> None:
    path = tmp_path / "x"
    with closing(open_database(path, SCHEMA)) as file:
        put(file, "a")
    known = (tmp_path / "x.revision").read_bytes()
    if how == "another program's":
        path.unlink()
        with closing(sqlite3.connect(path)) as data:
            data.executescript("CREATE TABLE state (id, revision); INSERT INTO state VALUES ('x', 3)")
    elif how == "damaged":
        path.write_bytes(path.read_bytes()[:-4096])
    elif how == "with another's log":
        with closing(open_database(tmp_path / "y", SCHEMA)):
            (tmp_path / "x-wal").write_bytes((tmp_path / "y-wal").read_bytes())
    else:
        path.rename(tmp_path / "z")
        if how == "a link":
            path.symlink_to(tmp_path / "z")
        else:
            os.mkfifo(path)
    with pytest.raises(StoreError):
        accept_state(StateLocation(path))
    assert (tmp_path / "x.revision").read_bytes() == known


def test_an_older_copy_and_another_database_can_be_accepted(tmp_path: Path) -> None:
    path, older = tmp_path / "x", tmp_path / "older"
    with closing(open_database(path, SCHEMA)) as file:
        put(file, "a")
    older.write_bytes(path.read_bytes())
    with closing(open_database(path, SCHEMA)) as file:
        put(file, "b")
    older.replace(path)
    found = accept_state(StateLocation(path, known=Revision("0" * 32, 9)))
    assert found is not None
    assert found.number == 2
    with closing(open_database(path, SCHEMA)) as file:
        assert words(file) == ["a"]


@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_the_record_of_the_revision_is_made_again_when_it_was_lost_while_in_use(tmp_path: Path, how: str) -> None:
    path, beside, older = tmp_path / "x", tmp_path / "x.revision", tmp_path / "older"
    file = open_database(path, SCHEMA)
    put(file, "a")
    file.empty_log()
    older.write_bytes(path.read_bytes())
    if how == "removed":
        beside.unlink()
    else:
        (tmp_path / "copy").write_bytes(beside.read_bytes())
        (tmp_path / "copy").replace(beside)
    put(file, "b")
    file.close()
    older.replace(path)
    with pytest.raises(StoreError, match="it has 2 changes, but it had 3"):
        open_database(path, SCHEMA)

"""The state database: shared by processes, changed whole, refused and left alone when it lost what was written."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pytest

from truename.errors import StoreError
from truename.storage import Database, Revision, Schema, StateLocation, accept_state, import_tables, select

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = Schema("word", (("CREATE TABLE word (text TEXT PRIMARY KEY)",),))


def words(file: Database) -> list[str]:
    return [text for (text,) in file.rows("SELECT text FROM word ORDER BY text")]


def put(file: Database, *texts: str) -> None:
    with file.change() as data:
        data.executemany("INSERT INTO word VALUES (?)", [(text,) for text in texts])


def test_what_one_process_writes_another_hears_of_once(tmp_path: Path) -> None:
    one, other = Database(tmp_path / "x", SCHEMA), Database(tmp_path / "x", SCHEMA)
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
    one, other = Database(tmp_path / "x", SCHEMA), Database(tmp_path / "x", SCHEMA)
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
    file = Database(tmp_path / "x", SCHEMA)
    put(file, "a")
    with pytest.raises(StoreError):
        put(file, "b", "a")
    assert words(file) == ["a"]
    file.close()


def test_threads_write_one_after_the_other(tmp_path: Path) -> None:
    file = Database(tmp_path / "x", SCHEMA)
    threads = [threading.Thread(target=put, args=(file, f"{number}")) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(words(file)) == 20
    file.close()


def test_a_busy_file_is_a_clear_error(tmp_path: Path) -> None:
    one, other = Database(tmp_path / "x", SCHEMA), Database(tmp_path / "x", SCHEMA, patience=0.05)
    with one.change(), pytest.raises(StoreError, match="another process is writing") as refused:
        put(other, "a")
    assert refused.value.code == "busy"
    one.close()
    other.close()


_KILLED = """
import os, sys
from tests.storage.test_database import SCHEMA, put
from truename.storage import Database
file = Database(sys.argv[1], SCHEMA)
put(file, "whole")
with file.change() as data:
    data.executemany("INSERT INTO word VALUES (?)", [(f"{n}" * 500,) for n in range(2_000)])
    os.kill(os.getpid(), 9)
"""


_FULL = """
import resource, signal, sys
from pathlib import Path
from tests.storage.test_database import SCHEMA, put
from truename.errors import StoreError
from truename.storage import Database
file = Database(sys.argv[1], SCHEMA)
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
    file = Database(tmp_path / "x", SCHEMA)
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
    file = Database(path, SCHEMA)
    put(file, *(f"{number}" * 100 for number in range(300)))
    file.close()
    _damaged(path, how)
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(StoreError) as refused:
        Database(path, SCHEMA)
    assert (refused.value.code, path.read_bytes() if path.is_file() else b"") == (code, before)


def test_nobody_else_can_read_it_and_a_link_is_not_followed(tmp_path: Path) -> None:
    Database(tmp_path / "state" / "x", SCHEMA).close()
    assert (tmp_path / "state" / "x").stat().st_mode & 0o077 == 0
    assert (tmp_path / "state").stat().st_mode & 0o077 == 0
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="it is a symbolic link") as refused:
        Database(tmp_path / "link", SCHEMA)
    assert (refused.value.code, (tmp_path / "elsewhere").exists()) == ("unusable", False)


def test_a_reader_that_stopped_keeps_no_writer_out(tmp_path: Path) -> None:
    file, other = Database(tmp_path / "x", SCHEMA, patience=0.05), Database(tmp_path / "x", SCHEMA)
    with closing(sqlite3.connect(tmp_path / "x", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM word").fetchall()
        put(file, "a")
    put(other, "b")
    assert words(file) == ["a", "b"]
    file.close()
    other.close()


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit of file sizes")
def test_a_full_disk_leaves_what_was_and_what_comes_when_there_is_room_is_kept(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _FULL, str(tmp_path / "x")], check=False, capture_output=True, text=True
    )
    assert (done.stdout.split(), done.stderr) == (["unusable", "unusable", "kept"], "")
    file = Database(tmp_path / "x", SCHEMA)
    assert words(file) == ["again", "kept"]
    file.close()


@pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be moved there")
@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_another_file_in_its_place_is_told_and_not_taken_for_it(tmp_path: Path, how: str) -> None:
    path = tmp_path / "x"
    file = Database(path, SCHEMA)
    put(file, "a")
    path.rename(tmp_path / "moved")
    (tmp_path / "x.revision").unlink()
    if how == "replaced":
        Database(path, SCHEMA).close()
    for use in file.has_news, lambda: put(file, "b"):
        with pytest.raises(StoreError, match="moved, removed or replaced") as refused:
            use()
        assert refused.value.code == "unusable"
    file.close()


def test_a_database_that_is_gone_is_not_begun_anew_until_somebody_says_so(tmp_path: Path) -> None:
    file = Database(tmp_path / "x", SCHEMA)
    put(file, "a")
    put(file, "b")
    file.close()
    (tmp_path / "x").unlink()
    with pytest.raises(StoreError) as refused:
        Database(tmp_path / "x", SCHEMA)
    assert refused.value.code == "corrupt"
    assert "it is missing, but it had 3 changes" in str(refused.value)
    assert f"run `truename state accept {tmp_path / 'x'}`" in str(refused.value)
    assert not (tmp_path / "x").exists()
    (tmp_path / "x.revision").unlink()
    fresh = Database(tmp_path / "x", SCHEMA)
    assert words(fresh) == []
    fresh.close()


def test_an_older_copy_is_refused_and_says_how_much_it_lacks(tmp_path: Path) -> None:
    file = Database(tmp_path / "x", SCHEMA)
    put(file, "a")
    file.close()
    copy = (tmp_path / "x").read_bytes()
    file = Database(tmp_path / "x", SCHEMA)
    put(file, "b")
    file.close()
    (tmp_path / "x").write_bytes(copy)
    for readonly in (False, True):
        with pytest.raises(StoreError, match="it has 2 changes, but it had 3 changes"):
            Database(tmp_path / "x", SCHEMA, readonly=readonly)


def test_what_a_killed_process_wrote_last_may_be_missing_beside_the_database(tmp_path: Path) -> None:
    file = Database(tmp_path / "x", SCHEMA)
    before = (tmp_path / "x.revision").read_bytes()
    put(file, "a")
    file.close()
    (tmp_path / "x.revision").write_bytes(before)
    file = Database(tmp_path / "x", SCHEMA)
    assert words(file) == ["a"]
    file.close()


def test_owners_share_a_file_and_hear_of_their_own_tables_only(tmp_path: Path) -> None:
    pins = Schema("pin", (("CREATE TABLE pin (key TEXT)", "CREATE INDEX by_key ON pin (key)"),))
    one, other = Database(tmp_path / "x", SCHEMA), Database(tmp_path / "x", SCHEMA)
    third = Database(tmp_path / "x", pins)
    assert (one.has_news(), other.has_news(), third.has_news()) == (True, True, True)
    with third.change() as data:
        data.execute("INSERT INTO pin VALUES ('k')")
    assert (one.has_news(), other.has_news(), third.has_news()) == (False, False, False)
    put(one, "a")
    with third.change() as data:
        data.execute("INSERT INTO pin VALUES ('l')")
    assert (one.has_news(), other.has_news(), third.has_news()) == (False, True, False)
    put(other, "b")
    put(one, "c")
    assert (one.has_news(), other.has_news(), third.has_news()) == (True, True, False)
    for file in (one, other, third):
        file.close()


def test_migrations_run_once_each_and_an_older_program_is_refused(tmp_path: Path) -> None:
    later = Schema("word", (*SCHEMA.migrations, ("ALTER TABLE word ADD COLUMN note TEXT DEFAULT 'none'",)))
    file = Database(tmp_path / "x", SCHEMA)
    put(file, "a")
    file.close()
    with pytest.raises(StoreError, match="written by an older Truename"):
        Database(tmp_path / "x", later, readonly=True)
    for _ in range(2):
        file = Database(tmp_path / "x", later)
        assert file.rows("SELECT * FROM word") == [("a", "none")]
        file.close()
    with pytest.raises(StoreError) as refused:
        Database(tmp_path / "x", SCHEMA)
    assert refused.value.code == "newer"


def test_a_migration_that_fails_leaves_the_database_as_it_was(tmp_path: Path) -> None:
    file = Database(tmp_path / "x", SCHEMA)
    put(file, "a")
    file.close()
    broken = Schema(
        "word", (*SCHEMA.migrations, ("CREATE TABLE word_note (text TEXT)", "CREATE TABLE word (text TEXT)"))
    )
    with pytest.raises(StoreError, match="already exists"):
        Database(tmp_path / "x", broken)
    file = Database(tmp_path / "x", SCHEMA)
    assert words(file) == ["a"]
    file.close()


def test_a_block_inside_a_block_is_committed_with_it_or_not_at_all(tmp_path: Path) -> None:
    file, other = Database(tmp_path / "x", SCHEMA), Database(tmp_path / "x", SCHEMA)
    with file.change():
        put(file, "a")
        assert words(other) == []
    with pytest.raises(StoreError, match="UNIQUE"), file.change():
        put(file, "b", "a")
    assert words(other) == ["a"]
    file.close()
    other.close()


_NO_ROOM = """
import os, resource, signal, sys
from pathlib import Path
from tests.storage.test_database import SCHEMA, put, words
from truename.errors import StoreError
from truename.storage import Database
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
no_limit = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, no_limit[1]))
file = Database(sys.argv[1], SCHEMA)
print(words(file), bool(file.readonly_because))
try:
    put(file, "b")
except StoreError as error:
    print(error.code)
print(words(file))
resource.setrlimit(resource.RLIMIT_FSIZE, no_limit)
put(file, "b")
print(words(file), bool(file.readonly_because))
file.close()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit of file sizes")
@pytest.mark.parametrize("before", ["closed", "killed"])
def test_a_start_on_a_full_disk_reads_all_and_writes_when_there_is_room(tmp_path: Path, before: str) -> None:
    if before == "closed":
        file = Database(tmp_path / "x", SCHEMA)
        put(file, "whole")
        file.close()
    else:
        subprocess.run([sys.executable, "-c", _KILLED, str(tmp_path / "x")], check=False)
        assert (tmp_path / "x-wal").exists()
    done = subprocess.run(
        [sys.executable, "-c", _NO_ROOM, str(tmp_path / "x")], check=False, capture_output=True, text=True
    )
    assert done.stdout.splitlines() == ["['whole'] True", "unusable", "['whole']", "['b', 'whole'] False"]
    assert done.stderr == ""


_GONE_FOR_A_WHILE = """
import os, resource, sys
from tests.storage.test_database import SCHEMA, put, words
from truename.errors import StoreError
from truename.storage import Database

path = sys.argv[1]
no_limit = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, no_limit[1]))
file = Database(path, SCHEMA)
assert file.readonly_because
os.rename(path, path + ".away")
for _ in range(2):
    try:
        put(file, "lost")
    except StoreError as error:
        print(error.problem.partition(",")[0])
os.rename(path + ".away", path)
print(words(file), file.has_news())
resource.setrlimit(resource.RLIMIT_FSIZE, no_limit)
put(file, "b")
print(words(file), bool(file.readonly_because))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit of file sizes")
@pytest.mark.parametrize("before", ["closed", "killed"])
def test_a_try_to_write_again_that_fails_leaves_what_can_be_read(tmp_path: Path, before: str) -> None:
    if before == "closed":
        file = Database(tmp_path / "x", SCHEMA)
        put(file, "whole")
        file.close()
    else:
        subprocess.run([sys.executable, "-c", _KILLED, str(tmp_path / "x")], check=False)
    done = subprocess.run(
        [sys.executable, "-c", _GONE_FOR_A_WHILE, str(tmp_path / "x")], check=False, capture_output=True, text=True
    )
    assert done.stderr == ""
    gone = "it was moved"
    assert done.stdout.splitlines() == [gone, gone, "['whole'] True", "['b', 'whole'] False"]


def test_a_database_opened_for_reading_creates_nothing_and_refuses_changes(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="No such file"):
        Database(tmp_path / "x", SCHEMA, readonly=True)
    assert list(tmp_path.iterdir()) == []
    file = Database(tmp_path / "x", SCHEMA)
    put(file, "a")
    reader = Database(tmp_path / "x", SCHEMA, readonly=True)
    put(file, "b")
    assert (reader.has_news(), words(reader), reader.is_begun) == (True, ["a", "b"], True)
    with pytest.raises(StoreError, match="readonly"):
        put(reader, "c")
    other = Database(tmp_path / "x", Schema("other", (("CREATE TABLE other (x TEXT)",),)), readonly=True)
    assert not other.is_begun
    for one in (file, reader, other):
        one.close()


_MANY = """
import sys
from tests.storage.test_database import SCHEMA, put
from truename.storage import Database
sys.stdin.readline()
for number in range(20):
    file = Database(sys.argv[1], SCHEMA)
    put(file, f"{sys.argv[2]}-{number}")
    file.close()
"""


def test_processes_that_open_a_new_database_at_once_all_get_it(tmp_path: Path) -> None:
    processes = [
        subprocess.Popen([sys.executable, "-c", _MANY, str(tmp_path / "x"), str(n)], stdin=subprocess.PIPE)
        for n in range(4)
    ]
    for process in processes:
        process.communicate(b"\n")
    assert [process.returncode for process in processes] == [0, 0, 0, 0]
    file = Database(tmp_path / "x", SCHEMA)
    assert len(words(file)) == 80
    file.close()


@pytest.fixture
def replaced(tmp_path: Path) -> Path:
    """Return the path of a database that was open while a copy of it was taken, and written to after that."""
    path = tmp_path / "x"
    file = Database(path, SCHEMA)
    put(file, "a")
    file.close()
    (tmp_path / "copy").write_bytes(path.read_bytes())
    subprocess.run([sys.executable, "-c", _KILLED, str(path)], check=False)
    assert (tmp_path / "x-wal").stat().st_size
    return path


@pytest.mark.parametrize("how", ["an older copy", "another database"])
def test_the_log_of_a_database_that_was_replaced_is_not_mixed_into_the_new_one(replaced: Path, how: str) -> None:
    file = Database(replaced, SCHEMA)
    put(file, "b")
    log = replaced.with_name("x-wal").read_bytes()
    file.close()
    put(file := Database(replaced, SCHEMA), *map(str, range(3_000)))
    file.close()
    if how == "another database":
        Database(replaced.with_name("copy.db"), SCHEMA).close()
        replaced.write_bytes(replaced.with_name("copy.db").read_bytes())
    else:
        # A log whose changes are all in the copy would take it back to an earlier state.
        assert log
    before = replaced.read_bytes()
    replaced.with_name("x-wal").write_bytes(log)
    replaced.with_name("x.revision").unlink()
    for readonly in (False, True):
        with pytest.raises(StoreError, match=r"write-ahead log beside it \(x-wal\) belongs to another file") as refused:
            Database(replaced, SCHEMA, readonly=readonly)
        assert refused.value.code == "corrupt"
    assert (replaced.read_bytes(), replaced.with_name("x-wal").read_bytes()) == (before, log)
    replaced.with_name("x-wal").unlink()
    Database(replaced, SCHEMA).close()


def test_a_log_that_continues_a_later_copy_is_not_mixed_into_an_older_one(replaced: Path) -> None:
    # The log begins behind what the database had; the older copy lacks what is between.
    file = Database(replaced, SCHEMA)
    put(file, "b")
    file.close()
    copy = replaced.with_name("copy").read_bytes()
    subprocess.run([sys.executable, "-c", _KILLED.replace('"whole"', '"more"'), str(replaced)], check=False)
    replaced.write_bytes(copy)
    replaced.with_name("x.revision").unlink()
    with pytest.raises(StoreError, match="belongs to another file"):
        Database(replaced, SCHEMA)


def test_the_log_that_a_killed_process_left_is_replayed(replaced: Path) -> None:
    file = Database(replaced, SCHEMA)
    assert words(file) == ["a", "whole"]
    file.close()


def test_a_thread_that_runs_an_event_loop_does_not_wait_for_another_process(tmp_path: Path) -> None:
    one, other = Database(tmp_path / "x", SCHEMA), Database(tmp_path / "x", SCHEMA)
    waited: list[float] = []

    async def use() -> None:
        for what in (lambda: put(other, "a"), other.has_news, other.is_busy, lambda: words(other)):
            began = time.monotonic()
            with suppress(StoreError):
                what()
            waited.append(time.monotonic() - began)

    with one.change():
        asyncio.run(use())
    assert len(waited) == 4
    # The patience of a thread is five seconds.
    assert max(waited) < 1.0
    assert words(other) == []


def test_a_thread_that_waits_for_another_process_keeps_no_reader_waiting(tmp_path: Path) -> None:
    one, other = Database(tmp_path / "x", SCHEMA), Database(tmp_path / "x", SCHEMA)
    with one.change():
        waiting = threading.Thread(target=put, args=(other, "a"))
        waiting.start()
        began = time.monotonic()
        for _ in range(50):
            assert words(other) == []
        assert time.monotonic() - began < 4.0
        assert waiting.is_alive()
    waiting.join()
    assert words(other) == ["a"]


_OTHER_OWNER = Schema("pin", (("CREATE TABLE pin (key TEXT)",),))
_AND_CLOSES = """
import sys
from tests.storage.test_database import SCHEMA, put
from truename.storage import Database
file = Database(sys.argv[1], SCHEMA)
put(file, sys.argv[2])
file.close()
"""


def test_a_second_connection_of_a_process_ends_no_lock_of_the_first(tmp_path: Path) -> None:
    path = tmp_path / "x"
    file = Database(path, SCHEMA)
    put(file, "a")
    # Opening and closing a file ends all locks of the process on it, unless SQLite does it.
    Database(path, _OTHER_OWNER).close()
    subprocess.run([sys.executable, "-c", _AND_CLOSES, str(path), "b"], check=True)
    # A process that has the file for itself removes the log when it closes it.
    assert path.with_name("x-wal").exists()
    put(file, "c")
    subprocess.run([sys.executable, "-c", _AND_CLOSES, str(path), "d"], check=True)
    assert words(file) == ["a", "b", "c", "d"]
    file.close()


def test_changes_of_other_owners_are_no_news(tmp_path: Path) -> None:
    file, other = Database(tmp_path / "x", SCHEMA), Database(tmp_path / "x", _OTHER_OWNER)
    file.has_news()
    with other.change() as data:
        data.execute("INSERT INTO pin VALUES ('k')")
    assert (file.is_behind(), file.has_news()) == (False, False)
    file.close()
    other.close()


def test_a_revision_that_the_audit_log_has_is_one_that_the_database_must_have(tmp_path: Path) -> None:
    file = Database(tmp_path / "x", SCHEMA)
    put(file, "a")
    had = file.revision()
    file.close()
    (tmp_path / "x.revision").unlink()
    Database(StateLocation(tmp_path / "x", known=had), SCHEMA).close()
    for known in (Revision(had.database, had.number + 1), Revision("0" * 32, 1)):
        with pytest.raises(StoreError, match="but it had") as refused:
            Database(StateLocation(tmp_path / "x", known=known), SCHEMA)
        assert refused.value.code == "corrupt"
    (tmp_path / "x").unlink()
    (tmp_path / "x.revision").unlink()
    with pytest.raises(StoreError, match="it is missing, but it had 2 changes"):
        Database(StateLocation(tmp_path / "x", known=had), SCHEMA)
    assert not (tmp_path / "x").exists()


def test_a_place_that_is_no_file_is_refused() -> None:
    with pytest.raises(StoreError, match="only a file can hold the state so far"):
        Database("postgresql://db.example/truename", SCHEMA)


def test_a_failing_import_leaves_no_tables_and_the_next_start_tries_again(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("a b")

    def take(data: sqlite3.Connection, former: Path) -> None:
        for text in former.read_text().split():
            data.execute("INSERT INTO word VALUES (?)", (text,))
        if "b" in former.read_text():
            raise StoreError(file=str(former), key="", problem="it is damaged", remedy="", code="corrupt")

    where = StateLocation(tmp_path / "x", {"word": tmp_path / "old"})
    for _ in range(2):
        with pytest.raises(StoreError, match="old: it is damaged"):
            Database(where, SCHEMA, import_former=take)
    (tmp_path / "old").write_text("a")
    for _ in range(2):
        file = Database(where, SCHEMA, import_former=take)
        assert words(file) == ["a"]
        file.close()


def test_tables_of_an_earlier_database_are_imported_by_their_former_names(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "old")) as data:
        data.execute("CREATE TABLE seen (text TEXT PRIMARY KEY)")
        data.executemany("INSERT INTO seen VALUES (?)", [("b",), ("a",)])
        data.commit()
    schema = Schema("word", (("CREATE TABLE word_seen (text TEXT PRIMARY KEY, number INTEGER NOT NULL)",),))
    where = StateLocation(tmp_path / "x", {"word": tmp_path / "old"})
    take = partial(import_tables, names={"word_seen": ("word_seen", "seen")})
    file = Database(where, schema, import_former=take)
    assert file.rows("SELECT text, number FROM word_seen ORDER BY number") == [("b", 1), ("a", 2)]
    file.close()
    for names, problem in (
        ({"word_seen": ("other",)}, "has no table word_seen"),
        ({"word_more": ("seen",)}, "its table seen has no column more"),
    ):
        more = Schema("word", (*schema.migrations, ("CREATE TABLE word_more (more TEXT)",)))
        with pytest.raises(StoreError, match=problem):
            Database(replace(where, path=tmp_path / "y"), more, import_former=partial(import_tables, names=names))


def test_names_of_tables_and_columns_are_checked() -> None:
    with pytest.raises(ValueError, match="is not the name of a table or column"):
        select("word; DROP TABLE word", ("text",))


@pytest.mark.skipif(sys.platform == "win32", reason="needs links and pipes")
@pytest.mark.parametrize("how", ["another program's", "damaged", "with another's log", "a link", "a pipe"])
def test_only_a_whole_state_database_is_accepted(tmp_path: Path, how: str) -> None:
    path = tmp_path / "x"
    with closing(Database(path, SCHEMA)) as file:
        put(file, "a")
    known = (tmp_path / "x.revision").read_bytes()
    if how == "another program's":
        path.unlink()
        with closing(sqlite3.connect(path)) as data:
            data.executescript("CREATE TABLE state (id, revision); INSERT INTO state VALUES ('x', 3)")
    elif how == "damaged":
        path.write_bytes(path.read_bytes()[:-4096])
    elif how == "with another's log":
        with closing(Database(tmp_path / "y", SCHEMA)):
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
    with closing(Database(path, SCHEMA)) as file:
        put(file, "a")
    older.write_bytes(path.read_bytes())
    with closing(Database(path, SCHEMA)) as file:
        put(file, "b")
    older.replace(path)
    found = accept_state(StateLocation(path, known=Revision("0" * 32, 9)))
    assert found is not None
    assert found.number == 2
    with closing(Database(path, SCHEMA)) as file:
        assert words(file) == ["a"]


def test_the_log_that_a_long_reader_let_grow_is_cut_when_it_has_left(tmp_path: Path) -> None:
    file, log = Database(tmp_path / "x", SCHEMA), tmp_path / "x-wal"
    with closing(sqlite3.connect(tmp_path / "x", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM word").fetchall()
        for number in range(12):
            put(file, f"{number}" * 2_000_000)
        assert log.stat().st_size > 20 * 1024 * 1024
    for number in range(4):
        put(file, f"after {number}")
    assert log.stat().st_size <= 16 * 1024 * 1024
    file.close()


def test_what_an_earlier_version_wrote_after_the_import_is_not_passed_over(tmp_path: Path) -> None:
    former = tmp_path / "words.txt"
    location = StateLocation(tmp_path / "x", {"word": former})

    def read(data: sqlite3.Connection, path: Path) -> None:
        data.executemany("INSERT INTO word VALUES (?)", [(word,) for word in path.read_text().split()])

    def opened(*, readonly: bool = False) -> list[str]:
        with closing(Database(location, SCHEMA, readonly=readonly, import_former=read)) as file:
            return words(file)

    former.write_text("a b")
    assert opened() == ["a", "b"]
    os.utime(former, (1, 1))
    assert opened() == ["a", "b"]
    for later in ("a c", "a b c"):
        former.write_text(later)
        for readonly in (False, True):
            with pytest.raises(StoreError, match="an earlier Truename wrote") as refused:
                opened(readonly=readonly)
            assert refused.value.code == "corrupt"
    former.rename(tmp_path / "away")
    assert opened() == ["a", "b"]


def test_a_file_that_an_earlier_version_begins_beside_the_database_is_not_passed_over(tmp_path: Path) -> None:
    location = StateLocation(tmp_path / "x", {"word": tmp_path / "words.txt"})
    Database(location, SCHEMA).close()
    (tmp_path / "words.txt").write_text("a")
    with pytest.raises(StoreError, match="an earlier Truename wrote"):
        Database(location, SCHEMA)


@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_the_record_of_the_revision_is_made_again_when_it_was_lost_while_in_use(tmp_path: Path, how: str) -> None:
    path, beside, older = tmp_path / "x", tmp_path / "x.revision", tmp_path / "older"
    file = Database(path, SCHEMA)
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
        Database(path, SCHEMA)

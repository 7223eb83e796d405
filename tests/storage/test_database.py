"""The state database: shared by processes and threads, changed whole, migrated once."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.state_database import KILLED, SCHEMA, put, words
from truename.errors import StoreError
from truename.storage import Schema, StateLocation, open_database


def test_what_one_process_writes_another_hears_of_once(place: StateLocation) -> None:
    one, other = open_database(place, SCHEMA), open_database(place, SCHEMA)
    assert other.has_news()
    assert not other.has_news()
    put(one, "a")
    assert (other.has_news(), other.has_news(), words(other)) == (True, False, ["a"])
    one.has_news()
    put(one, "b")
    assert not one.has_news()
    one.close()
    other.close()


def test_what_another_process_wrote_is_seen_without_being_heard(place: StateLocation) -> None:
    one, other = open_database(place, SCHEMA), open_database(place, SCHEMA)
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


def test_a_change_that_fails_leaves_nothing(place: StateLocation) -> None:
    file = open_database(place, SCHEMA)
    put(file, "a")
    with pytest.raises(StoreError):
        put(file, "b", "a")
    assert words(file) == ["a"]
    file.close()


def test_threads_write_one_after_the_other(place: StateLocation) -> None:
    file = open_database(place, SCHEMA)
    threads = [threading.Thread(target=put, args=(file, f"{number}")) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(words(file)) == 20
    file.close()


def test_a_busy_file_is_a_clear_error(place: StateLocation) -> None:
    one, other = open_database(place, SCHEMA), open_database(place, SCHEMA, patience=0.05)
    with one.change(), pytest.raises(StoreError, match="another process is writing") as refused:
        put(other, "a")
    assert refused.value.code == "busy"
    one.close()
    other.close()


def test_a_process_that_is_killed_in_the_middle_leaves_what_was_before(place: StateLocation) -> None:
    subprocess.run([sys.executable, "-c", KILLED, str(place.address)], check=False)
    file = open_database(place, SCHEMA)
    assert words(file) == ["whole"]
    file.close()


def test_nobody_else_can_read_it_and_a_link_is_not_followed(tmp_path: Path) -> None:
    open_database(tmp_path / "state" / "x", SCHEMA).close()
    assert (tmp_path / "state" / "x").stat().st_mode & 0o077 == 0
    assert (tmp_path / "state").stat().st_mode & 0o077 == 0
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="it is a symbolic link") as refused:
        open_database(tmp_path / "link", SCHEMA)
    assert (refused.value.code, (tmp_path / "elsewhere").exists()) == ("unusable", False)


def test_a_reader_that_stopped_keeps_no_writer_out(tmp_path: Path) -> None:
    file, other = open_database(tmp_path / "x", SCHEMA, patience=0.05), open_database(tmp_path / "x", SCHEMA)
    with closing(sqlite3.connect(tmp_path / "x", isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM word").fetchall()
        put(file, "a")
    put(other, "b")
    assert words(file) == ["a", "b"]
    file.close()
    other.close()


def test_owners_share_a_file_and_hear_of_their_own_tables_only(place: StateLocation) -> None:
    pins = Schema("pin", (("CREATE TABLE pin (key TEXT)", "CREATE INDEX by_key ON pin (key)"),))
    one, other = open_database(place, SCHEMA), open_database(place, SCHEMA)
    third = open_database(place, pins)
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


def _later(steps: int) -> Schema:
    added = (f"ALTER TABLE word ADD COLUMN note_{number} TEXT DEFAULT 'none'" for number in range(steps))
    return Schema("word", (*SCHEMA.migrations, *((statement,) for statement in added)))


def test_migrations_run_once_each_and_a_reader_waits_for_them(place: StateLocation) -> None:
    file = open_database(place, SCHEMA)
    put(file, "a")
    file.close()
    with pytest.raises(StoreError, match="written by an older Truename"):
        open_database(place, _later(1), readonly=True)
    for _ in range(2):
        file = open_database(place, _later(1))
        assert file.rows("SELECT * FROM word") == [("a", "none")]
        file.close()


def test_a_program_goes_on_with_tables_of_the_next_version_and_refuses_those_of_the_one_after(
    place: StateLocation,
) -> None:
    older = open_database(place, SCHEMA)
    put(older, "a")
    newer = open_database(place, _later(1))
    put(older, "b")
    again = open_database(place, SCHEMA)
    put(again, "c")
    assert newer.rows("SELECT * FROM word ORDER BY text") == [("a", "none"), ("b", "none"), ("c", "none")]
    open_database(place, _later(2)).close()
    for readonly in (False, True):
        with pytest.raises(StoreError, match="newer Truename") as refused:
            open_database(place, SCHEMA, readonly=readonly)
        assert refused.value.code == "newer"
    for file in (older, newer, again):
        file.close()


def test_a_migration_that_fails_leaves_the_database_as_it_was(place: StateLocation) -> None:
    file = open_database(place, SCHEMA)
    put(file, "a")
    file.close()
    broken = Schema(
        "word", (*SCHEMA.migrations, ("CREATE TABLE word_note (text TEXT)", "CREATE TABLE word (text TEXT)"))
    )
    with pytest.raises(StoreError, match="already exists"):
        open_database(place, broken)
    file = open_database(place, SCHEMA)
    assert words(file) == ["a"]
    file.close()


def test_a_block_inside_a_block_is_committed_with_it_or_not_at_all(place: StateLocation) -> None:
    file, other = open_database(place, SCHEMA), open_database(place, SCHEMA)
    with file.change():
        put(file, "a")
        assert words(other) == []
    with pytest.raises(StoreError, match=r"(?i)unique"), file.change():
        put(file, "b", "a")
    assert words(other) == ["a"]
    file.close()
    other.close()


def test_a_database_opened_for_reading_creates_nothing_and_refuses_changes(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="No such file"):
        open_database(tmp_path / "x", SCHEMA, readonly=True)
    assert list(tmp_path.iterdir()) == []
    file = open_database(tmp_path / "x", SCHEMA)
    put(file, "a")
    reader = open_database(tmp_path / "x", SCHEMA, readonly=True)
    put(file, "b")
    assert (reader.has_news(), words(reader), reader.is_begun) == (True, ["a", "b"], True)
    with pytest.raises(StoreError, match="readonly"):
        put(reader, "c")
    other = open_database(tmp_path / "x", Schema("other", (("CREATE TABLE other (x TEXT)",),)), readonly=True)
    assert not other.is_begun
    for one in (file, reader, other):
        one.close()


_MANY = """
import sys
from tests.support.state_database import SCHEMA, put
from truename.storage import open_database
sys.stdin.readline()
for number in range(20):
    file = open_database(sys.argv[1], SCHEMA)
    put(file, f"{sys.argv[2]}-{number}")
    file.close()
"""


def test_processes_that_open_a_new_database_at_once_all_get_it(place: StateLocation) -> None:
    processes = [
        subprocess.Popen([sys.executable, "-c", _MANY, str(place.address), str(n)], stdin=subprocess.PIPE)
        for n in range(4)
    ]
    for process in processes:
        process.communicate(b"\n")
    assert [process.returncode for process in processes] == [0, 0, 0, 0]
    file = open_database(place, SCHEMA)
    assert len(words(file)) == 80
    file.close()


def test_a_thread_that_runs_an_event_loop_does_not_wait_for_another_process(place: StateLocation) -> None:
    one, other = open_database(place, SCHEMA), open_database(place, SCHEMA)
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


def test_an_event_loop_does_not_wait_for_a_file_that_is_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x"
    with closing(open_database(path, Schema("other", (("CREATE TABLE other (text TEXT)",),)))) as other:
        monkeypatch.setattr(os, "access", lambda *_: False)
        file = open_database(path, SCHEMA)
        monkeypatch.undo()

        async def use() -> float:
            began = time.monotonic()
            with pytest.raises(StoreError, match="another process is writing"):
                put(file, "a")
            return time.monotonic() - began

        with other.change():
            assert asyncio.run(use()) < 1.0
        put(file, "a")
        assert words(file) == ["a"]
        file.close()


def test_a_thread_that_waits_for_another_process_keeps_no_reader_waiting(place: StateLocation) -> None:
    one, other = open_database(place, SCHEMA), open_database(place, SCHEMA)
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
from tests.support.state_database import SCHEMA, put
from truename.storage import open_database
file = open_database(sys.argv[1], SCHEMA)
put(file, sys.argv[2])
file.close()
"""


def test_a_second_connection_of_a_process_ends_no_lock_of_the_first(tmp_path: Path) -> None:
    path = tmp_path / "x"
    file = open_database(path, SCHEMA)
    put(file, "a")
    # Opening and closing a file ends all locks of the process on it, unless SQLite does it.
    open_database(path, _OTHER_OWNER).close()
    subprocess.run([sys.executable, "-c", _AND_CLOSES, str(path), "b"], check=True)
    # A process that has the file for itself removes the log when it closes it.
    assert path.with_name("x-wal").exists()
    put(file, "c")
    subprocess.run([sys.executable, "-c", _AND_CLOSES, str(path), "d"], check=True)
    assert words(file) == ["a", "b", "c", "d"]
    file.close()


def test_what_is_written_uncounted_is_there_and_nobody_hears_of_it(place: StateLocation) -> None:
    with closing(open_database(place, SCHEMA)) as one, closing(open_database(place, SCHEMA)) as other:
        put(one, "a")
        assert other.has_news()
        before = one.revision()
        assert one.write_uncounted("UPDATE word SET text = ? WHERE text = ?", "b", "a") == 1
        assert one.write_uncounted("UPDATE word SET text = ? WHERE text = ?", "c", "a") == 0
        assert words(other) == ["b"]
        assert not other.has_news()
        assert other.revision() == before
        put(one, "c")
        assert other.has_news()
        assert other.revision().number == before.number + 1


def test_changes_of_other_owners_are_no_news(place: StateLocation) -> None:
    file, other = open_database(place, SCHEMA), open_database(place, _OTHER_OWNER)
    file.has_news()
    with other.change() as data:
        data.execute("INSERT INTO pin VALUES ('k')")
    assert (file.is_behind(), file.has_news()) == (False, False)
    file.close()
    other.close()


def test_a_place_that_is_no_file_and_no_url_of_postgresql_is_refused() -> None:
    with pytest.raises(StoreError, match="no such database can hold the state") as refused:
        open_database("mysql://ann:secret@db.example/truename", SCHEMA)
    assert "secret" not in str(refused.value)


def test_the_log_that_a_long_reader_let_grow_is_cut_when_it_has_left(tmp_path: Path) -> None:
    file, log = open_database(tmp_path / "x", SCHEMA), tmp_path / "x-wal"
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


STEPS = st.sampled_from(["put", "other owner", "checkpoint", "reopen"])


@given(steps=st.lists(st.tuples(STEPS, st.integers(0, 2), st.sets(st.integers(0, 2))), max_size=30))
def test_each_connection_hears_once_of_all_that_others_wrote(steps: list[tuple[str, int, set[int]]]) -> None:
    with TemporaryDirectory() as place:
        path = Path(place) / "x"
        files = [open_database(path, SCHEMA) for _ in range(3)]
        other_owner = open_database(path, Schema("number", (("CREATE TABLE number (value INTEGER)",),)))
        has_news = [True] * len(files)
        for count, (step, number, lookers) in enumerate(steps):
            if step == "put":
                put(files[number], str(count))
                has_news = [known or at != number for at, known in enumerate(has_news)]
            elif step == "other owner":
                with other_owner.change() as data:
                    data.execute("INSERT INTO number VALUES (?)", (count,))
            elif step == "checkpoint":
                files[number].empty_log()
            else:
                files[number].close()
                files[number], has_news[number] = open_database(path, SCHEMA), True
            for looker in lookers:
                assert files[looker].has_news() is has_news[looker]
                has_news[looker] = False
        assert [file.has_news() for file in files] == has_news
        for file in (*files, other_owner):
            file.close()


def test_those_who_open_a_database_while_it_is_made_find_it_empty_or_whole(tmp_path: Path) -> None:
    def opened(path: Path) -> None:
        with closing(open_database(path, SCHEMA)) as file:
            assert words(file) == []

    with ThreadPoolExecutor(8) as threads:
        for number in range(100):
            list(threads.map(opened, [tmp_path / str(number)] * 16))

"""One look at a state database for all its owners: what counts from when on, and that nobody misses anything."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tests.support.state_database import SCHEMA, put
from truename.storage import Schema, open_database

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from truename.storage.database import Database

OTHER = Schema("other", (("CREATE TABLE other_word (text TEXT)",),))
ELSEWHERE = """
import sys
from pathlib import Path
from tests.support.state_database import SCHEMA, put
from truename.storage import open_database
put(open_database(Path(sys.argv[1]), SCHEMA), sys.argv[2])
"""


def put_elsewhere(path: Path, word: str) -> None:
    """Have another process write a word."""
    subprocess.run([sys.executable, "-c", ELSEWHERE, str(path), word], check=True)


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Database]:
    """A database that had no news a moment ago."""
    with closing(open_database(tmp_path / "x", SCHEMA)) as file:
        file.has_news()
        yield file


def test_what_another_process_wrote_counts_in_the_next_turn_of_the_loop(file: Database, tmp_path: Path) -> None:
    async def looks() -> list[bool]:
        before = file.has_news()
        put_elsewhere(tmp_path / "x", "a")
        await asyncio.sleep(0)
        return [before, file.has_news(), file.has_news()]

    assert asyncio.run(looks()) == [False, True, False]


def test_what_this_process_wrote_counts_in_the_same_turn(file: Database, tmp_path: Path) -> None:
    async def looks() -> list[bool]:
        with closing(open_database(tmp_path / "x", SCHEMA)) as writer:
            before = file.has_news()
            put(writer, "a")
            return [before, file.has_news()]

    assert asyncio.run(looks()) == [False, True]


def test_what_a_thread_wrote_counts_in_the_same_turn(file: Database, tmp_path: Path) -> None:
    async def looks() -> list[bool]:
        with closing(open_database(tmp_path / "x", SCHEMA)) as writer:
            found = []
            for word in ("a", "b", "c"):
                await asyncio.to_thread(put, writer, word)
                found += [file.has_news(), file.has_news()]
            return found

    assert asyncio.run(looks()) == [True, False] * 3


def test_a_look_ends_with_its_loop(file: Database, tmp_path: Path) -> None:
    async def look() -> bool:
        return file.has_news()

    found = []
    for word in ("a", "b"):
        put_elsewhere(tmp_path / "x", word)
        found += [asyncio.run(look()), asyncio.run(look())]
    asyncio.run(look())
    put_elsewhere(tmp_path / "x", "c")

    assert [*found, file.has_news()] == [True, False, True, False, True]


def test_owners_who_look_together_hear_of_their_own_tables(file: Database, tmp_path: Path) -> None:
    async def looks() -> list[bool]:
        await asyncio.sleep(0)
        return [file.has_news(), other.has_news()]

    with (
        closing(open_database(tmp_path / "x", OTHER)) as other,
        closing(open_database(tmp_path / "x", OTHER)) as writer,
    ):
        asyncio.run(looks())
        with writer.change() as data:
            data.execute("INSERT INTO other_word VALUES ('a')")

        assert asyncio.run(looks()) == [False, True]


def test_what_is_written_in_a_turn_is_no_news_where_the_writer_was_behind(file: Database, tmp_path: Path) -> None:
    async def looks() -> list[bool]:
        file.has_news()
        put_elsewhere(tmp_path / "x", "a")
        # The writer reads what is in the file now, and has not heard of it.
        put(file, "b")
        return [file.has_news(), file.has_news()]

    assert asyncio.run(looks()) == [True, False]


def test_a_decision_within_a_transaction_goes_by_what_is_in_the_file_now(file: Database, tmp_path: Path) -> None:
    async def look() -> bool:
        file.has_news()
        put_elsewhere(tmp_path / "x", "a")
        with file.change():
            return file.is_behind()

    assert asyncio.run(look())


def test_the_last_owner_leaves_no_log_behind(tmp_path: Path) -> None:
    async def look() -> None:
        files = [open_database(tmp_path / "x", schema) for schema in (SCHEMA, OTHER)]
        for file in files:
            file.has_news()
        for file in files:
            file.close()

    asyncio.run(look())

    assert {file.name for file in tmp_path.iterdir()} == {"x", "x.revision"}


def test_a_database_in_the_place_of_another_is_looked_at_by_itself(file: Database, tmp_path: Path) -> None:
    for path in tmp_path.iterdir():
        path.rename(path.with_name(f"former-{path.name}"))
    with (
        closing(open_database(tmp_path / "x", SCHEMA)) as new,
        closing(open_database(tmp_path / "x", SCHEMA)) as writer,
    ):
        new.has_news()
        put(writer, "a")

        assert new.has_news()

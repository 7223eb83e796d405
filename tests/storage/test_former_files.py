"""Files of earlier versions: imported once, in the transaction that makes the tables."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.support.state_database import SCHEMA, words
from truename.errors import StoreError
from truename.storage import Schema, StateLocation, Transaction, import_tables, open_database, select

if TYPE_CHECKING:
    from pathlib import Path


def test_a_failing_import_leaves_no_tables_and_the_next_start_tries_again(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("a b")

    def take(data: Transaction, former: Path) -> None:
        for text in former.read_text().split():
            data.execute("INSERT INTO word VALUES (?)", (text,))
        if "b" in former.read_text():
            raise StoreError(file=str(former), key="", problem="it is damaged", remedy="", code="corrupt")

    where = StateLocation(tmp_path / "x", {"word": tmp_path / "old"})
    for _ in range(2):
        with pytest.raises(StoreError, match="old: it is damaged"):
            open_database(where, SCHEMA, import_former=take)
    (tmp_path / "old").write_text("a")
    for _ in range(2):
        file = open_database(where, SCHEMA, import_former=take)
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
    file = open_database(where, schema, import_former=take)
    assert file.rows("SELECT text, number FROM word_seen ORDER BY number") == [("b", 1), ("a", 2)]
    file.close()
    for names, problem in (
        ({"word_seen": ("other",)}, "has no table word_seen"),
        ({"word_more": ("seen",)}, "its table seen has no column more"),
    ):
        more = Schema("word", (*schema.migrations, ("CREATE TABLE word_more (more TEXT)",)))
        with pytest.raises(StoreError, match=problem):
            open_database(replace(where, path=tmp_path / "y"), more, import_former=partial(import_tables, names=names))


def test_names_of_tables_and_columns_are_checked() -> None:
    with pytest.raises(ValueError, match="is not the name of a table or column"):
        select("word; DROP TABLE word", ("text",))


def test_what_an_earlier_version_wrote_after_the_import_is_not_passed_over(tmp_path: Path) -> None:
    former = tmp_path / "words.txt"
    location = StateLocation(tmp_path / "x", {"word": former})

    def read(data: Transaction, path: Path) -> None:
        data.executemany("INSERT INTO word VALUES (?)", [(word,) for word in path.read_text().split()])

    def opened(*, readonly: bool = False) -> list[str]:
        with closing(open_database(location, SCHEMA, readonly=readonly, import_former=read)) as file:
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
    open_database(location, SCHEMA).close()
    (tmp_path / "words.txt").write_text("a")
    with pytest.raises(StoreError, match="an earlier Truename wrote"):
        open_database(location, SCHEMA)

"""A store that keeps what it read: it reads again once others wrote, and closes its database whatever happens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from truename.storage import Schema, SharedStore, StateLocation, open_database

if TYPE_CHECKING:
    from pathlib import Path

    from truename.storage import Database

SCHEMA = Schema("word", (("CREATE TABLE word (text TEXT PRIMARY KEY)",),))


class Words(SharedStore):
    """The words on record."""

    def __init__(self, file: Database) -> None:
        self.words: list[str] = []
        self.opened = file
        super().__init__(file)

    def _read_again(self) -> None:
        self.words = [text for (text,) in self._file.rows("SELECT text FROM word ORDER BY text")]
        self._is_current = True

    def add(self, word: str) -> None:
        with self._file.change() as data:
            data.execute("INSERT INTO word (text) VALUES (?)", (word,))


class Broken(Words):
    """A store that cannot read."""

    closed = 0

    def _read_again(self) -> None:
        raise ValueError

    def close(self) -> None:
        Broken.closed += 1
        super().close()


def test_what_another_process_wrote_is_read_once(place: StateLocation) -> None:
    with Words(open_database(place, SCHEMA)) as one, Words(open_database(place, SCHEMA)) as other:
        assert (one.refresh(), one.words) == (False, [])
        other.add("read")
        assert one.has_news()
        assert (one.refresh(), one.refresh(), one.words) == (True, False, ["read"])
        assert one.path == place.path


def test_a_store_without_tables_has_nothing_and_reads_nothing(tmp_path: Path) -> None:
    file = tmp_path / "state.db"
    open_database(file, Schema("other", (("CREATE TABLE other (text TEXT PRIMARY KEY)",),))).close()
    with Words(open_database(file, SCHEMA, readonly=True)) as words:
        assert (words.refresh(), words.words) == (False, [])


def test_a_store_that_cannot_be_read_is_closed() -> None:
    with pytest.raises(ValueError, match=r"\A\Z"):
        Broken(open_database(None, SCHEMA))
    assert Broken.closed == 1

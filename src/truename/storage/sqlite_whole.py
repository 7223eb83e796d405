"""Read, check and make all tables of a state in a SQLite file at once."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from truename.errors import StoreError
from truename.files.private import make_private, sync_directory
from truename.storage.location import StateLocation
from truename.storage.revision_file import Revision, RevisionFile
from truename.storage.schema import Schema
from truename.storage.sqlite import SqliteDatabase
from truename.storage.statements import select
from truename.storage.whole import BATCH, OwnerTables

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

__all__ = ["SqliteState"]


class SqliteTables:
    """The tables of a file, in a transaction of its own."""

    def __init__(self, data: sqlite3.Connection) -> None:
        self.data = data

    @cached_property
    def revision(self) -> Revision:
        """The id of the database and the number of its changes."""
        return Revision(*self.data.execute("SELECT id, revision FROM state").fetchone())

    @cached_property
    def parts(self) -> dict[str, OwnerTables]:
        """The owners that have tables, by name."""
        return {name: OwnerTables(*row) for name, *row in self.data.execute("SELECT name, version, revision FROM part")}

    @cached_property
    def tables(self) -> tuple[str, ...]:
        """The names of the owners' tables, and of that of imported files."""
        query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT IN ('state', 'part') ORDER BY name"
        return tuple(name for (name,) in self.data.execute(query))

    def columns(self, table: str) -> tuple[str, ...]:
        """Return the names of a table's columns; none if there is no such table."""
        found = self.data.execute("SELECT name FROM pragma_table_info(?) ORDER BY cid", (table,))
        return tuple(name for (name,) in found)

    def rows(self, table: str, columns: Sequence[str]) -> Iterator[list[tuple[Any, ...]]]:
        """Yield the rows of a table, some at a time."""
        cursor = self.data.execute(select(table, columns))
        while rows := cursor.fetchmany(BATCH):
            yield rows

    def finish(self, revision: Revision, parts: dict[str, OwnerTables]) -> None:
        """Write the revisions that the state has from now on."""
        self.data.execute("UPDATE state SET id = ?, revision = ?", revision)
        rows = [(part.revision, name) for name, part in parts.items()]
        self.data.executemany("UPDATE part SET revision = ? WHERE name = ?", rows)


class SqliteState:
    """A state in a file, as a whole."""

    def __init__(self, location: StateLocation, path: Path) -> None:
        self._location = location
        self._path = path

    @contextmanager
    def snapshot(self) -> Iterator[SqliteTables]:
        """Read the state. Raises `StoreError`."""
        # It checks the file, and that no change on record is missing.
        with closing(SqliteDatabase(self._location, Schema("whole", ()), readonly=True)):
            address = f"{self._path.absolute().as_uri()}?mode=ro"
            with self._reporting(), closing(sqlite3.connect(address, uri=True, isolation_level=None)) as data:
                data.execute("BEGIN")
                yield SqliteTables(data)

    @contextmanager
    def new(self, schemas: Iterable[Schema]) -> Iterator[SqliteTables]:
        """Make a state; it exists when the block ends, and nothing of it if the block raises. Raises `StoreError`."""
        path = self._path
        if self._location.exists:
            self._refuse("it exists already", "Name another file, or move this one and its .revision away.")
        draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
        drafts = [draft.with_name(draft.name + suffix) for suffix in ("", ".revision", "-wal", "-shm")]
        with self._reporting():
            try:
                make_private(path.parent)
                for schema in schemas:
                    SqliteDatabase(StateLocation(draft), schema).close()
                with closing(sqlite3.connect(draft, isolation_level=None)) as data:
                    data.execute("BEGIN IMMEDIATE")
                    made = SqliteTables(data)
                    yield made
                    data.execute("COMMIT")
                    data.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
                    revision = Revision(*data.execute("SELECT id, revision FROM state").fetchone())
                if self._location.exists:
                    self._refuse("another program made it meanwhile", "Name another file.")
                draft.replace(path)
                sync_directory(path.parent)
                record = RevisionFile(path)
                record.write(revision)
                record.close()
            finally:
                for one in drafts:
                    one.unlink(missing_ok=True)

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            self._refuse(f"it cannot be used ({error})", "Check the disk.")
        except OSError as error:
            self._refuse(f"it cannot be used ({error.strerror or error})", "Check the path and the disk.")

    def _refuse(self, problem: str, remedy: str) -> None:
        text = f"{problem}; nothing was changed"
        raise StoreError(file=self._location.name, key="", problem=text, remedy=remedy, code="unusable")

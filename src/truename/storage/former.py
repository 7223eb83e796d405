"""Import tables from the database that an owner had for itself in an earlier version.

What was imported is recorded: an earlier version that runs again writes its own files, and nobody would read them.
"""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Final, NoReturn

from truename.errors import StoreError
from truename.storage.statements import insert, select

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from truename.storage.database import Transaction

__all__ = ["FORMER_REMEDY", "IMPORTED", "import_tables", "is_later", "record_import"]

FORMER_REMEDY: Final = "Nothing was imported: restore it from a copy, or move it away to start without it."
IMPORTED: Final = (
    "CREATE TABLE imported (part TEXT PRIMARY KEY, size INTEGER NOT NULL, time INTEGER NOT NULL, digest TEXT NOT NULL)"
)
# Earlier tables numbered their rows by SQLite's own number.
_ROW_NUMBER: Final = "number"


def record_import(data: Transaction, part: str, path: Path) -> None:
    """Record which content of a file was imported. Raises `OSError`."""
    found = path.stat()
    row = part, found.st_size, found.st_mtime_ns, _digest(path)
    data.execute(insert("imported", ("part", "size", "time", "digest")), row)


def is_later(data: Transaction, part: str, path: Path) -> bool:
    """Return whether a file has other content than was imported, or is there though none was. Raises `OSError`."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return False
    if not data.execute("SELECT count(*) FROM sqlite_master WHERE name = 'imported'").fetchone()[0]:
        return False
    imported = data.execute(select("imported", ("size", "time", "digest"), where=("part",)), (part,)).fetchone()
    if imported is None:
        return True
    size, time, digest = imported
    # A copy of the directory has other times.
    return bool(size != found.st_size or (time != found.st_mtime_ns and digest != _digest(path)))


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def import_tables(data: Transaction, path: Path, names: Mapping[str, Sequence[str]]) -> None:
    """Insert the rows of an earlier database, which stays as it is.

    ``names`` gives for each table the names that it has had. Raises `StoreError` if the database is damaged or has
    other tables.
    """
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)) as former:
            if former.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",):
                _refuse(path, "it is damaged")
            for table, candidates in names.items():
                _import_table(data, former, table, candidates, path)
    except sqlite3.DatabaseError as error:
        _refuse(path, f"it is damaged ({error})", error)


def _import_table(
    data: Transaction, former: sqlite3.Connection, table: str, candidates: Sequence[str], path: Path
) -> None:
    columns = _columns(data, table)
    there = {name: found for name in candidates if (found := _columns(former, name))}
    if not there:
        _refuse(path, f"it has no table {table}")
    name, found = next(iter(there.items()))
    # Later migrations add columns, which have a default.
    wanted = [column for column, default in columns.items() if column in found or default is None]
    if missing := [column for column in wanted if column not in (*found, _ROW_NUMBER)]:
        _refuse(path, f"its table {name} has no column {missing[0]}")
    read = [column if column in found else "rowid" for column in wanted]
    data.executemany(insert(table, wanted), former.execute(select(name, read)))


def _columns(data: Transaction, table: str) -> dict[str, str | None]:
    """Return the columns of a table, each with its default."""
    return dict(data.execute("SELECT name, dflt_value FROM pragma_table_info(?) ORDER BY cid", (table,)).fetchall())


def _refuse(path: Path, problem: str, cause: Exception | None = None) -> NoReturn:
    raise StoreError(file=str(path), key="", problem=problem, remedy=FORMER_REMEDY, code="corrupt") from cause

"""One file of state: opened with care, changed whole or not at all, and every fault of it a typed error.

A file that is damaged, of a later version or another program's is refused and left as it is: whoever would begin it
anew would forget what was trusted, granted or revoked.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from truename.errors import StoreError
from truename.files.private import make_private

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Schema", "StateFile"]

_PATIENCE: Final = 5.0
_LEAST: Final = 512
_OPEN: Final = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)


@dataclass(frozen=True)
class Schema:
    """What stands in a file: the number of its version, and the statements that make it."""

    version: int
    statements: tuple[str, ...]


class StateFile:
    """An SQLite file that processes and threads share; without a path one in memory.

    All methods raise `StoreError`: ``corrupt`` (damaged, or another program's), ``newer`` (of a later version),
    ``busy`` (another process is writing for longer than five seconds), ``unusable`` (path or disk).
    """

    def __init__(self, path: str | Path | None, schema: Schema) -> None:
        self.path = None if path is None else Path(path)
        self._schema = schema
        self._lock = threading.RLock()
        self._version = -1
        self._was_behind = False
        self._place = (-1, -1)
        with self.told():
            self._data = self._opened()

    def _opened(self) -> sqlite3.Connection:
        if self.path is not None:
            make_private(self.path.parent)
            # Made with its mode before SQLite makes it with another; a link is not followed to somebody's file.
            descriptor = os.open(self.path, _OPEN, 0o600)
            found = os.fstat(descriptor)
            os.close(descriptor)
            if not stat.S_ISREG(found.st_mode):
                self.refuse("it is no file", "unusable", "Check the path.")
            size, self._place = found.st_size, (found.st_dev, found.st_ino)
            # SQLite begins a file anew of which it can't read one page.
            if 0 < size < _LEAST:
                self.refuse("it is damaged (cut off)")
        where = self.path or ":memory:"
        data = sqlite3.connect(where, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
        try:
            data.execute("PRAGMA trusted_schema = OFF")
            data.execute("PRAGMA secure_delete = ON")
            with _whole(data):
                self._check(data)
        except BaseException:
            data.close()
            raise
        return data

    def _check(self, data: sqlite3.Connection) -> None:
        (version,) = data.execute("PRAGMA user_version").fetchone()
        if version > self._schema.version:
            self.refuse(f"it was written by a newer Truename (format {version})", "newer", "Upgrade Truename.")
        if version == 0:
            if data.execute("SELECT count(*) FROM sqlite_master").fetchone() != (0,):
                self.refuse("it is another program's")
            for statement in self._schema.statements:
                data.execute(statement)
            data.execute(f"PRAGMA user_version = {self._schema.version}")
        # The quick check does not look whether an index has what its table has: what is looked up would not be there.
        elif data.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",):
            self.refuse("it is damaged")
        # Nor does any check look whether the tables are those that were made: a column may have another name.
        elif _made(data) != {_plain(statement) for statement in self._schema.statements}:
            self.refuse("it is damaged (its tables are not those that were made)")

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """Return the rows that a query finds."""
        with self.told():
            return self._data.execute(query, values).fetchall()

    @contextmanager
    def change(self) -> Iterator[sqlite3.Connection]:
        """Keep everybody else out while the block lasts; what it does is done whole, or if it raises not at all."""
        with self.told(), _whole(self._data):
            self._was_behind = self._is_other()
            yield self._data

    def has_news(self) -> bool:
        """Tell whether another process changed the file since this was asked last: a look at one number.

        The first time it is always so; changes that were made here are no news. Raises `StoreError` (``unusable``)
        where another file has been put into its place, or none is there any more: what others write is not read then.
        """
        with self.told():
            if self._is_moved():
                self._refuse_moved()
            (version,) = self._data.execute("PRAGMA data_version").fetchone()
            before, self._version = self._version, version
            return bool(before != version)

    def is_behind(self) -> bool:
        """Tell whether `has_news` would find any, without waiting for a thread that changes the file."""
        if not self._lock.acquire(blocking=False):
            # Who changes it looked, and keeps all others out.
            return self._was_behind
        try:
            return self._is_other()
        except sqlite3.Error:
            # `has_news` says what is wrong.
            return True
        finally:
            self._lock.release()

    def _is_other(self) -> bool:
        (version,) = self._data.execute("PRAGMA data_version").fetchone()
        return bool(version != self._version)

    def _is_moved(self) -> bool:
        if self.path is None:
            return False
        try:
            # It is asked for each look.
            found = os.stat(self.path)  # noqa: PTH116
        except FileNotFoundError:
            return True
        return (found.st_dev, found.st_ino) != self._place

    def _refuse_moved(self) -> NoReturn:
        remedy = "Restart what uses it, with the file that is meant in its place."
        self.refuse("it was moved, removed or replaced while it was in use", "unusable", remedy)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._data.close()

    @contextmanager
    def told(self) -> Iterator[None]:
        """Keep other threads out, and say what is wrong with the file."""
        with self._lock:
            try:
                yield
            except sqlite3.OperationalError as error:
                if "locked" in str(error) or "busy" in str(error):
                    self.refuse("another process is writing", "busy", "Try again.")
                if "readonly" in str(error) and self._is_moved():
                    self._refuse_moved()
                self.refuse(f"it can't be used ({error})", "unusable", "Check the path and the disk.")
            except sqlite3.DatabaseError as error:
                self.refuse(f"it is damaged ({error})")
            except UnicodeError:
                # Of its own schema, which SQLite repeats in an error.
                self.refuse("it is damaged (what should be text is none)")
            except OSError as error:
                if error.errno == errno.ELOOP:
                    self.refuse("it is a link, which is not followed", "unusable", "Name the file itself.")
                self.refuse(f"it can't be used ({error.strerror or error})", "unusable", "Check the path and the disk.")

    def refuse(self, problem: str, code: str = "corrupt", remedy: str = "Restore it from a copy.") -> NoReturn:
        """Raise `StoreError` about this file."""
        where = "memory" if self.path is None else str(self.path)
        raise StoreError(file=where, key="", problem=f"{problem}; nothing was changed", remedy=remedy, code=code)


def _made(data: sqlite3.Connection) -> set[str]:
    return {_plain(sql) for (sql,) in data.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")}


def _plain(statement: str) -> str:
    return " ".join(statement.split())


@contextmanager
def _whole(data: sqlite3.Connection) -> Iterator[None]:
    data.execute("BEGIN IMMEDIATE")
    try:
        yield
        data.execute("COMMIT")
    except BaseException:
        # One that others keep from its end is open still, and would keep all others out; on a full disk SQLite itself
        # has taken it back.
        if data.in_transaction:
            data.execute("ROLLBACK")
        raise

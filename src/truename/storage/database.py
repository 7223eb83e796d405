"""Open the state database, change it in short transactions, and refuse one that lost what was written.

The database is one SQLite file in WAL mode. Each owner (the ledger, pins, approvals, ...) has tables of its own, made
by numbered migrations, and opens the file through its own `Database`. Readers never wait for writers.
"""

from __future__ import annotations

import errno
import os
import secrets
import sqlite3
import stat
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from truename.errors import StoreError
from truename.files.mounts import network_file_system
from truename.files.private import make_private
from truename.storage.revision_file import Revision, RevisionFile

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["PATIENCE", "Database", "Schema"]

# How many seconds a program waits for another process's transaction, if it may wait at all.
PATIENCE: Final = 5.0
_PAUSE: Final = 0.01
_LEAST: Final = 512
# Checking every page takes a time that grows with the file: what is larger is checked by `truename state check`.
_CHECKED_AT_ONCE: Final = 4 * 1024 * 1024
_APPLICATION: Final = 0x54724E6D
_OPEN: Final = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
_ENGINE: Final = (
    "CREATE TABLE state (id TEXT NOT NULL, revision INTEGER NOT NULL)",
    "CREATE TABLE part (name TEXT PRIMARY KEY, version INTEGER NOT NULL, revision INTEGER NOT NULL)",
)
_RESTORE: Final = "Restore it from a copy."
_NO_WRITES: Final = (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EDQUOT)


@dataclass(frozen=True)
class Schema:
    """The tables of one owner: the owner's name, and the statements of each migration, oldest first.

    SQL in the subset that SQLite and PostgreSQL share. A migration that was released is never edited.
    """

    part: str
    migrations: tuple[tuple[str, ...], ...]


class Database:
    """One owner's tables in a state database that processes and threads share; without a path, in memory.

    All methods raise `StoreError`: ``corrupt`` (damaged, older than what was seen, or another program's), ``newer``
    (of a later version), ``busy`` (another process is writing for longer than ``patience`` seconds), ``unusable``
    (path, file system or disk). Nothing is changed then.

    A database that cannot be written (a full disk, read-only) is opened for reading: `readonly_because` says why, and
    `change` tries again.
    """

    def __init__(
        self, path: str | Path | None, schema: Schema, *, patience: float = PATIENCE, readonly: bool = False
    ) -> None:
        self.path = None if path is None else Path(path)
        self.readonly_because = "it was opened for reading" if readonly else ""
        self._schema = schema
        self._patience = patience
        self._readonly = readonly
        self._lock = threading.RLock()
        self._depth = 0
        self._version = -1
        self._revision = -1
        self._was_behind = False
        self._place = (-1, -1)
        self._id = ""
        # Whether this owner's tables are there: a database that is only read may be without them.
        self.is_begun = False
        self._beside = None if self.path is None else RevisionFile(self.path)
        with self.told(), self._told_of_disk():
            self._data = self._opened()

    def _opened(self) -> sqlite3.Connection:
        if self.path is None:
            return self._connected(":memory:")
        if not self.path.exists() and not self.path.is_symlink() and (known := self._known()) is not None:
            self._refuse_lost("it is missing", known)
        if kind := network_file_system(self.path.parent):
            remedy = "Move the state to a local disk."
            self.refuse(f"it is on a network file system ({kind}), where SQLite can lose data", "unusable", remedy)
        if not self._readonly:
            try:
                return self._connected(self._made_private())
            except OSError as error:
                if error.errno not in _NO_WRITES or not self.path.is_file():
                    raise
                self.readonly_because = error.strerror or str(error)
            except sqlite3.OperationalError as error:
                if not _is_about_writing(error):
                    raise
                self.readonly_because = str(error)
        return self._connected_for_reading()

    def _made_private(self) -> str:
        assert self.path is not None  # noqa: S101 - `_opened` asks
        make_private(self.path.parent)
        # The file gets its mode before SQLite opens it; a symbolic link is not followed to another's file.
        descriptor = os.open(self.path, _OPEN, 0o600)
        found = os.fstat(descriptor)
        os.close(descriptor)
        self._look_at(found)
        return str(self.path)

    def _connected_for_reading(self) -> sqlite3.Connection:
        assert self.path is not None  # noqa: S101 - `_opened` asks
        self._look_at(os.lstat(self.path))
        address = self.path.absolute().as_uri()
        # A WAL database needs shared memory, which is a file. Where none can be made, SQLite keeps it to itself if it
        # has the database for itself, or needs none if nobody wrote since the last checkpoint.
        ways = ["mode=ro"] if self._readonly else ["mode=ro", "mode=rw"]
        beside = self.path.with_name(f"{self.path.name}-wal")
        if not beside.exists() or not beside.stat().st_size:
            ways.append("immutable=1")
        for way in ways[:-1]:
            with suppress(sqlite3.OperationalError):
                return self._connected(f"{address}?{way}")
        return self._connected(f"{address}?{ways[-1]}")

    def _look_at(self, found: os.stat_result) -> None:
        if stat.S_ISLNK(found.st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if not stat.S_ISREG(found.st_mode):
            self.refuse("it is not a file", "unusable", "Check the path.")
        # SQLite takes a file that is shorter than its header for an empty one.
        if 0 < found.st_size < _LEAST:
            self.refuse("it is damaged (cut off)")
        self._place = found.st_dev, found.st_ino
        if found.st_size == 0 and (known := self._known()) is not None:
            self._refuse_lost("it is empty", known)

    def _known(self) -> Revision | None:
        return None if self._beside is None else self._beside.read()

    def _refuse_lost(self, problem: str, known: Revision) -> NoReturn:
        assert self._beside is not None  # noqa: S101 - it was read
        remedy = (
            f"Restore it from a copy. To go on without what is lost (names may then mean other tools), "
            f"delete {self._beside.path}."
        )
        self.refuse(f"{problem}, but it had {known.number:,} changes", "corrupt", remedy)

    def _connected(self, where: str) -> sqlite3.Connection:
        data = sqlite3.connect(
            where, timeout=self._patience, isolation_level=None, check_same_thread=False, uri=where.startswith("file:")
        )
        try:
            if where.endswith("?mode=rw"):
                # Before anything is read: what reads first asks for shared memory.
                data.execute("PRAGMA locking_mode = EXCLUSIVE")
                data.execute("PRAGMA query_only = ON")
            data.execute("PRAGMA trusted_schema = OFF")
            data.execute("PRAGMA secure_delete = ON")
            data.execute("PRAGMA synchronous = FULL")
            self._prepare(data, is_writable=not where.startswith("file:"))
        except BaseException:
            data.close()
            raise
        return data

    def _prepare(self, data: sqlite3.Connection, *, is_writable: bool) -> None:
        """Check what the file is, and bring this owner's tables to the present version."""
        (application,) = data.execute("PRAGMA application_id").fetchone()
        (tables,) = data.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if application != _APPLICATION and tables:
            self.refuse("it is not a state database of Truename")
        (pages,), (size,) = (data.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "page_size"))
        is_small = pages * size <= _CHECKED_AT_ONCE
        if tables and is_small and data.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",):
            self.refuse("it is damaged")
        version = self._version_in(data) if tables else 0
        if version > len(self._schema.migrations):
            problem = f"it was written by a newer Truename ({self._schema.part} {version})"
            self.refuse(problem, "newer", "Upgrade Truename.")
        if tables and version and _made(data, self._schema.part) != _expected(self._schema, version):
            self.refuse("it is damaged (its tables are not those that were made)")
        if is_writable:
            self._use_wal(data)
            if version < len(self._schema.migrations):
                with self._whole(data):
                    self._migrate(data)
        elif 0 < version < len(self._schema.migrations):
            problem = f"it was written by an older Truename ({self._schema.part} {version})"
            self.refuse(problem, "unusable", "Start the gateway once, which upgrades it.")
        self.is_begun = is_writable or version > 0
        self._check_revision(data)

    def _use_wal(self, data: sqlite3.Connection) -> None:
        """Switch to WAL mode; SQLite does not itself wait for another process that does the same."""
        deadline = time.monotonic() + max(self._patience, PATIENCE)
        while True:
            try:
                data.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                if not _is_locked(error) or time.monotonic() > deadline:
                    raise
                time.sleep(_PAUSE)
            else:
                return

    def _version_in(self, data: sqlite3.Connection) -> int:
        found = data.execute("SELECT version FROM part WHERE name = ?", (self._schema.part,)).fetchone()
        return 0 if found is None else int(found[0])

    def _migrate(self, data: sqlite3.Connection) -> None:
        """Run the migrations that are missing; another process may have run them meanwhile."""
        if data.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,):
            for statement in _ENGINE:
                data.execute(statement)
            data.execute("INSERT INTO state VALUES (?, 0)", (secrets.token_hex(16),))
            data.execute(f"PRAGMA application_id = {_APPLICATION}")
        begun = self._version_in(data)
        for statements in self._schema.migrations[begun:]:
            for statement in statements:
                data.execute(statement)
        data.execute(
            "INSERT INTO part VALUES (?, ?, 0) ON CONFLICT (name) DO UPDATE SET version = excluded.version",
            (self._schema.part, len(self._schema.migrations)),
        )

    def _check_revision(self, data: sqlite3.Connection) -> None:
        """Refuse a database that is not the one, or not as far, as the file beside it remembers."""
        if self._beside is None or not data.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            return
        # In this order: whoever writes meanwhile writes the database first.
        known = self._known()
        present = Revision(*data.execute("SELECT id, revision FROM state").fetchone())
        self._id = present.database
        if known is None:
            if not self._readonly:
                self._beside.write(present)
        elif known.database != present.database:
            self._refuse_lost("another database was put in its place", known)
        elif known.number > present.number:
            self._refuse_lost(f"it has {present.number:,} changes", known)

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """Return the rows that a query finds."""
        with self.told():
            return self._data.execute(query, values).fetchall()

    @contextmanager
    def change(self) -> Iterator[sqlite3.Connection]:
        """Keep every other writer out during the block; commit it whole, or if it raises nothing of it.

        May be entered again inside itself: the outermost block commits.
        """
        with self.told():
            if self._depth:
                yield self._data
                return
            if self.readonly_because and not self._readonly:
                self._reopen()
            # SQLite would go on writing into a file that has no name any more.
            if self._is_moved():
                self._refuse_moved()
            with self._whole(self._data):
                self._was_behind = self._is_other()
                self._depth += 1
                try:
                    yield self._data
                finally:
                    self._depth -= 1

    def _reopen(self) -> None:
        """Try to write again: the disk may have room by now."""
        self.readonly_because = ""
        # One that has the file for itself would keep the next one out.
        self._data.close()
        with self._told_of_disk():
            self._data = self._opened()
        self._version = -1

    @contextmanager
    def _whole(self, data: sqlite3.Connection) -> Iterator[None]:
        before = data.total_changes
        data.execute("BEGIN IMMEDIATE")
        try:
            yield
            number = -1
            if data.total_changes != before:
                ((number,),) = data.execute("UPDATE state SET revision = revision + 1 RETURNING revision").fetchall()
                self._count(data)
            data.execute("COMMIT")
        except BaseException:
            # On a full disk SQLite itself has rolled back.
            if data.in_transaction:
                with suppress(sqlite3.Error):
                    data.execute("ROLLBACK")
            raise
        if number >= 0 and self._beside is not None and self._id:
            self._beside.write(Revision(self._id, number))

    def _count(self, data: sqlite3.Connection) -> None:
        """Count a change of this owner's tables; it is no news here, unless there was news before it."""
        query = "UPDATE part SET revision = revision + 1 WHERE name = ? RETURNING revision"
        for (revision,) in data.execute(query, (self._schema.part,)).fetchall():
            if self._revision == revision - 1:
                self._revision = revision

    def has_news(self) -> bool:
        """Tell whether another process, or another `Database`, changed this owner's tables since the last call.

        The first time it is always so. It reads one number when nothing changed. Raises `StoreError` (``unusable``)
        if the file was moved, removed or replaced: what others write would not be seen.
        """
        with self.told():
            if self._is_moved():
                self._refuse_moved()
            (version,) = self._data.execute("PRAGMA data_version").fetchone()
            if version == self._version:
                return False
            before, self._revision = self._revision, self._revision_in_file()
            is_first, self._version = self._version < 0, version
            return is_first or before != self._revision

    def _revision_in_file(self) -> int:
        ((revision,),) = self._data.execute(
            "SELECT coalesce(max(revision), -1) FROM part WHERE name = ?", (self._schema.part,)
        ).fetchall()
        return int(revision)

    def is_behind(self) -> bool:
        """Tell whether `has_news` may find any, without waiting for a thread that changes the file."""
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
            # It is asked before each look.
            found = os.stat(self.path)  # noqa: PTH116
        except FileNotFoundError:
            return True
        return (found.st_dev, found.st_ino) != self._place

    def _refuse_moved(self) -> NoReturn:
        remedy = "Put it back, and restart the program that uses it."
        self.refuse("it was moved, removed or replaced while it was in use", "unusable", remedy)

    def is_busy(self) -> bool:
        """Tell, without waiting, whether another process is writing now."""
        if self.readonly_because or not self._lock.acquire(blocking=False):
            return False
        try:
            if self._depth:
                return False
            self._data.execute("PRAGMA busy_timeout = 0")
            self._data.execute("BEGIN IMMEDIATE")
            self._data.execute("ROLLBACK")
        except sqlite3.OperationalError as error:
            return _is_locked(error)
        else:
            return False
        finally:
            self._data.execute(f"PRAGMA busy_timeout = {round(self._patience * 1_000)}")
            self._lock.release()

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._data.close()
            if self._beside is not None:
                self._beside.close()

    @contextmanager
    def told(self) -> Iterator[None]:
        """Keep other threads out, and raise what SQLite reports as `StoreError`."""
        with self._lock:
            try:
                yield
            except sqlite3.OperationalError as error:
                if _is_locked(error):
                    self.refuse("another process is writing", "busy", "Try again.")
                self.refuse(f"it can't be used ({error})", "unusable", "Check the path and the disk.")
            except sqlite3.DatabaseError as error:
                self.refuse(f"it is damaged ({error})")

    @contextmanager
    def _told_of_disk(self) -> Iterator[None]:
        try:
            yield
        except UnicodeError:
            # SQLite repeats its own schema in an error.
            self.refuse("it is damaged (text is not UTF-8)")
        except OSError as error:
            if error.errno == errno.ELOOP:
                self.refuse("it is a symbolic link", "unusable", "Name the file itself.")
            self.refuse(f"it can't be used ({error.strerror or error})", "unusable", "Check the path and the disk.")

    def refuse(self, problem: str, code: str = "corrupt", remedy: str = _RESTORE) -> NoReturn:
        """Raise `StoreError` about this file."""
        where = "memory" if self.path is None else str(self.path)
        raise StoreError(file=where, key="", problem=f"{problem}; nothing was changed", remedy=remedy, code=code)


def _is_locked(error: sqlite3.OperationalError) -> bool:
    return "locked" in str(error) or "busy" in str(error)


def _is_about_writing(error: sqlite3.OperationalError) -> bool:
    text = str(error)
    return any(word in text for word in ("readonly", "full", "unable to open", "disk I/O error"))


def _made(data: sqlite3.Connection, part: str) -> dict[str, str]:
    """Return the statements that made an owner's tables and indexes; their names begin with the owner's."""
    query = (
        "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL AND (tbl_name = ? OR tbl_name LIKE ? ESCAPE '\\')"
    )
    return {name: " ".join(sql.split()) for name, sql in data.execute(query, (part, f"{part}\\_%"))}


@lru_cache(maxsize=64)
def _expected(schema: Schema, version: int) -> dict[str, str]:
    data = sqlite3.connect(":memory:")
    try:
        for statements in schema.migrations[:version]:
            for statement in statements:
                data.execute(statement)
        return _made(data, schema.part)
    finally:
        data.close()

"""Open the state database, change it in short transactions, and refuse one that lost recorded changes.

The database is one SQLite file in WAL mode. Each owner has its own connection. Readers never wait for writers.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
import threading
import time
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NoReturn

from truename.errors import StoreError
from truename.files.mounts import network_file_system
from truename.files.private import make_private
from truename.storage.former import IMPORTED, is_later, record_import
from truename.storage.patience import LOOP_PATIENCE, PATIENCE, is_in_loop
from truename.storage.revision_file import Revision, RevisionFile, latest_revision
from truename.storage.watch import forget_look, inode_of, watch
from truename.storage.write_ahead_log import is_foreign_log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from truename.storage.database import Transaction
    from truename.storage.location import StateLocation
    from truename.storage.schema import Schema
    from truename.storage.watch import FileWatch

__all__ = ["SqliteDatabase"]

_PAUSE: Final = 0.005
# The smallest SQLite database.
_MIN_SIZE: Final = 512
# Checking every page takes a time that grows with the file; `truename state check` checks larger ones.
_CHECKED_WHEN_OPENED: Final = 4 * 1024 * 1024
_LONGEST_LOG: Final = 16 * 1024 * 1024
_APPLICATION: Final = 0x54724E6D
_CREATE: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
# Two threads that create a file at once: closing a descriptor of it ends the locks that SQLite has by another one.
_CREATING: Final = threading.Lock()
_ENGINE: Final = (
    "CREATE TABLE state (id TEXT NOT NULL, revision INTEGER NOT NULL)",
    "CREATE TABLE part (name TEXT PRIMARY KEY, version INTEGER NOT NULL, revision INTEGER NOT NULL)",
    IMPORTED,
)
_RESTORE: Final = "Restore it from a copy."
_NO_WRITES: Final = (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EDQUOT)


class SqliteDatabase:
    """One owner's tables in a SQLite file, or in memory: a `Database`."""

    def __init__(
        self,
        location: StateLocation,
        schema: Schema,
        *,
        patience: float = PATIENCE,
        readonly: bool = False,
        checks_revision: bool = True,
        import_former: Callable[[Transaction, Path], object] | None = None,
    ) -> None:
        self.location = location
        # A program may change its working directory.
        self.path = None if self.location.path is None else self.location.path.absolute()
        self._file = None if self.path is None else str(self.path)
        self.readonly_because = "it was opened for reading" if readonly else ""
        # Whether this owner's tables exist: they may not, in a database that is only read.
        self.is_begun = False
        self._schema = schema
        self._patience = patience
        self._readonly = readonly
        self._checks_revision = checks_revision
        self._import = import_former
        self._lock = threading.RLock()
        self._depth = 0
        self._version = -1
        self._revision = -1
        self._was_behind = False
        # How many rows the connection had changed when its transaction began.
        self._before = 0
        self._inode = (-1, -1)
        self._watch: FileWatch | None = None
        self._id = ""
        self._revision_file = None if self.path is None else RevisionFile(self.path)
        self._is_opened = False
        with self._reporting(), self._reporting_path():
            self._data = self._opened()
        self._is_opened = True

    @property
    def _opening_patience(self) -> float:
        """How many seconds to wait when the file is opened: a program that starts serves nobody yet."""
        return LOOP_PATIENCE if self._is_opened and is_in_loop() else PATIENCE

    def _opened(self) -> sqlite3.Connection:
        path = self.path
        if path is None:
            return self._connected(":memory:")
        if not path.exists() and not path.is_symlink() and (known := self._known()) is not None:
            self._refuse_lost("it is missing", known)
        if kind := network_file_system(path.parent):
            remedy = "Move the state to a local disk."
            self.refuse(f"it is on a network file system ({kind}), where SQLite can lose data", "unusable", remedy)
        if not self._readonly:
            try:
                self._create(path)
                self._inspect(path)
                return self._connected(str(path))
            except OSError as error:
                if error.errno not in _NO_WRITES or not path.is_file():
                    raise
                self.readonly_because = error.strerror or str(error)
            except sqlite3.OperationalError as error:
                if not _is_about_writing(error):
                    raise
                self.readonly_because = str(error)
        self._inspect(path)
        return self._connected_for_reading(path)

    def _create(self, path: Path) -> None:
        """Create the file with its mode before SQLite opens it. Raises `OSError` for one that cannot be written."""
        make_private(path.parent)
        with _CREATING, suppress(FileExistsError):
            os.close(os.open(path, _CREATE, 0o600))
        if not path.is_symlink() and not os.access(path, os.W_OK):
            raise OSError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    def _connected_for_reading(self, path: Path) -> sqlite3.Connection:
        address = path.absolute().as_uri()
        # A WAL database needs shared memory, which is a file. Where none can be made, SQLite keeps it in this process
        # if it has the database for itself, and needs none if nobody wrote since the last checkpoint.
        modes = ["mode=ro"] if self._readonly else ["mode=ro", "mode=rw"]
        log = path.with_name(f"{path.name}-wal")
        if not log.exists() or not log.stat().st_size:
            modes.append("immutable=1")
        for mode in modes[:-1]:
            with suppress(sqlite3.OperationalError):
                return self._connected(f"{address}?{mode}")
        return self._connected(f"{address}?{modes[-1]}")

    def _inspect(self, path: Path) -> None:
        """Refuse a file that is not a database, an emptied database, and a write-ahead log of another database."""
        found = path.lstat()
        if stat.S_ISLNK(found.st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if not stat.S_ISREG(found.st_mode):
            self.refuse("it is not a file", "unusable", "Check the path.")
        # SQLite takes a file that is shorter than its header for an empty one.
        if 0 < found.st_size < _MIN_SIZE:
            self.refuse("it is damaged (cut off)")
        self._inode = found.st_dev, found.st_ino
        if found.st_size == 0 and (known := self._known()) is not None:
            self._refuse_lost("it is empty", known)
        if found.st_size and is_foreign_log(path):
            remedy = (
                f"Put back the database that the log belongs to, or move {path.name}-wal and {path.name}-shm away "
                "while no program uses them."
            )
            self.refuse(f"the write-ahead log beside it ({path.name}-wal) belongs to another file", "corrupt", remedy)

    def _known(self) -> Revision | None:
        """Return the latest recorded revision: from the file beside the database, else from the audit log."""
        if not self._checks_revision:
            return None
        beside = None if self._revision_file is None else self._revision_file.read()
        return latest_revision(beside, self.location.known)

    def _refuse_lost(self, problem: str, known: Revision) -> NoReturn:
        # What the audit log has on record is accepted there too, which takes the configuration that names the log.
        of = self.path if self.location.known is None else "CONFIGURATION` with the gateway's file"
        remedy = (
            "Restore it from a copy. To go on without the lost changes (names may then mean other tools), run "
            f"`truename state accept {of}{'`' if self.location.known is None else ''}."
        )
        self.refuse(f"{problem}, but it had {known.changes}", "corrupt", remedy)

    def _connected(self, where: str) -> sqlite3.Connection:
        is_uri, patience = where.startswith("file:"), self._opening_patience
        data = sqlite3.connect(where, timeout=patience, isolation_level=None, check_same_thread=False, uri=is_uri)
        try:
            if where.endswith("?mode=rw"):
                # Before anything is read: the first read asks for shared memory.
                data.execute("PRAGMA locking_mode = EXCLUSIVE")
                data.execute("PRAGMA query_only = ON")
            data.execute("PRAGMA trusted_schema = OFF")
            data.execute("PRAGMA secure_delete = ON")
            data.execute("PRAGMA synchronous = FULL")
            # A reader that stayed long lets the log grow; it is cut when it is begun again.
            data.execute(f"PRAGMA journal_size_limit = {_LONGEST_LOG}")
            self._prepare(data, is_writable=not is_uri)
            # Readers wait for nobody, and `_begin` waits itself.
            data.execute(f"PRAGMA busy_timeout = {round(LOOP_PATIENCE * 1_000)}")
        except BaseException:
            data.close()
            raise
        return data

    def _prepare(self, data: sqlite3.Connection, *, is_writable: bool) -> None:
        """Check the file, and bring this owner's tables to the present version."""
        # In this order: whoever makes the tables meanwhile sets the application's id in the same transaction.
        (tables,) = data.execute("SELECT count(*) FROM sqlite_master").fetchone()
        (application,) = data.execute("PRAGMA application_id").fetchone()
        if application != _APPLICATION and tables:
            self.refuse("it is not a state database of Truename")
        (pages,), (size,) = (data.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "page_size"))
        is_small = pages * size <= _CHECKED_WHEN_OPENED
        if tables and is_small and data.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",):
            self.refuse("it is damaged")
        version = self._version_in(data) if tables else 0
        if version > self._schema.version + 1:
            problem = f"it was written by a newer Truename ({self._schema.part} {version})"
            self.refuse(problem, "newer", "Upgrade Truename.")
        is_known = 0 < version <= self._schema.version
        if tables and is_known and _made(data, self._schema.part) != _expected(self._schema, version):
            self.refuse("it is damaged (its tables are not those that were made)")
        self._check_revision(data)
        former = self.location.former.get(self._schema.part)
        if version and former is not None and is_later(data, self._schema.part, former):
            problem = f"an earlier Truename wrote {former} after it was imported"
            remedy = (
                f"Move {former} away to go on without what was written there since (names may then mean other tools)."
            )
            self.refuse(problem, "corrupt", remedy)
        if is_writable:
            self._use_wal(data)
            if version < self._schema.version:
                with self._transaction(data, self._opening_patience):
                    self._migrate(data)
        elif 0 < version < self._schema.version:
            problem = f"it was written by an older Truename ({self._schema.part} {version})"
            self.refuse(problem, "unusable", "Start the gateway once, which upgrades it.")
        self.is_begun = is_writable or version > 0
        self._check_revision(data)

    def _use_wal(self, data: sqlite3.Connection) -> None:
        """Switch to WAL mode; SQLite itself does not wait for another process that does the same."""
        deadline = time.monotonic() + self._opening_patience
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
        """Run the missing migrations; another process may have run them meanwhile."""
        if data.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,):
            for statement in _ENGINE:
                data.execute(statement)
            data.execute("INSERT INTO state VALUES (?, 0)", (os.urandom(16).hex(),))
            data.execute(f"PRAGMA application_id = {_APPLICATION}")
        part, begun = self._schema.part, self._version_in(data)
        for statements in self._schema.migrations[begun:]:
            for statement in statements:
                data.execute(statement)
        former = self.location.former.get(part)
        if not begun and self._import is not None and former is not None and former.exists():
            self._import(data, former)
            record_import(data, part, former)
        data.execute(
            "INSERT INTO part VALUES (?, ?, 0) ON CONFLICT (name) DO UPDATE SET version = excluded.version",
            (part, max(begun, self._schema.version)),
        )

    def _check_revision(self, data: sqlite3.Connection) -> None:
        """Refuse a database that is not the recorded one, or lacks recorded changes."""
        if self._revision_file is None:
            return
        # In this order: a writer writes the database first, the file beside it second.
        known = self._known()
        if not data.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            if known is not None:
                self._refuse_lost("it is empty", known)
            return
        present = Revision(*data.execute("SELECT id, revision FROM state").fetchone())
        self._id = present.database
        if known is not None and known.database != present.database:
            self._refuse_lost("another database was put in its place", known)
        if known is not None and known.number > present.number:
            self._refuse_lost(f"it has {present.changes}", known)
        if not self._readonly and self._revision_file.read() is None:
            self._revision_file.write(present)

    @property
    def silence(self) -> float:
        """How many seconds ago the database answered last: a file always answers."""
        return 0.0

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """Return the rows that a query finds."""
        with self._reporting(), self._lock:
            return self._data.execute(query, values).fetchall()

    def revision(self) -> Revision:
        """Return the id of the database and the number of its changes."""
        return Revision(*self.rows("SELECT id, revision FROM state")[0])

    @contextmanager
    def change(self) -> Iterator[sqlite3.Connection]:
        """Lock out other writers during the block; commit all its changes, or none if it raises.

        May be entered again inside itself: the outermost block commits.
        """
        with self._reporting(), self._turn():
            if self._depth:
                yield self._data
                return
            try:
                self._was_behind = self._is_changed_by_others()
                self._depth += 1
                try:
                    yield self._data
                finally:
                    self._depth -= 1
                self._commit(self._data)
            except BaseException:
                _roll_back(self._data)
                raise

    def write_uncounted(self, query: str, *values: object) -> int:
        """Execute one statement outside of `change`, and return the number of changed rows."""
        with self._reporting(), self._turn():
            try:
                count = self._data.execute(query, values).rowcount
                if not self._depth:
                    self._data.execute("COMMIT")
            except BaseException:
                if not self._depth:
                    _roll_back(self._data)
                raise
            return count

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Begin a transaction, unless this thread is in one; other threads wait until the block ends.

        Threads that read need not wait while this one waits for another process.
        """
        deadline = time.monotonic() + (min(self._patience, LOOP_PATIENCE) if is_in_loop() else self._patience)
        while True:
            with self._lock:
                if self._depth or self._began(is_last_try=time.monotonic() >= deadline):
                    yield
                    return
            time.sleep(_PAUSE)

    def _began(self, *, is_last_try: bool) -> bool:
        # SQLite would go on writing into a file that has lost its name.
        if self._is_moved():
            self._refuse_moved()
        if self.readonly_because and not self._readonly:
            self._reopen()
        try:
            self._begin(self._data)
        except sqlite3.OperationalError as error:
            if is_last_try or not _is_locked(error):
                raise
            return False
        return True

    def _begin(self, data: sqlite3.Connection) -> None:
        """Begin a transaction without waiting."""
        data.execute("PRAGMA busy_timeout = 0")
        try:
            data.execute("BEGIN IMMEDIATE")
        finally:
            data.execute(f"PRAGMA busy_timeout = {round(LOOP_PATIENCE * 1_000)}")
        self._before = data.total_changes

    def _reopen(self) -> None:
        """Try to write again: the disk may have room now. What can be read still can if that fails."""
        because, self.readonly_because = self.readonly_because, ""
        # A connection that has the file for itself would keep the next one out.
        self._data.close()
        self._version, self._watch = -1, None
        try:
            with self._reporting_path():
                self._data = self._opened()
        except BaseException:
            self.readonly_because = because
            if self.path is not None:
                with suppress(OSError, sqlite3.Error, StoreError):
                    self._data = self._connected_for_reading(self.path)
            raise

    @contextmanager
    def _transaction(self, data: sqlite3.Connection, patience: float) -> Iterator[None]:
        data.execute(f"PRAGMA busy_timeout = {round(patience * 1_000)}")
        data.execute("BEGIN IMMEDIATE")
        self._before = data.total_changes
        try:
            yield
            self._commit(data)
        except BaseException:
            _roll_back(data)
            raise

    def _commit(self, data: sqlite3.Connection) -> None:
        number = -1
        if data.total_changes != self._before:
            ((number,),) = data.execute("UPDATE state SET revision = revision + 1 RETURNING revision").fetchall()
            self._count(data)
        data.execute("COMMIT")
        if self._file is not None:
            forget_look(self._file, self._inode)
        if number >= 0 and self._revision_file is not None and self._id:
            self._revision_file.write(Revision(self._id, number))

    def _count(self, data: sqlite3.Connection) -> None:
        """Count a change of this owner's tables; `has_news` does not report it, unless it had news before."""
        query = "UPDATE part SET revision = revision + 1 WHERE name = ? RETURNING revision"
        for (revision,) in data.execute(query, (self._schema.part,)).fetchall():
            if self._revision == revision - 1:
                self._revision = revision

    def has_news(self) -> bool:
        """Return whether another process, or another `Database`, changed this owner's tables since the last call.

        The first call always returns True. It reads one number when nothing changed, and none when somebody looked in
        this turn of the event loop (`FileWatch`). Raises `StoreError` (``unusable``) if the file was moved, removed or
        replaced: changes by others would not be seen.
        """
        # Each request asks this: no context manager for the errors.
        try:
            version = self._present_version()
            if version == self._version:
                return False
            with self._lock:
                before, self._revision = self._revision, self._revision_in_file()
                is_first, self._version = self._version < 0, version
                return is_first or before != self._revision
        except sqlite3.DatabaseError as error:
            self._report(error)

    def _present_version(self, *, anew: bool = False) -> int:
        """Return a number that changes when another connection commits. Raises `StoreError` for a moved file."""
        if self._file is None or self.readonly_because:
            # Nobody else has memory; a file that is only read may be one that no other connection can open.
            if self._is_moved():
                self._refuse_moved()
            (version,) = self._data.execute("PRAGMA data_version").fetchone()
            return int(version)
        if self._watch is None:
            if self._is_moved():
                self._refuse_moved()
            self._watch = watch(self._file, self._inode, LOOP_PATIENCE)
        look = self._watch.look(anew=anew)
        if look.inode != self._inode:
            self._refuse_moved()
        return look.version

    def _revision_in_file(self) -> int:
        ((revision,),) = self._data.execute(
            "SELECT coalesce(max(revision), -1) FROM part WHERE name = ?", (self._schema.part,)
        ).fetchall()
        return int(revision)

    def is_behind(self) -> bool:
        """Return whether `has_news` may return True, without waiting for a thread that changes the file."""
        if not self._lock.acquire(blocking=False):
            # The thread that changes it looked before, and keeps all others out.
            return self._was_behind
        try:
            return self._is_changed_by_others()
        except (sqlite3.Error, StoreError):
            # `has_news` reports the error.
            return True
        finally:
            self._lock.release()

    def _is_changed_by_others(self) -> bool:
        if self._version < 0:
            return True
        # Other owners commit to the same file.
        return self._present_version(anew=True) != self._version and self._revision != self._revision_in_file()

    def _is_moved(self) -> bool:
        return self._file is not None and inode_of(self._file) != self._inode

    def _refuse_moved(self) -> NoReturn:
        remedy = "Put it back, and restart the program that uses it."
        self.refuse("it was moved, removed or replaced while it was in use", "unusable", remedy)

    def is_busy(self) -> bool:
        """Tell, without waiting, whether another process or connection is writing now."""
        if self.readonly_because or not self._lock.acquire(blocking=False):
            return False
        try:
            if self._depth:
                return False
            self._begin(self._data)
            self._data.execute("ROLLBACK")
        except sqlite3.OperationalError as error:
            return _is_locked(error)
        else:
            return False
        finally:
            self._lock.release()

    def empty_log(self) -> None:
        """Move all changes from the log into the database, so that removed content is nowhere any more.

        Does nothing while others read; the log is then emptied later.
        """
        with suppress(sqlite3.OperationalError), self._lock:
            self._data.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._version, self._watch = -1, None
            self._data.close()
            if self._revision_file is not None:
                self._revision_file.close()

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        """Raise errors of SQLite as `StoreError`."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            self._report(error)

    def _report(self, error: sqlite3.DatabaseError) -> NoReturn:
        if not isinstance(error, sqlite3.OperationalError):
            self.refuse(f"it is damaged ({error})")
        if _is_locked(error):
            self.refuse("another process is writing", "busy", "Try again.")
        self.refuse(f"it cannot be used ({error})", "unusable", "Check the path and the disk.")

    @contextmanager
    def _reporting_path(self) -> Iterator[None]:
        """Raise errors of the path and of the disk as `StoreError`."""
        try:
            yield
        except UnicodeError:
            # SQLite repeats its own schema in an error.
            self.refuse("it is damaged (text is not UTF-8)")
        except OSError as error:
            if error.errno == errno.ELOOP:
                self.refuse("it is a symbolic link", "unusable", "Name the file itself.")
            self.refuse(f"it cannot be used ({error.strerror or error})", "unusable", "Check the path and the disk.")

    def refuse(self, problem: str, code: str = "corrupt", remedy: str = _RESTORE) -> NoReturn:
        """Raise `StoreError` about this file."""
        where = "memory" if self.path is None else str(self.path)
        raise StoreError(file=where, key="", problem=f"{problem}; nothing was changed", remedy=remedy, code=code)


def _roll_back(data: sqlite3.Connection) -> None:
    # On a full disk SQLite itself has rolled back.
    if data.in_transaction:
        with suppress(sqlite3.Error):
            data.execute("ROLLBACK")


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

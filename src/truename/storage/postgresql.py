"""Keep state in a PostgreSQL database that gateways on several machines share.

Each scope is a schema, `truename_SCOPE`, with the tables of all owners. A change locks the row of its owner in
the table `part`, so that writers of one owner come one after the other and those of others do not wait. It counts the
change in that row and writes a token in the same transaction: if the connection is lost while it commits, the token
shows whether it was stored.
"""

from __future__ import annotations

import secrets
import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, NoReturn

import psycopg
from psycopg import errors, pq

from truename.errors import StoreError
from truename.files.private import make_private
from truename.storage.former import IMPORTED
from truename.storage.patience import LOOP_PATIENCE, PATIENCE, is_in_loop
from truename.storage.postgresql_bulk import bulk_insert
from truename.storage.postgresql_link import ANSWER, ANSWER_IN_LOOP, PostgresqlConnection, link_to, unlink
from truename.storage.postgresql_sql import translated
from truename.storage.revision_file import Revision, latest_revision
from truename.storage.whole import OwnerTables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from truename.storage.database import Transaction
    from truename.storage.location import StateLocation
    from truename.storage.postgresql_link import DatabaseRevisions
    from truename.storage.schema import Schema

__all__ = ["PostgresqlDatabase", "PostgresqlTransaction", "migrate"]

# `base` is how many changes the database counted before its parts were made or accepted after a loss.
_ENGINE: Final = (
    "CREATE TABLE state (id TEXT NOT NULL, base INTEGER NOT NULL)",
    "CREATE TABLE part (name TEXT PRIMARY KEY, version INTEGER NOT NULL, revision INTEGER NOT NULL)",
    """
CREATE TABLE written (
    part TEXT NOT NULL, revision INTEGER NOT NULL, token TEXT NOT NULL, PRIMARY KEY (part, revision)
)
""",
    # It comes and goes with a state that is copied from a file.
    IMPORTED,
)
# How many changes of an owner are remembered by their tokens.
_REMEMBERED: Final = 1_000
_RESTORE: Final = "Restore it from a backup."
_BEGIN: Final = """
BEGIN; SET LOCAL lock_timeout = {patience};
SELECT part.revision, state.id FROM part, state WHERE part.name = '{part}' FOR UPDATE OF part
"""
_COMMIT: Final = """
UPDATE part SET revision = {revision} WHERE name = '{part}';
INSERT INTO written (part, revision, token) VALUES ('{part}', {revision}, '{token}');
DELETE FROM written WHERE part = '{part}' AND revision <= {revision} - {remembered};
{notify}
SELECT state.id, state.base + (SELECT sum(revision)::bigint FROM part) FROM state;
COMMIT
"""
_NOTIFY: Final = "NOTIFY {schema}, '{part} {revision}';"
_WAS_WRITTEN: Final = """
BEGIN; SET LOCAL lock_timeout = {patience};
SELECT revision FROM part WHERE name = '{part}' FOR UPDATE;
SELECT count(*) FROM written WHERE part = '{part}' AND token = '{token}';
COMMIT
"""
_UNANSWERED: Final = (
    "Check the server, the network and how the URL signs in; a running gateway connects again by itself."
)
# The class of errors of the server, what happened, the code and the remedy; the first that fits counts.
_PROBLEMS: Final[tuple[tuple[type[psycopg.Error], str, str, str], ...]] = (
    (errors.LockNotAvailable, "another process is writing", "busy", "Try again."),
    (errors.QueryCanceled, "another process is writing", "busy", "Try again."),
    (errors.DeadlockDetected, "another process is writing", "busy", "Try again."),
    (errors.SerializationFailure, "another process is writing", "busy", "Try again."),
    (
        errors.IdleInTransactionSessionTimeout,
        "the change took too long, so the server gave its turn to others",
        "busy",
        "Try again.",
    ),
    (errors.ReadOnlySqlTransaction, "it cannot be written now (the server only answers questions)", "unusable", ""),
    (errors.DiskFull, "it cannot be written now (the disk of the server is full)", "unusable", ""),
    (
        errors.InsufficientPrivilege,
        "its role must not do that",
        "unusable",
        "Grant it, or run `truename state upgrade` as a role that may create tables.",
    ),
    (errors.InFailedSqlTransaction, "an earlier statement of the change failed", "unusable", "Try again."),
    (errors.UndefinedTable, "it is damaged (a table is missing)", "corrupt", _RESTORE),
    (psycopg.OperationalError, "it cannot be used", "unusable", _UNANSWERED),
    (psycopg.InterfaceError, "it cannot be used", "unusable", _UNANSWERED),
    (psycopg.NotSupportedError, "it cannot be used", "unusable", "Use PostgreSQL 15 or later."),
)


class PostgresqlTransaction:
    """A transaction of one owner: what `Database.change` yields.

    A statement whose answer takes longer than ``answer`` seconds ends it, and its connection: the server may have
    stopped, and whoever waits for this thread would wait for ever. None waits for ever, as for an index that is made.
    """

    def __init__(self, connection: PostgresqlConnection, revision: int, *, answer: float | None = ANSWER) -> None:
        self.connection = connection
        self._answer = answer
        # The revision that the owner's tables have before it.
        self.revision = revision
        self.has_changed = False
        # Statements whose answers nobody waited for yet.
        self._pipeline = ExitStack()
        self._sent: list[psycopg.Cursor[tuple[Any, ...]]] = []

    def execute(self, query: str, values: Sequence[Any] = ()) -> psycopg.Cursor[tuple[Any, ...]]:
        """Execute a statement."""
        self.wait()
        self.prolong()
        cursor = self.connection.execute(translated(query).encode(), values)
        self.has_changed |= _has_changed(cursor)
        return cursor

    def executemany(self, query: str, rows: Iterable[Sequence[Any]]) -> None:
        """Execute a statement once for each row of values."""
        found = rows if isinstance(rows, list) else list(rows)
        statements = bulk_insert(query, found)
        if statements is not None:
            self._send(statements)
            return
        self.wait()
        self.prolong()
        with self.connection.cursor() as cursor:
            cursor.executemany(translated(query).encode(), found)
            self.has_changed |= _has_changed(cursor)

    def _send(self, statements: Iterable[tuple[str, Sequence[Any]]]) -> None:
        """Send statements; the next rows are made while the server executes them."""
        if not self._sent:
            self._pipeline.enter_context(self.connection.pipeline())
        for statement, values in statements:
            self.prolong()
            self._sent.append(self.connection.execute(statement.encode(), values))

    def wait(self) -> None:
        """Wait for the answers to all that was sent. Raises their first error."""
        if self._sent:
            self.prolong()
            sent, self._sent = self._sent, []
            self._pipeline.close()
            self.has_changed |= any(map(_has_changed, sent))

    def roll_back(self) -> None:
        """Undo all, if the server did not do so already."""
        self._sent = []
        with suppress(psycopg.Error):
            self._pipeline.close()
        _roll_back(self.connection)

    def prolong(self) -> None:
        """Have the next statement wait for its own answer only."""
        if self._answer is None:
            self.connection.deadline = None
            return
        self.connection.deadline = time.monotonic() + (ANSWER_IN_LOOP if is_in_loop() else self._answer)


def _has_changed(cursor: psycopg.Cursor[tuple[Any, ...]]) -> bool:
    return cursor.rowcount > 0 and not (cursor.statusmessage or "").startswith("SELECT")


class PostgresqlDatabase:
    """One owner's tables in one scope of a PostgreSQL database: a `Database`."""

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
        del import_former  # an earlier version kept its files beside a file
        self.location = location
        self.path = None
        self.readonly_because = "it was opened for reading" if readonly else ""
        self.is_begun = False
        self._schema = schema
        self._patience = patience
        self._readonly = readonly
        self._checks_revision = checks_revision
        self._revision = -1
        self._lock = threading.Lock()
        # The thread that has the lock, and its transaction.
        self._owner = 0
        self._transaction: PostgresqlTransaction | None = None
        self._link = link_to(location)
        self._is_closed = False
        try:
            with self.reporting():
                self._open()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        """Check the database, and bring this owner's tables to the present version."""
        # A program that starts serves nobody yet.
        with self._link.connection(is_patient=True) as connection:
            # In this order: a writer writes the database first, the record beside it second.
            recorded = self._recorded()
            survey = self._link.survey(connection)
            self._check(survey, recorded)
            version = self._version(survey)
            if version < self._schema.version or survey is None:
                if not self._readonly:
                    self._migrate(connection)
                    version = self._schema.version
                elif version:
                    problem = f"it was written by an older Truename ({self._schema.part} {version})"
                    self.refuse(problem, "unusable", "Run `truename state upgrade`.")
            self.is_begun = version > 0 or not self._readonly

    def _version(self, survey: DatabaseRevisions | None) -> int:
        version = 0 if survey is None else survey.parts.get(self._schema.part, OwnerTables(0, -1)).version
        if version > self._schema.version + 1:
            problem = f"it was written by a newer Truename ({self._schema.part} {version})"
            self.refuse(problem, "newer", "Upgrade Truename.")
        return version

    def _recorded(self) -> Revision | None:
        """Return the revision on record on this machine."""
        file = self._link.revision_file
        try:
            return None if file is None else file.read()
        except OSError as error:
            problem = f"the record of its revision cannot be read ({error.strerror or error})"
            self.refuse(problem, "unusable", "Check the state directory.")

    def _check(self, survey: DatabaseRevisions | None, recorded: Revision | None) -> None:
        """Refuse a database that is not the recorded one, or lacks recorded changes."""
        if not self._checks_revision:
            return
        known = latest_revision(recorded, self.location.known)
        if survey is None:
            if known is not None:
                self._refuse_lost("it is empty", known)
            return
        if known is not None and known.database != survey.revision.database:
            self._refuse_lost("another database was put in its place", known)
        if known is not None and known.number > survey.revision.number:
            self._refuse_lost(f"it has {survey.revision.changes}", known)
        file = self._link.revision_file
        if file is not None and recorded is None and not self._readonly:
            with suppress(OSError):
                make_private(file.path.parent)
            file.write(survey.revision)

    def _refuse_lost(self, problem: str, known: Revision) -> NoReturn:
        remedy = (
            "Restore it from a later backup. To go on without the lost changes (names may then mean other tools), run "
            "`truename state accept` and restart the gateways."
        )
        self.refuse(f"{problem}, but it had {known.changes}", "corrupt", remedy)

    def _migrate(self, connection: PostgresqlConnection) -> None:
        """Run the missing migrations; another process may have run them meanwhile."""
        connection.deadline = None
        connection.execute(b"BEGIN")
        data = PostgresqlTransaction(connection, 0, answer=None)
        try:
            data.revision = migrate(data, self._link.schema, self._schema)
            self._commit(data)
        except BaseException:
            data.roll_back()
            raise

    @contextmanager
    def transaction(self, begin: str) -> Iterator[PostgresqlTransaction]:
        """Begin a transaction over the tables of all owners; what the block did not commit is rolled back."""
        with self.reporting(), self._link.connection(is_patient=True) as connection:
            connection.deadline = None
            connection.execute(f"{begin}; SET LOCAL idle_in_transaction_session_timeout = 0".encode())
            data = PostgresqlTransaction(connection, 0, answer=None)
            try:
                yield data
            finally:
                data.roll_back()

    @property
    def schema_name(self) -> str:
        """The schema with the tables of all owners."""
        return self._link.schema

    def survey(self) -> DatabaseRevisions | None:
        """Return the revisions of all owners, and record that of the database; None if there are no tables."""
        with self.reporting(), self._link.connection(is_patient=True) as connection:
            found = self._link.survey(connection)
        if found is not None and (file := self._link.revision_file) is not None:
            with suppress(OSError):
                make_private(file.path.parent)
            file.write(found.revision)
        return found

    def forget(self) -> None:
        """Remove the record of the revision that the database had."""
        if self._link.revision_file is not None:
            self._link.revision_file.path.unlink(missing_ok=True)

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """Return the rows that a query finds."""
        with self.reporting():
            if self._transaction is not None and self._owner == threading.get_ident():
                return self._transaction.execute(query, values).fetchall()
            self._require()
            return self._link.read(translated(query), values)

    def write_uncounted(self, query: str, *values: object) -> int:
        """Execute one statement outside of `change`, and return the number of changed rows."""
        with self.reporting():
            self._require()
            statement = translated(query).encode()
            with self._link.begun(lambda connection: connection.execute(statement, values).rowcount) as count:
                return count

    def revision(self) -> Revision:
        """Return the id of the database and the number of its changes."""
        query = "SELECT id, base + coalesce((SELECT sum(revision)::bigint FROM part), 0) FROM state"
        return Revision(*self.rows(query)[0])

    def _require(self) -> None:
        if self._is_closed:
            self.refuse("it was closed", "unusable", "Open it again.")
        if self._link.lost is not None and self._checks_revision:
            self._refuse_lost("it lost changes while it was in use", self._link.lost)

    @contextmanager
    def change(self) -> Iterator[PostgresqlTransaction]:
        """Lock out other writers of these tables during the block; commit all its changes, or none if it raises."""
        if self._transaction is not None and self._owner == threading.get_ident():
            with self.reporting():
                yield self._transaction
            return
        with self.reporting():
            self._require()
            if self._readonly:
                self.refuse("attempt to write a readonly database", "unusable", "Open it for writing.")
            patience = min(self._patience, LOOP_PATIENCE) if is_in_loop() else self._patience
            if not self._lock.acquire(timeout=patience):
                self.refuse("another thread is writing", "busy", "Try again.")
            try:
                with self._begun(patience) as data:
                    self._owner, self._transaction = threading.get_ident(), data
                    try:
                        yield data
                    finally:
                        self._owner, self._transaction = 0, None
                    self._commit(data)
            finally:
                self._lock.release()

    @contextmanager
    def _begun(self, patience: float) -> Iterator[PostgresqlTransaction]:
        with self._link.begun(lambda connection: self._begin(connection, patience)) as data:
            try:
                yield data
            except BaseException:
                data.roll_back()
                raise

    def _begin(self, connection: PostgresqlConnection, patience: float) -> PostgresqlTransaction:
        part = self._schema.part
        if connection.deadline is not None:
            # The server bounds the wait by its own clock, which may be set back meanwhile.
            connection.deadline = min(connection.deadline, time.monotonic() + PATIENCE) + patience
        try:
            cursor = connection.execute(_BEGIN.format(patience=max(1, round(patience * 1_000)), part=part).encode())
            row = _last_rows(cursor)
        except BaseException:
            _roll_back(connection)
            raise
        if len(row) != 1:
            _roll_back(connection)
            self.refuse("it is damaged (the owner of a table is missing)")
        ((revision, id),) = row
        seen, heard = self._link.seen, self._link.heard(part)
        if self._checks_revision and (revision < heard or (seen is not None and seen.database != id)):
            _roll_back(connection)
            self._link.lost = known = seen or Revision(id, heard)
            self._refuse_lost("it lost changes while it was in use", known)
        self._link.note(part, revision)
        return PostgresqlTransaction(connection, revision)

    def _commit(self, data: PostgresqlTransaction) -> None:
        data.wait()
        connection, part, revision = data.connection, self._schema.part, data.revision + 1
        if not data.has_changed:
            connection.execute(b"ROLLBACK")
            return
        token = secrets.token_hex(16)
        notify = "" if self._schema.is_quiet else _NOTIFY.format(part=part, revision=revision, schema=self._link.schema)
        names = {"part": part, "revision": revision, "token": token, "notify": notify}
        try:
            data.prolong()
            cursor = connection.execute(_COMMIT.format(remembered=_REMEMBERED, **names).encode())
            whole: Revision | None = Revision(*_last_rows(cursor)[0])
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            if not connection.closed:
                raise
            self._require_written(token, error)
            whole = None
        self._link.note(part, revision, whole)
        if self._revision == revision - 1:
            self._revision = revision

    def _require_written(self, token: str, error: psycopg.Error) -> None:
        """Return if a change whose commit was not answered was stored; raise the error if it was not.

        Raises `StoreError` if the server cannot be asked.
        """
        query = _WAS_WRITTEN.format(patience=2_000, part=self._schema.part, token=token).encode()
        deadline = time.monotonic() + (LOOP_PATIENCE if is_in_loop() else PATIENCE)
        while True:
            try:
                with self._link.connection() as connection:
                    ((count,),) = _last_rows(connection.execute(query))
                    break
            except psycopg.Error:
                if time.monotonic() > deadline:
                    problem = "the connection was lost while a change was stored, and whether it was is not known"
                    raise StoreError(
                        file=self.location.name, key="", problem=problem, remedy=_UNANSWERED, code="unusable"
                    ) from error
                time.sleep(0.1)
        if not count:
            raise error

    def has_news(self) -> bool:
        """Return whether another process, or another database, changed these tables since the last call.

        It asks the server only if nothing was heard of it for `STALENESS` seconds. While the server cannot be reached,
        or lost changes, what is in memory goes on.
        """
        if self._is_closed:
            self.refuse("it was closed", "unusable", "Open it again.")
        link, part = self._link, self._schema.part
        is_first, before = self._revision < 0, self._revision
        if self._transaction is not None and self._owner == threading.get_ident():
            # It was read when the change began.
            found = link.heard(part)
        else:
            if not is_first:
                # Whoever asks only once needs no thread that listens.
                link.listen()
            found = link.look(part)
        self._revision = max(found, 0)
        return is_first or before != self._revision

    def is_behind(self) -> bool:
        """Return whether `has_news` may return True, without waiting."""
        return self._is_closed or self._revision < 0 or self._revision != max(self._link.heard(self._schema.part), 0)

    def is_busy(self) -> bool:
        """Return False: only the server knows, and asking it takes as long as a change."""
        return False

    def empty_log(self) -> None:
        """Do nothing: the server removes deleted rows when it vacuums the table."""

    @property
    def silence(self) -> float:
        """How many seconds ago the server answered last."""
        return self._link.silence

    def close(self) -> None:
        """Close the connection."""
        if not self._is_closed:
            self._is_closed = True
            unlink(self.location)

    @contextmanager
    def reporting(self) -> Iterator[None]:
        """Raise errors of the server as `StoreError`."""
        try:
            yield
        except psycopg.Error as error:
            if type(error) is psycopg.ProgrammingError and error.sqlstate is None:
                # Libpq's, before it connects: an unknown parameter, a service that is not defined.
                self.refuse(f"its URL cannot be used ({_sentence(error)})", "unusable", "Correct the URL.")
            for kind, problem, code, remedy in _PROBLEMS:
                if isinstance(error, kind):
                    detail = f": {_sentence(error)}" if code == "unusable" else ""
                    self.refuse(problem + detail, code, remedy or "Check the server.")
            self.refuse(f"it is damaged ({_sentence(error)})")

    def refuse(self, problem: str, code: str = "corrupt", remedy: str = _RESTORE) -> NoReturn:
        """Raise `StoreError` about this database."""
        text = f"{problem}; nothing was changed"
        raise StoreError(file=self.location.name, key="", problem=text, remedy=remedy, code=code)


def migrate(data: PostgresqlTransaction, name: str, schema: Schema) -> int:
    """Make or upgrade an owner's tables in the schema ``name``; return the revision that they had before.

    Whoever makes or upgrades tables of the same schema waits for the end of the transaction.
    """
    data.execute("SELECT pg_advisory_xact_lock(hashtextextended(?, 0))", (name,))
    ((exists,),) = data.execute("SELECT to_regnamespace(?) IS NOT NULL", (name,))
    if not exists:
        data.execute(f"CREATE SCHEMA {name}")
    ((exists,),) = data.execute("SELECT to_regclass(?) IS NOT NULL", (f"{name}.part",))
    if not exists:
        for statement in _ENGINE:
            data.execute(statement)
        data.execute("INSERT INTO state (id, base) VALUES (?, 0)", (secrets.token_hex(16),))
    data.execute("INSERT INTO part (name, version, revision) VALUES (?, 0, 0) ON CONFLICT DO NOTHING", (schema.part,))
    ((begun, revision),) = data.execute("SELECT version, revision FROM part WHERE name = ? FOR UPDATE", (schema.part,))
    for statements in schema.migrations[begun:]:
        for statement in statements:
            data.execute(statement)
    data.execute("UPDATE part SET version = ? WHERE name = ?", (max(begun, schema.version), schema.part))
    return int(revision)


def _last_rows(cursor: psycopg.Cursor[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return the rows of the last statement that has some, of several in one text."""
    found: list[tuple[Any, ...]] = []
    while True:
        if cursor.description is not None:
            found = cursor.fetchall()
        if not cursor.nextset():
            return found


def _roll_back(connection: PostgresqlConnection) -> None:
    if connection.closed or connection.info.transaction_status is pq.TransactionStatus.IDLE:
        return
    with suppress(psycopg.Error):
        connection.execute(b"ROLLBACK")


def _sentence(error: psycopg.Error) -> str:
    """Return an error of the server in one line, without a full stop."""
    # The other lines may repeat what a row holds.
    return " ".join((error.diag.message_primary or str(error)).split()).rstrip(".")[:300]

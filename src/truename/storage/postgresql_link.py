"""Share connections to a PostgreSQL database in one process, and hear which tables other processes changed.

A process has one link for each scope of a database: a few connections that threads take in turns, and a thread that
listens. Every commit notifies all links of the scope. Each `POLL` seconds, and after each notification, the listening
connection asks for the revisions of all owners; the answer also shows that the connection is alive. If that connection
was lost, or the last answer is older than `STALENESS` (it was cut silently, the process was stopped), each look asks
the server itself.
So a look is never older than `STALENESS`, unless the server cannot be reached: then what is in memory goes on.
"""

from __future__ import annotations

import logging
import os
import re
import socket
import threading
import time
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import psycopg
from psycopg import pq

from truename.storage.patience import PATIENCE, is_in_loop
from truename.storage.postgresql_sql import adapt
from truename.storage.revision_file import Revision, RevisionFile
from truename.storage.whole import OwnerTables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from truename.storage.location import StateLocation

__all__ = [
    "ANSWER",
    "ANSWER_IN_LOOP",
    "POLL",
    "STALENESS",
    "DatabaseRevisions",
    "PostgresqlConnection",
    "ServerLink",
    "link_to",
    "unlink",
]

T = TypeVar("T")
log: Final = logging.getLogger("truename.storage")

POLL: Final = 2.0
"""The seconds between two questions of the thread that listens, and how long it waits for an answer."""
STALENESS: Final = 5.0
"""The seconds after which what was heard last no longer counts."""
ANSWER: Final = 30.0
"""How long a thread waits for the answer to one statement. A wait for another writer is bounded by the server."""
ANSWER_IN_LOOP: Final = 0.5
"""How long a thread that runs an event loop waits for it."""
# A server that did not answer is not asked again at once: each request would wait for it.
_REST: Final = 0.5
_MOST_IDLE: Final = 4
_OLDEST_SERVER: Final = 15_00_00
# A process that was stopped in the middle of a change keeps others waiting no longer than this (milliseconds).
_LONGEST_PAUSE: Final = 20_000
_SESSION: Final = f"""
SET search_path = {{schema}};
SET idle_in_transaction_session_timeout = {_LONGEST_PAUSE};
SET default_transaction_isolation = 'read committed';
SET client_connection_check_interval = 5000;
SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3;
SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'
"""
_PARAMETERS: Final = {
    "client_encoding": "UTF8",
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
_SURVEY: Final = """
SELECT state.id, state.base + coalesce(sum(part.revision) OVER (), 0)::bigint, part.name, part.version, part.revision
FROM state LEFT JOIN part ON true
"""
# Tables in a schema that a role may not use are not found, as if they did not exist. Not by `to_regnamespace`: the
# server would remember that there is no such schema, also after another process made it.
_CLOSED: Final = "SELECT 1 FROM pg_namespace WHERE nspname = %s AND NOT has_schema_privilege(oid, 'USAGE')"
_NOTE: Final = re.compile(r"([a-z_]{1,63}) ([0-9]{1,18})")


class NoAnswerError(psycopg.OperationalError):
    """The server did not answer in time; the connection was closed."""


class PostgresqlConnection(psycopg.Connection[tuple[Any, ...]]):
    """A connection whose statements wait no longer than until ``deadline`` (of `time.monotonic`); None: for ever."""

    deadline: float | None = None

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        """Consume a generator that operates on the connection, until the deadline."""
        if self.deadline is None:
            return super().wait(gen, interval, timeout)
        try:
            return super().wait(gen, interval, max(0.0, self.deadline - time.monotonic()))
        except psycopg.OperationalError as error:
            if time.monotonic() < self.deadline:
                raise
            self.pgconn.finish()
            message = "the server does not answer"
            raise NoAnswerError(message) from error

    @property
    def is_free(self) -> bool:
        """Whether another thread may use the connection."""
        return not self.closed and self.info.transaction_status is pq.TransactionStatus.IDLE


class DatabaseRevisions(NamedTuple):
    """The revision of a database, and of each owner's tables in it."""

    revision: Revision
    parts: dict[str, OwnerTables]


_NOTHING: Final = OwnerTables(0, -1)


class ServerLink:
    """The connections of one process to one scope, and what it heard of. Methods raise `psycopg.Error`."""

    def __init__(self, location: StateLocation) -> None:
        self.schema = f"truename_{location.scope}"
        # The latest revision that the database is known to have had; one with less lost changes.
        self.seen: Revision | None = None
        self.lost: Revision | None = None
        # Guarded by the lock of all links.
        self.users = 0
        self._url = location.url or ""
        self._lock = threading.Lock()
        self._idle: list[PostgresqlConnection] = []
        self._parts: dict[str, OwnerTables] = {}
        self._heard = float("-inf")
        self._resting_until = float("-inf")
        self._problem = ""
        self._is_away = self._is_connecting = False
        self._listener: threading.Thread | None = None
        self._listening: PostgresqlConnection | None = None
        # Whether the server notifies that connection, and was asked since.
        self._is_heard = False
        self._has_ended = threading.Event()
        beside = location.recorded_beside
        self.revision_file = None if beside is None else RevisionFile(beside)

    # Connections

    @contextmanager
    def connection(self, *, is_patient: bool = False) -> Iterator[PostgresqlConnection]:
        """Lend a connection; one that is left in a transaction or broken is closed.

        ``is_patient`` waits for the server in a thread that runs an event loop too.
        """
        with self.begun(lambda connection: connection, is_patient=is_patient) as connection:
            yield connection

    @contextmanager
    def begun(self, begin: Callable[[PostgresqlConnection], T], *, is_patient: bool = False) -> Iterator[T]:
        """Lend a connection, and yield the result of its first use; if it was cut off meanwhile, it is replaced."""
        with self._lock:
            may_be_cut = bool(self._idle)
        try:
            connection, result = self._begun(begin, is_patient=is_patient)
        except psycopg.OperationalError:
            # Whoever waited for an answer in vain does not wait again.
            if not may_be_cut or time.monotonic() < self._resting_until:
                raise
            connection, result = self._begun(begin, is_patient=is_patient)
        try:
            yield result
        except BaseException as error:
            self._give_back(connection, error)
            raise
        self._give_back(connection)

    def _begun(self, begin: Callable[[PostgresqlConnection], T], *, is_patient: bool) -> tuple[PostgresqlConnection, T]:
        is_waited_for = is_patient or not is_in_loop()
        connection = self._taken(PATIENCE if is_waited_for else ANSWER_IN_LOOP)
        connection.deadline = time.monotonic() + (ANSWER if is_waited_for else ANSWER_IN_LOOP)
        try:
            return connection, begin(connection)
        except BaseException as error:
            self._give_back(connection, error)
            raise

    def _taken(self, patience: float) -> PostgresqlConnection:
        while True:
            with self._lock:
                found = self._idle.pop() if self._idle else None
            if found is None:
                return self._connected(patience)
            if not found.closed:
                return found

    def _give_back(self, connection: PostgresqlConnection, error: BaseException | None = None) -> None:
        if isinstance(error, NoAnswerError):
            self._rest(str(error))
        if connection.closed:
            # The others were cut off with it.
            self._drop_idle()
            return
        with self._lock:
            is_kept = connection.is_free and len(self._idle) < _MOST_IDLE and not self._has_ended.is_set()
            if is_kept:
                self._idle.append(connection)
        if not is_kept:
            connection.close()

    def _drop_idle(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _connected(self, patience: float) -> PostgresqlConnection:
        """Connect in another thread: finding the server's address cannot be given up in this one."""
        # While the server is away, a thread that serves requests waits for no attempt, and one at a time is made.
        is_hasty = self._is_away and patience < PATIENCE
        if time.monotonic() < self._resting_until or (is_hasty and self._is_connecting):
            raise psycopg.OperationalError(self._problem)
        promise: Future[PostgresqlConnection] = Future()
        self._is_connecting = True
        threading.Thread(target=self._fulfil, args=(promise,), name="truename-connect", daemon=True).start()
        try:
            connection = promise.result(0.0 if is_hasty else patience)
        except TimeoutError:
            if promise.cancel():
                self._rest("the server does not answer")
                raise psycopg.OperationalError(self._problem) from None
            connection = promise.result()
        return connection

    def _fulfil(self, promise: Future[PostgresqlConnection]) -> None:
        try:
            connection = self._new()
        except Exception as error:  # noqa: BLE001 - whoever waits is told
            self._rest(str(error))
            if promise.set_running_or_notify_cancel():
                promise.set_exception(error)
        else:
            if promise.set_running_or_notify_cancel():
                promise.set_result(connection)
            else:
                self._give_back(connection)
        finally:
            self._is_connecting = False

    def _new(self) -> PostgresqlConnection:
        connection = PostgresqlConnection.connect(
            self._url,
            autocommit=True,
            application_name=self.schema,
            **_PARAMETERS,  # type: ignore[arg-type]
        )
        try:
            connection.deadline = time.monotonic() + PATIENCE
            if connection.info.server_version < _OLDEST_SERVER:
                message = "the server is older than PostgreSQL 15"
                raise psycopg.NotSupportedError(message)
            adapt(connection)
            connection.execute(_SESSION.format(schema=self.schema).encode())
            self.survey(connection)
        except BaseException:
            connection.close()
            raise
        self._is_away, self._resting_until = False, float("-inf")
        return connection

    def _rest(self, problem: str) -> None:
        self._is_away, self._problem = True, problem
        self._resting_until = time.monotonic() + _REST
        self._drop_idle()

    def read(self, query: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        """Return the rows that a query finds. A connection that was cut off while it was idle is replaced."""
        with self.begun(lambda connection: connection.execute(query.encode(), values).fetchall()) as rows:
            return rows

    # Revisions

    def survey(self, connection: PostgresqlConnection) -> DatabaseRevisions | None:
        """Ask for the revisions of all owners; None if there are no tables."""
        asked, before = time.monotonic(), self.seen
        try:
            rows = connection.execute(_SURVEY).fetchall()
        except psycopg.errors.UndefinedTable:
            if connection.execute(_CLOSED, (self.schema,)).fetchall():
                message = f"permission denied for schema {self.schema}"
                raise psycopg.errors.InsufficientPrivilege(message) from None
            rows = []
        if not rows:
            self.lost = before
            return None
        id, number = rows[0][:2]
        found = DatabaseRevisions(
            Revision(id, number),
            {name: OwnerTables(version, revision) for _, _, name, version, revision in rows if name},
        )
        # What was known when the question was asked is in the answer, unless the database lost it.
        if before is not None and (id != before.database or number < before.number):
            if self.lost is None:
                log.warning("The state database lost changes: nothing is changed until it is restored or accepted.")
            self.lost = before
            return found
        with self._lock:
            self.lost = None
            self._see(found.revision)
            for name, part in found.parts.items():
                if part.revision > self._parts.get(name, _NOTHING).revision:
                    self._parts[name] = part
            self._heard = max(self._heard, asked)
        return found

    def _see(self, revision: Revision) -> None:
        if self.seen is None or revision.number > self.seen.number:
            self.seen = revision

    def note(self, part: str, revision: int, whole: Revision | None = None) -> None:
        """Note a change of an owner's tables; ``whole`` is the revision that the database has by it."""
        with self._lock:
            known = self._parts.get(part, _NOTHING)
            if revision > known.revision:
                self._parts[part] = known._replace(revision=revision)
            if whole is not None:
                self._see(whole)
                if self.revision_file is not None:
                    self.revision_file.write(whole)

    def heard(self, part: str) -> int:
        """Return the latest revision of an owner's tables that this process heard of."""
        return self._parts.get(part, _NOTHING).revision

    def look(self, part: str) -> int:
        """Return the revision of an owner's tables, as it was at most `STALENESS` seconds ago if the server answers.

        While nobody listens the server is asked: nothing would tell of a change that was made after its last answer.
        """
        if not self._is_heard or self.silence > STALENESS:
            try:
                with self.connection() as connection:
                    self.survey(connection)
            except psycopg.Error as error:
                log.debug("the server cannot be asked for news", exc_info=error)
        return self.heard(part)

    @property
    def silence(self) -> float:
        """How many seconds ago the server answered last."""
        return time.monotonic() - self._heard

    # Listening

    def listen(self) -> None:
        """Start the thread that listens, unless it runs."""
        with self._lock:
            if self._listener is None and not self._has_ended.is_set():
                self._listener = threading.Thread(target=self._listen, name="truename-listen", daemon=True)
                self._listener.start()

    def _listen(self) -> None:
        while not self._has_ended.is_set():
            try:
                connection = self._new()
            except Exception as error:
                log.debug("cannot listen to the server", exc_info=error)
                self._has_ended.wait(_REST)
                continue
            self._listening = connection
            try:
                connection.execute(f"LISTEN {self.schema}".encode())
                while not self._has_ended.is_set():
                    connection.deadline = time.monotonic() + POLL
                    self.survey(connection)
                    connection.deadline = None
                    self._is_heard = True
                    self._await_news(connection)
            except Exception as error:
                log.debug("the connection that listens was lost", exc_info=error)
            finally:
                self._listening, self._is_heard = None, False
                connection.close()

    def _await_news(self, connection: PostgresqlConnection) -> None:
        """Return when another process changed something, or after `POLL` seconds."""
        until = time.monotonic() + POLL
        while not self._has_ended.is_set() and (left := until - time.monotonic()) > 0:
            for note in connection.notifies(timeout=left, stop_after=1):
                found = _NOTE.fullmatch(note.payload)
                # Whoever may connect can notify: only what the tables say counts.
                if found is None or int(found[2]) > self.heard(found[1]):
                    return

    def end(self) -> None:
        """Close all connections."""
        self._has_ended.set()
        listening, thread = self._listening, self._listener
        if listening is not None:
            # It wakes the thread.
            with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(listening.fileno())) as wire:
                wire.shutdown(socket.SHUT_RDWR)
        if thread is not None:
            thread.join(POLL)
        self._drop_idle()
        if self.revision_file is not None:
            self.revision_file.close()


_LINKS: Final[dict[tuple[int, str | None, str], ServerLink]] = {}
_LINKING: Final = threading.Lock()


@contextmanager
def _linking(location: StateLocation) -> Iterator[tuple[int, str | None, str]]:
    with _LINKING:
        # A process that was forked has connections of its own.
        yield os.getpid(), location.url, location.scope


def link_to(location: StateLocation) -> ServerLink:
    """Return the link of this process to a database. Whoever has it calls `unlink` once."""
    with _linking(location) as key:
        link = _LINKS.get(key)
        if link is None:
            link = _LINKS[key] = ServerLink(location)
        link.users += 1
        return link


def unlink(location: StateLocation) -> bool:
    """Give a link back; the last one closes its connections. Return whether there was one."""
    with _linking(location) as key:
        link = _LINKS.get(key)
        if link is None:
            return False
        link.users -= 1
        is_last = not link.users
        if is_last:
            del _LINKS[key]
    if is_last:
        link.end()
    return True

"""Keep a ledger in the state database: its tables, and the SQL that reads and writes them."""

from __future__ import annotations

import json
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from truename.errors import LedgerError, StoreError
from truename.identity import ToolId, fold
from truename.ledger.events import Bind, Claim, LedgerSettings, Own, from_plain
from truename.ledger.state import (
    LedgerState,
    NameHolders,
    OriginRow,
    RecordedSpelling,
    ServerCounts,
    Standing,
    WithdrawnRow,
)
from truename.storage import Database, Schema

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from truename.ledger.events import Event
    from truename.ledger.state import RowKey

__all__ = ["SCHEMA", "SqlLedger"]

# Every name, its holders from and to which time: the events. What they add up to: the other tables. `revision` is the
# number of the record that wrote a row last.
SCHEMA: Final = Schema(
    "ledger",
    (
        (
            "CREATE TABLE ledger_revision (number INTEGER NOT NULL, events INTEGER NOT NULL)",
            "INSERT INTO ledger_revision VALUES (0, 0)",
            """
CREATE TABLE ledger_event (
    number INTEGER PRIMARY KEY, scope TEXT NOT NULL, fold TEXT NOT NULL, once TEXT NOT NULL, body TEXT NOT NULL,
    UNIQUE (scope, fold, once)
)
""",
            """
CREATE TABLE ledger_holder (
    scope TEXT NOT NULL, fold TEXT NOT NULL, first TEXT, present TEXT NOT NULL, revision INTEGER NOT NULL,
    PRIMARY KEY (scope, fold)
)
""",
            """
CREATE TABLE ledger_spelling (
    scope TEXT NOT NULL, name TEXT NOT NULL, fold TEXT NOT NULL, prefix TEXT NOT NULL, number INTEGER,
    revision INTEGER NOT NULL, PRIMARY KEY (scope, name)
)
""",
            "CREATE INDEX ledger_spelling_fold ON ledger_spelling (scope, fold)",
            """
CREATE TABLE ledger_shown (
    scope TEXT NOT NULL, epoch INTEGER NOT NULL, client TEXT NOT NULL, id TEXT NOT NULL, name TEXT NOT NULL,
    revision INTEGER NOT NULL, PRIMARY KEY (scope, epoch, client, id)
)
""",
            """
CREATE TABLE ledger_first_version (
    scope TEXT NOT NULL, integration TEXT NOT NULL, suite TEXT NOT NULL, tool TEXT NOT NULL, id TEXT NOT NULL,
    revision INTEGER NOT NULL, PRIMARY KEY (scope, integration, suite, tool)
)
""",
            """
CREATE TABLE ledger_origin (
    id TEXT PRIMARY KEY, server TEXT NOT NULL, name TEXT NOT NULL, server_rank INTEGER NOT NULL,
    rank INTEGER NOT NULL, revision INTEGER NOT NULL
)
""",
            """
CREATE TABLE ledger_binding (
    server TEXT NOT NULL, name TEXT NOT NULL, id TEXT NOT NULL, revision INTEGER NOT NULL,
    PRIMARY KEY (server, name)
)
""",
            "CREATE TABLE ledger_owner (uri TEXT PRIMARY KEY, server TEXT NOT NULL, revision INTEGER NOT NULL)",
            """
CREATE TABLE ledger_server (
    server TEXT PRIMARY KEY, rank INTEGER, claims INTEGER NOT NULL, bound INTEGER NOT NULL, owned INTEGER NOT NULL,
    revision INTEGER NOT NULL
)
""",
            """
CREATE TABLE ledger_settings (
    scope TEXT NOT NULL, epoch INTEGER NOT NULL, body TEXT NOT NULL, revision INTEGER NOT NULL,
    PRIMARY KEY (scope, epoch)
)
""",
            """
CREATE TABLE ledger_withdrawn (
    scope TEXT NOT NULL, kind TEXT NOT NULL CHECK (kind IN ('name', 'fold')), text TEXT NOT NULL,
    place INTEGER NOT NULL, status TEXT NOT NULL CHECK (status IN ('retired', 'redirected', 'broken')), id TEXT,
    since TEXT NOT NULL,
    successor TEXT, until TEXT NOT NULL, protocol TEXT NOT NULL, revision INTEGER NOT NULL,
    PRIMARY KEY (scope, kind, text)
)
""",
            "CREATE TABLE ledger_scope (scope TEXT PRIMARY KEY, begun INTEGER NOT NULL, revision INTEGER NOT NULL)",
            *(
                f"CREATE INDEX ledger_{table}_revision ON ledger_{table} (revision)"
                for table in (
                    *("holder", "spelling", "shown", "first_version", "origin", "binding", "owner", "server"),
                    *("settings", "withdrawn", "scope"),
                )
            ),
        ),
    ),
)
# A table with fewer rows is read at once when the ledger is opened: more would take longer than they save.
_MOST_AT_ONCE: Final = 20_000


@lru_cache(maxsize=65_536)
def _id(text: str) -> ToolId:
    return ToolId.parse(text)


def _maybe_id(text: str | None) -> ToolId | None:
    return None if text is None else _id(text)


def _maybe_text(id: ToolId | None) -> str | None:
    return None if id is None else str(id)


def _stored(key: RowKey) -> RowKey:
    """Return a key as its columns have it."""
    return tuple("" if part is None else str(part) if isinstance(part, ToolId) else part for part in key)


class _Table(NamedTuple):
    """How a table's rows are written and read: its key and value columns, and what they mean in Python."""

    keys: tuple[str, ...]
    columns: tuple[str, ...]
    value: Callable[..., Any]
    row: Callable[[Any], tuple[Any, ...]]
    key: Callable[[RowKey], RowKey] = tuple


def _settings_of(body: str) -> LedgerSettings:
    found = from_plain(json.loads(body))
    if not isinstance(found, LedgerSettings):
        message = "settings of a ledger are another event"
        raise TypeError(message)
    return found


_TABLES: Final = {
    "holder": _Table(
        ("scope", "fold"),
        ("first", "present"),
        lambda first, present: NameHolders(_maybe_id(first), _id(present)),
        lambda one: (_maybe_text(one.first), str(one.present)),
    ),
    "spelling": _Table(("scope", "name"), ("fold", "prefix", "number"), RecordedSpelling, tuple),
    "shown": _Table(
        ("scope", "epoch", "client", "id"),
        ("name",),
        str,
        lambda name: (name,),
        lambda key: (*key[:3], _id(key[3])),
    ),
    "first_version": _Table(
        ("scope", "integration", "suite", "tool"),
        ("id",),
        _id,
        lambda id: (str(id),),
        lambda key: (*key[:2], key[2] or None, key[3]),
    ),
    "origin": _Table(
        ("id",),
        ("server", "name", "server_rank", "rank"),
        OriginRow,
        tuple,
        lambda key: (_id(key[0]),),
    ),
    "binding": _Table(("server", "name"), ("id",), _id, lambda id: (str(id),)),
    "owner": _Table(("uri",), ("server",), str, lambda server: (server,)),
    "server": _Table(("server",), ("rank", "claims", "bound", "owned"), ServerCounts, tuple),
    "settings": _Table(("scope", "epoch"), ("body",), _settings_of, lambda one: (json.dumps(one.plain()),)),
    "withdrawn": _Table(
        ("scope", "kind", "text"),
        ("place", "status", "id", "since", "successor", "until", "protocol"),
        lambda place, status, id, *rest: WithdrawnRow(place, Standing(status, _maybe_id(id), *rest)),
        lambda row: (row.place, row.standing.status, _maybe_text(row.standing.id), *row.standing[2:]),
    ),
    "scope": _Table(("scope",), ("begun",), bool, lambda begun: (int(begun),)),
}
# In this order: a name withdrawn under settings is read after them.
_ALWAYS_READ: Final = ("scope", "settings", "withdrawn", "server")
_ORDER: Final = {"settings": "epoch", "withdrawn": "place"}
_READ_WHEN_ASKED: Final = tuple(table for table in _TABLES if table not in _ALWAYS_READ)
_READ: Final = {
    name: f"SELECT {', '.join(table.columns)} FROM ledger_{name} WHERE "  # noqa: S608 - of words that stand here
    + " AND ".join(f"{key} = ?" for key in table.keys)
    for name, table in _TABLES.items()
}
_ROWS: Final = {
    name: f"SELECT {', '.join((*table.keys, *table.columns))} FROM ledger_{name}"  # noqa: S608 - as above
    for name, table in _TABLES.items()
}
_WRITE: Final = {
    name: f"INSERT INTO ledger_{name} ({', '.join((*table.keys, *table.columns))}, revision) "  # noqa: S608 - as above
    f"VALUES ({', '.join('?' * (len(table.keys) + len(table.columns) + 1))}) "
    f"ON CONFLICT ({', '.join(table.keys)}) DO UPDATE SET "
    + ", ".join(f"{column} = excluded.{column}" for column in (*table.columns, "revision"))
    for name, table in _TABLES.items()
}
_SPELLED: Final = "SELECT name FROM ledger_spelling WHERE scope = ? AND fold = ?"
_EVENT: Final = "INSERT INTO ledger_event VALUES (?, ?, ?, ?, ?) ON CONFLICT (scope, fold, once) DO NOTHING"


class SqlLedger:
    """A ledger in a state database; ``patience`` is how many seconds to wait for another process that writes.

    A table with fewer rows than ``at_once`` is read at the start, of a larger one each row when it is asked for.
    """

    def __init__(self, path: Path, *, readonly: bool, patience: float, at_once: int = _MOST_AT_ONCE) -> None:
        self.path = path
        self._readonly = readonly
        self._patience = patience
        self._at_once = at_once
        self._state: LedgerState | None = None
        self._empty = LedgerState()
        self._data: Database | None = None
        with self._told():
            self._open()

    def _open(self) -> Database | None:
        """Return the database; None while there is none and this is a reader, who makes none."""
        if self._data is None and not (self._readonly and not self._exists()):
            found = Database(self.path, SCHEMA, patience=self._patience, readonly=self._readonly)
            if found.is_begun:
                self._data = found
            else:
                found.close()
        return self._data

    def _exists(self) -> bool:
        # A link to nowhere, and a database of which only the revision is left, are refused and not empty.
        return any(
            path.is_symlink() or path.exists()
            for path in (self.path, self.path.with_name(f"{self.path.name}.revision"))
        )

    def snapshot(self) -> LedgerState:
        """Return the state with all that is committed."""
        with self._told():
            data = self._open()
            if data is None:
                return self._empty
            if data.has_news() or self._state is None:
                self._state = self._caught_up(data, self._state)
            return self._state

    def _caught_up(self, data: Database, state: LedgerState | None) -> LedgerState:
        """Take over the rows that others wrote; at the start, those that naming always asks for, and small tables."""
        ((revision,),) = data.rows("SELECT number FROM ledger_revision")
        if state is None:
            state = LedgerState(self)
            for table in _ALWAYS_READ:
                for key, value in self._rows(table, f"{_ROWS[table]} ORDER BY {_ORDER.get(table, 'revision')}"):
                    state.absorb(table, key, value)
            for table in _READ_WHEN_ASKED:
                ((count,),) = data.rows(f"SELECT count(*) FROM (SELECT 1 FROM ledger_{table} LIMIT ?)", self._at_once)  # noqa: S608 - as above
                if count < self._at_once:
                    state.tables[table].under()
        elif revision != state.revision:
            for table in (*_ALWAYS_READ, *_READ_WHEN_ASKED):
                query = f"{_ROWS[table]} WHERE revision > ? ORDER BY {_ORDER.get(table, 'revision')}"
                for key, value in self._rows(table, query, state.revision):
                    state.absorb(table, key, value)
        state.revision = revision
        return state

    def read(self, table: str, key: RowKey) -> Any:
        """Return the value of one row, None if there is none."""
        data = self._data
        if data is None:
            return None
        with self._told():
            if table == "spellings_of":
                return tuple(name for (name,) in data.rows(_SPELLED, *key)) or None
            about = _TABLES[table]
            rows = data.rows(_READ[table], *_stored(key))
        return self._decoded(about.value, *rows[0]) if rows else None

    def under(self, table: str, prefix: RowKey) -> list[tuple[RowKey, Any]]:
        """Return the rows whose keys begin with ``prefix``."""
        about = _TABLES[table]
        where = " AND ".join(f"{key} = ?" for key in about.keys[: len(prefix)])
        with self._told():
            return list(self._rows(table, f"{_ROWS[table]} WHERE {where or '1 = 1'}", *_stored(prefix)))

    def _rows(self, table: str, query: str, *values: object) -> Iterator[tuple[RowKey, Any]]:
        assert self._data is not None  # noqa: S101 - who asks has opened it
        about = _TABLES[table]
        width = len(about.keys)
        for row in self._data.rows(query, *values):
            yield self._decoded(about.key, row[:width]), self._decoded(about.value, *row[width:])

    def append(self, events: Sequence[Event], expected_revision: int) -> bool:
        """Commit events whole; False, and nothing is kept, if the ledger has another revision than expected."""
        state = self.snapshot()
        try:
            with self._told():
                data = self._open()
                assert data is not None  # noqa: S101 - a reader does not append
                with data.change() as connection:
                    ((revision, count),) = connection.execute("SELECT number, events FROM ledger_revision").fetchall()
                    if revision != expected_revision or state.revision != expected_revision:
                        return False
                    for event in events:
                        state.apply(event)
                    self._write(connection, events, state, revision + 1, count)
                    state.revision = revision + 1
        except BaseException:
            # What was applied is not on the disk: all is read anew.
            self.discard()
            raise
        return True

    def _write(
        self, data: sqlite3.Connection, events: Sequence[Event], state: LedgerState, revision: int, count: int
    ) -> None:
        told = [event for event in events if not isinstance(event, Bind | Own)]
        rows = [
            (number, event.scope, fold(getattr(event, "name", "")), _once(event, number), json.dumps(event.plain()))
            for number, event in enumerate(told, count + 1)
        ]
        data.executemany(_EVENT, rows)
        for table, changed in state.tables.items():
            about = _TABLES[table]
            keys = list(changed.changed)
            values = ((key, changed.get(*key)) for key in keys)
            data.executemany(_WRITE[table], [(*_stored(key), *about.row(value), revision) for key, value in values])
            changed.changed.clear()
        data.execute("UPDATE ledger_revision SET number = ?, events = ?", (revision, count + len(told)))

    def discard(self) -> None:
        """Forget what is in memory: it is read anew from the database."""
        self._state = None

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Keep other writers out; commit what is appended in the block whole at its end, or nothing of it."""
        try:
            with self._told():
                data = self._open()
                assert data is not None  # noqa: S101 - a reader does not write
                with data.change():
                    yield
        except BaseException:
            self.discard()
            raise

    def history(self, scope: str, name: str) -> tuple[Event, ...]:
        """Return what happened to a name, in any spelling, oldest first; repeated claims are kept once."""
        query = "SELECT body FROM ledger_event WHERE scope = ? AND fold = ? ORDER BY number"
        with self._told():
            data = self._open()
            rows = [] if data is None else data.rows(query, scope, fold(name))
        return tuple(self._decoded(lambda text: from_plain(json.loads(text)), body) for (body,) in rows)

    def has_news(self) -> bool:
        """Tell, without waiting, whether others may have written since the last snapshot."""
        return self._exists() if self._data is None else self._data.is_behind()

    def is_busy(self) -> bool:
        """Tell, without waiting, whether another process is writing."""
        return self._data is not None and self._data.is_busy()

    def close(self) -> None:
        """Close the database."""
        if self._data is not None:
            self._data.close()

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Raise as `LedgerError` what the database refuses."""
        try:
            yield
        except StoreError as error:
            raise LedgerError(code=error.code, path=self.path, reason=error.problem, remedy=error.remedy) from error

    def _decoded(self, decode: Callable[..., Any], *columns: object) -> Any:
        try:
            return decode(*columns)
        except (ValueError, TypeError) as error:
            reason, remedy = f"it is damaged (a row can't be read: {error})", "Restore it from a copy."
            raise LedgerError(code="corrupt", path=self.path, reason=reason, remedy=remedy) from error


def _once(event: Event, number: int) -> str:
    """Return what makes two events the same: a claim that is repeated is kept once."""
    if isinstance(event, Claim):
        return json.dumps([event.table, event.name, str(event.id)])
    return str(number)

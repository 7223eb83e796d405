"""Store a ledger in the state database: its tables, and the SQL that reads and writes them."""

from __future__ import annotations

import json
from contextlib import closing, contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from truename.errors import LedgerError, StoreError
from truename.identity import ToolId, fold
from truename.ledger.events import Bind, Claim, LedgerSettings, Own, from_plain
from truename.ledger.journal import is_journal, read_journal
from truename.ledger.likeness import HELD_KEY, INTEGRATIONS, NAME_KEY, TOOL_KEY
from truename.ledger.state import (
    LedgerState,
    NameHolders,
    OriginRow,
    RecordedSpelling,
    ServerCounts,
    Standing,
    WithdrawnRow,
)
from truename.storage import (
    AT_ONCE,
    PATIENCE,
    Database,
    Schema,
    StateLocation,
    Transaction,
    import_tables,
    in_parts,
    insert,
    open_database,
    select,
    select_among,
    upsert,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from truename.ledger.events import Event
    from truename.ledger.rows import RowKey

__all__ = ["SCHEMA", "SqlLedger", "check_ledger"]

# The events keep every name, its holders, and from when to when each held it, for ever. The other tables keep their
# sum. `revision` is the number of the record that wrote a row last.
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
        # By this the last identity of a server is found, whatever it had before.
        ("CREATE INDEX ledger_origin_server ON ledger_origin (server, rank)",),
        # By these a tool is found by a text that may be a name of it (`truename.ledger.likeness`).
        (
            f"CREATE INDEX ledger_origin_name ON ledger_origin (({NAME_KEY}))",
            f"CREATE INDEX ledger_origin_tool ON ledger_origin (({TOOL_KEY[0]})) WHERE {TOOL_KEY[1]}",
            f"CREATE INDEX ledger_spelling_held ON ledger_spelling (scope, ({HELD_KEY[0]})) WHERE {HELD_KEY[1]}",
        ),
    ),
)
# A table with fewer rows is read whole when the ledger is opened; to read more takes longer than it saves.
_MOST_AT_ONCE: Final = 20_000


@lru_cache(maxsize=65_536)
def _id(text: str) -> ToolId:
    return ToolId.parse(text)


def _maybe_id(text: str | None) -> ToolId | None:
    return None if text is None else _id(text)


def _maybe_text(id: ToolId | None) -> str | None:
    return None if id is None else str(id)


class _Table(NamedTuple):
    """The columns of a table's keys and values, and how each is read into Python and written.

    ``stored`` returns a key, or its beginning, as the columns keep it, ``last`` the last part of a key.
    """

    keys: tuple[str, ...]
    columns: tuple[str, ...]
    value: Callable[..., Any]
    row: Callable[[Any], tuple[Any, ...]]
    key: Callable[[RowKey], RowKey] = tuple
    stored: Callable[[RowKey], RowKey] = tuple
    last: Callable[[Any], Any] | None = None


def _event(body: str) -> Event:
    return from_plain(json.loads(body))


def _settings_of(body: str) -> LedgerSettings:
    found = _event(body)
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
        lambda key: (*key[:3], *map(str, key[3:])),
        str,
    ),
    "first_version": _Table(
        ("scope", "integration", "suite", "tool"),
        ("id",),
        _id,
        lambda id: (str(id),),
        lambda key: (*key[:2], key[2] or None, key[3]),
        lambda key: tuple("" if part is None else part for part in key),
    ),
    "origin": _Table(
        ("id",),
        ("server", "name", "server_rank", "rank"),
        OriginRow,
        tuple,
        lambda key: (_id(key[0]),),
        lambda key: tuple(map(str, key)),
        str,
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
# In this order: names that were withdrawn under settings are read after the settings.
_ALWAYS_READ: Final = ("scope", "settings", "withdrawn", "server")
_ORDER: Final = {"settings": "epoch", "withdrawn": "place"}
_READ_WHEN_ASKED: Final = tuple(table for table in _TABLES if table not in _ALWAYS_READ)
_ALL_TABLES: Final = ("ledger_revision", "ledger_event", *(f"ledger_{table}" for table in _TABLES))
_READ: Final = {name: select(f"ledger_{name}", table.columns, where=table.keys) for name, table in _TABLES.items()}
_ROWS: Final = {name: select(f"ledger_{name}", (*table.keys, *table.columns)) for name, table in _TABLES.items()}
_COUNT: Final = {
    name: " ".join(("SELECT count(*) FROM (SELECT 1 FROM", f"ledger_{name}", "LIMIT ?) AS first_rows"))
    for name in _READ_WHEN_ASKED
}
_WRITE: Final = {
    name: upsert(f"ledger_{name}", table.keys, (*table.columns, "revision")) for name, table in _TABLES.items()
}
_ADD: Final = {
    name: insert(f"ledger_{name}", (*table.keys, *table.columns, "revision")) for name, table in _TABLES.items()
}
# What of a table's rows follows from the events alone: a claim that is repeated under other settings is not kept.
_REPLAYED: Final[dict[str, Callable[[Any], object]]] = {
    "scope": bool,
    "settings": LedgerSettings.plain,
    "withdrawn": tuple,
    "holder": lambda holders: holders.first,
    "spelling": lambda spelling: spelling.fold,
}
_SPELLED: Final = "SELECT name FROM ledger_spelling WHERE scope = ? AND fold = ?"
# The ids that begin with a text, see `_after`.
_RANGE: Final = "SELECT id FROM ledger_origin WHERE id >= ? AND id < ?"
_SERVERS: Final = "SELECT DISTINCT server FROM ledger_origin WHERE id >= ? AND id < ?"
_LAST: Final = """
SELECT origin.name, origin.id FROM ledger_origin AS origin
JOIN ledger_binding AS binding ON binding.server = origin.server AND binding.name = origin.name
WHERE origin.server = ? AND binding.id = origin.id AND origin.id LIKE ? ORDER BY origin.rank DESC LIMIT ?
"""
_NAMED: Final = select("ledger_origin", ("id",), then=f"WHERE {NAME_KEY} = ?")
_IDENTIFIED: Final = select("ledger_origin", ("id",), then=f"WHERE {TOOL_KEY[1]} AND {TOOL_KEY[0]} = ?")
_HELD_SO: Final = select("ledger_spelling", ("scope", "fold"), ("scope",), f"AND {HELD_KEY[0]} = ? AND {HELD_KEY[1]}")
# The words of a claim (`_keys`) begin with the id of its tool.
_HELD: Final = select(
    "ledger_event",
    ("once",),
    then=f"JOIN ({_HELD_SO}) AS held ON ledger_event.scope = held.scope AND ledger_event.fold = held.fold",
)
_UNITED_AT_ONCE: Final = AT_ONCE[:-1]
_EVENTS: Final = "SELECT number, scope, fold, once, body FROM ledger_event ORDER BY number"
_EVENT: Final = insert(
    "ledger_event", ("number", "scope", "fold", "once", "body"), "ON CONFLICT (scope, fold, once) DO NOTHING"
)


class SqlLedger:
    """A ledger in a state database; ``patience`` is how many seconds to wait for another process that writes.

    A table with fewer rows than ``at_once`` is read at the start, each row of a larger one when it is asked for.
    """

    def __init__(
        self,
        where: StateLocation | Path,
        *,
        readonly: bool,
        patience: float = PATIENCE,
        at_once: int = _MOST_AT_ONCE,
    ) -> None:
        self._location = StateLocation.of(where)
        self._readonly = readonly
        self._patience = patience
        self._at_once = at_once
        self._state: LedgerState | None = None
        self._empty = LedgerState()
        self._data: Database | None = None
        with _reporting():
            self._open()

    @property
    def path(self) -> Path | None:
        """The file, None for memory."""
        return self._location.path

    @property
    def is_begun(self) -> bool:
        """Whether a ledger was found or created; one opened read-only is not created."""
        return self._data is not None

    def _open(self) -> Database | None:
        """Return the database; None while it has no ledger and this is a reader."""
        if self._data is None and not (self._readonly and not self._location.exists):
            found = open_database(
                self._location,
                SCHEMA,
                patience=self._patience,
                readonly=self._readonly,
                import_former=_import_former,
            )
            if found.is_begun:
                self._data = found
            else:
                found.close()
        return self._data

    def _writable(self) -> Database:
        data = None if self._readonly else self._open()
        if data is None:
            raise LedgerError(code="readonly", path=self.path)
        return data

    def snapshot(self) -> LedgerState:
        """Return the state with all that is committed."""
        # Each request asks this: no context manager for the errors.
        try:
            data = self._open()
            if data is None:
                return self._empty
            if data.has_news() or self._state is None:
                # Rows that cannot be read now are read again the next time.
                state, self._state = self._state, None
                self._state = self._caught_up(data, state)
        except StoreError as error:
            raise _ledger_error(error) from error
        return self._state

    def _caught_up(self, data: Database, state: LedgerState | None) -> LedgerState:
        """Read the rows that others wrote; at the start, the rows that naming always needs, and small tables."""
        rows = _StoredRows(data)
        ((revision,),) = data.rows("SELECT number FROM ledger_revision")
        if state is None:
            state = LedgerState(rows)
            for table in _ALWAYS_READ:
                for key, value in rows.found(table, f"{_ROWS[table]} ORDER BY {_ORDER.get(table, 'revision')}"):
                    state.absorb(table, key, value)
            for table in _READ_WHEN_ASKED:
                ((count,),) = data.rows(_COUNT[table], self._at_once)
                if count >= self._at_once:
                    continue
                if table == "spelling":
                    state.read_spellings()
                else:
                    state.tables[table].under()
        else:
            for table in (*_ALWAYS_READ, *_READ_WHEN_ASKED):
                query = f"{_ROWS[table]} WHERE revision > ? ORDER BY {_ORDER.get(table, 'revision')}"
                for key, value in rows.found(table, query, state.revision):
                    state.absorb(table, key, value)
        state.revision = revision
        return state

    def append(self, events: Sequence[Event], expected_revision: int) -> bool:
        """Commit all events and return True; commit none and return False if the revision is not the expected one."""
        with _reporting():
            data, state = self._writable(), self.snapshot()
            try:
                with data.change() as connection:
                    ((revision, count),) = connection.execute("SELECT number, events FROM ledger_revision").fetchall()
                    if revision != expected_revision or state.revision != expected_revision:
                        return False
                    for event in events:
                        state.apply(event)
                    _write(connection, events, state, revision + 1, count)
                    state.revision = revision + 1
            except BaseException:
                # The applied events are not on the disk: the state is read again.
                self._state = None
                raise
        return True

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Lock out other writers; commit all events of the block at its end, or none."""
        with _reporting():
            try:
                with self._writable().change():
                    yield
            except BaseException:
                self._state = None
                raise

    def history(self, scope: str, name: str) -> tuple[Event, ...]:
        """Return the events of a name, in any spelling, oldest first; repeated claims are stored once."""
        query = "SELECT body FROM ledger_event WHERE scope = ? AND fold = ? ORDER BY number"
        with _reporting():
            data = self._open()
            if data is None:
                return ()
            return tuple(_decoded(data, _event, body) for (body,) in data.rows(query, scope, fold(name)))

    def has_news(self) -> bool:
        """Tell, without waiting, whether others may have written since the last snapshot."""
        return self._location.exists if self._data is None else self._data.is_behind()

    def is_busy(self) -> bool:
        """Tell, without waiting, whether another process is writing."""
        return self._data is not None and self._data.is_busy()

    @property
    def silence(self) -> float:
        """How many seconds ago the database answered last; 0 for a file."""
        return 0.0 if self._data is None else self._data.silence

    def close(self) -> None:
        """Close the database."""
        if self._data is not None:
            self._data.close()


def check_ledger(location: StateLocation) -> tuple[str, ...]:
    """Replay all events, and return a sentence for each table whose rows contradict them.

    Raises `StoreError` for a database that cannot be read.
    """
    with closing(open_database(location, SCHEMA, readonly=True)) as data:
        return tuple(f"{location.name}: {problem}" for problem in _contradictions(data)) if data.is_begun else ()


def _contradictions(data: Database) -> Iterator[str]:
    state, rows = LedgerState(), _StoredRows(data)
    mentioned: set[tuple[str, str, str]] = set()
    shown: set[tuple[str, str, str, str]] = set()
    for number, scope, *keys, body in data.rows(
        "SELECT number, scope, fold, once, body FROM ledger_event ORDER BY number"
    ):
        event = _decoded(data, _event, body)
        if (scope, *keys) != (event.scope, *_keys(event, number)):
            yield f"event {number} of the ledger is damaged"
        state.apply(event)
        mentioned.add((event.scope, keys[0], str(getattr(event, "id", None))))
        if isinstance(event, Claim):
            shown.add((event.scope, event.table, str(event.id), event.name))
    for table, replayed in _REPLAYED.items():
        made = {key: replayed(value) for key, value in state.tables[table].under()}
        found = {key: replayed(value) for key, value in rows.found(table, _ROWS[table])}
        if count := sum(made.get(key) != found.get(key) for key in made.keys() | found.keys()):
            yield f"rows of ledger_{table} that contradict the ledger's events: {count:,}"
    holders = rows.found("holder", _ROWS["holder"])
    if count := sum((*key, str(holder.present)) not in mentioned for key, holder in holders):
        yield f"rows of ledger_holder that name a tool that never had the name: {count:,}"
    names = rows.found("shown", _ROWS["shown"])
    if count := sum((scope, client, str(id), name) not in shown for (scope, _, client, id), name in names):
        yield f"rows of ledger_shown whose name was never given: {count:,}"


@contextmanager
def _reporting() -> Iterator[None]:
    """Raise errors of the database as `LedgerError`."""
    try:
        yield
    except StoreError as error:
        raise _ledger_error(error) from error


def _ledger_error(error: StoreError) -> LedgerError:
    return LedgerError(code=error.code, path=_place(error.file), reason=error.problem, remedy=error.remedy)


def _place(file: str) -> Path | str:
    # A path would lose a slash of a URL.
    return file if "://" in file else Path(file)


class _StoredRows:
    """The rows of a ledger in its database."""

    def __init__(self, data: Database) -> None:
        self._data = data

    def read(self, table: str, key: RowKey) -> Any:
        """Return the value of one row, None if there is none."""
        with _reporting():
            if table == "spellings_of":
                return tuple(name for (name,) in self._data.rows(_SPELLED, *key)) or None
            about = _TABLES[table]
            found = self._data.rows(_READ[table], *about.stored(key))
            return _decoded(self._data, about.value, *found[0]) if found else None

    def read_many(self, table: str, prefix: RowKey, lasts: Collection[Any]) -> dict[Any, Any]:
        """Return the values of those rows that there are, of keys that are ``prefix`` and one of these parts."""
        with _reporting():
            if table == "spellings_of":
                return self._spelled(prefix, lasts)
            about = _TABLES[table]
            *where, among = about.keys
            texts = [about.stored((*prefix, last))[-1] for last in lasts]
            found: dict[Any, Any] = {}
            for part in in_parts(texts):
                query = select_among(f"ledger_{table}", (*about.keys, *about.columns), where, among, len(part))
                stored = about.stored(prefix)
                found |= {key[-1]: value for key, value in self.found(table, query, *stored, *part)}
            return found

    def _spelled(self, prefix: RowKey, folds: Collection[str]) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        for part in in_parts(list(folds)):
            query = select_among("ledger_spelling", ("fold", "name"), ("scope",), "fold", len(part))
            for fold_, name in self._data.rows(query, *prefix, *part):
                found[fold_] = (*found.get(fold_, ()), name)
        return found

    def variants(self, texts: Collection[str]) -> list[ToolId]:
        """Return the identities that are one of these texts and a version."""
        found: dict[ToolId, None] = {}
        with _reporting():
            for part in in_parts(list(texts), _UNITED_AT_ONCE):
                rows = self._united(_RANGE, [(text, _after(text)) for text in part])
                found |= {_decoded(self._data, _id, text): None for (text,) in rows}
        return list(found)

    def servers_with(self, integration: str) -> list[str]:
        """Return the servers that ever had an identity of this integration."""
        first = f"{integration}@"
        with _reporting():
            return [server for (server,) in self._data.rows(_SERVERS, first, _after(first))]

    def alike(self, scope: str, keys: Collection[str], /) -> list[ToolId]:
        """Return the tools with a name of one of these keys, and perhaps others."""
        found: dict[str, None] = {}
        with _reporting():
            for part in in_parts(list(keys), _UNITED_AT_ONCE):
                for query in (_NAMED, _IDENTIFIED):
                    found |= dict.fromkeys(id for (id,) in self._united(query, [(key,) for key in part]))
                claims = self._united(_HELD, [(scope, key) for key in part])
                found |= dict.fromkeys(once.partition(" ")[0] for (once,) in claims if "/" in once)
            return [_decoded(self._data, _id, text) for text in found]

    def _united(self, query: str, values: Sequence[tuple[str, ...]]) -> list[tuple[Any, ...]]:
        """Return what the query finds for each of these values, in one query."""
        # Of one condition for many keys PostgreSQL may expect most of the table, and read all of it.
        return self._data.rows(
            " UNION ALL ".join([query] * len(values)), *(one for several in values for one in several)
        )

    def integrations(self) -> list[str]:
        """Return the integrations of all identities, present and former."""
        with _reporting():
            return [integration for (integration,) in self._data.rows(INTEGRATIONS)]

    def last_bound(self, server: str, version: int | None, most: int, /) -> Iterator[tuple[str, ToolId]]:
        """Yield the last identities of a server, with their names there, the last first.

        With ``version``, those of this version of an integration.
        """
        with _reporting():
            like = "%" if version is None else f"%@{version}/%"
            for name, text in self._data.rows(_LAST, server, like, most):
                yield name, _decoded(self._data, _id, text)

    def under(self, table: str, prefix: RowKey) -> list[tuple[RowKey, Any]]:
        """Return the rows whose keys begin with ``prefix``."""
        about = _TABLES[table]
        query = select(f"ledger_{table}", (*about.keys, *about.columns), where=about.keys[: len(prefix)])
        with _reporting():
            return list(self.found(table, query, *about.stored(prefix)))

    def found(self, table: str, query: str, *values: object) -> Iterator[tuple[RowKey, Any]]:
        """Yield the rows that a query finds in a table, decoded."""
        about = _TABLES[table]
        width = len(about.keys)
        for row in self._data.rows(query, *values):
            key, value = _decoded(self._data, about.key, row[:width]), _decoded(self._data, about.value, *row[width:])
            yield key, value


def _after(text: str) -> str:
    """Return the least text that is larger than all that begin with this one, which is ASCII."""
    return text[:-1] + chr(ord(text[-1]) + 1)


def _decoded(data: Database, decode: Callable[..., object], *columns: object) -> Any:
    try:
        return decode(*columns)
    except (ValueError, TypeError) as error:
        data.refuse(f"it is damaged (a row cannot be read: {error})")


def _write(data: Transaction, events: Sequence[Event], state: LedgerState, revision: int, count: int) -> None:
    """Write the events, behind ``count`` earlier ones, and the rows that they changed."""
    kept = [event for event in events if not isinstance(event, Bind | Own)]
    rows = [
        (number, event.scope, *_keys(event, number), json.dumps(event.plain()))
        for number, event in enumerate(kept, count + 1)
    ]
    data.executemany(_EVENT, rows)
    for table, changed in state.tables.items():
        unstored = changed.take_unstored()
        if added := [row for one in unstored for row in _rows(_TABLES[table], one.prefix, one.added, revision)]:
            data.executemany(_ADD[table], added)
        if put := [row for one in unstored for row in _rows(_TABLES[table], one.prefix, one.changed, revision)]:
            data.executemany(_WRITE[table], put)
    data.execute("UPDATE ledger_revision SET number = ?, events = ?", (revision, count + len(kept)))


def _rows(about: _Table, prefix: RowKey, rows: Mapping[Any, Any], revision: int) -> Iterator[tuple[Any, ...]]:
    stored, last, row = about.stored(prefix), about.last, about.row
    if last is None:
        return ((*stored, key, *row(value), revision) for key, value in rows.items())
    return ((*stored, last(key), *row(value), revision) for key, value in rows.items())


def _import_former(data: Transaction, path: Path) -> None:
    """Import a ledger that an earlier version kept in a file of its own: a journal, or a database."""
    if not is_journal(path):
        data.execute("DELETE FROM ledger_revision")
        import_tables(data, path, {name: (name,) for name in _ALL_TABLES})
        return
    events, state = read_journal(path), LedgerState()
    for event in events:
        state.apply(event)
    _write(data, events, state, 1, 0)


def _keys(event: Event, number: int) -> tuple[str, str]:
    """Return the fold of an event's name, and a text that is equal for repeated claims, which are stored once."""
    once = str(number)
    if isinstance(event, Claim):
        # An id has no space in it, and a table no line break.
        once = f"{event.id} {event.table}\n{event.name}"
    return fold(getattr(event, "name", "")), once

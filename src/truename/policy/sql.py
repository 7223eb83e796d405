"""Store decisions and calls in the state database: their tables, and the SQL that reads and writes them."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NoReturn

from truename.cache import LRUCache
from truename.errors import InvalidToolId, StoreError
from truename.identity import ToolId
from truename.policy import store as limits
from truename.policy.approval_validity import Grant, Subject
from truename.policy.approvals_json import LONGEST_TEXT, is_time, read_book
from truename.policy.store import CallKey, MemoryRecords, StoredCall
from truename.storage import (
    FORMER_REMEDY,
    PATIENCE,
    Database,
    Schema,
    StateLocation,
    Transaction,
    insert,
    open_database,
    select,
    upsert,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path

    from truename.policy.store import ApprovalRecords

__all__ = ["SCHEMA", "SqlApprovalStore"]

# A grant without its limit would cover more than was decided. `covers` has the calls that a grant covers: a later grant
# for the same calls replaces it. `number` is the order in which they were given.
SCHEMA: Final = Schema(
    "approval",
    (
        (
            """
CREATE TABLE approval_grant (
    key TEXT PRIMARY KEY, principal TEXT NOT NULL, agent TEXT NOT NULL, tool TEXT NOT NULL,
    digest TEXT NOT NULL CHECK (digest != ''), shape TEXT NOT NULL, server TEXT NOT NULL, name TEXT NOT NULL,
    endpoint TEXT NOT NULL, approved INTEGER NOT NULL CHECK (approved IN (0, 1)),
    scope TEXT NOT NULL CHECK (scope IN ('call', 'arguments', 'session', 'always')),
    session TEXT NOT NULL CHECK (session != '' OR scope != 'session'),
    call_id TEXT NOT NULL CHECK (call_id != '' OR scope != 'call'),
    arguments TEXT NOT NULL CHECK (arguments != '' OR scope NOT IN ('call', 'arguments')),
    message TEXT NOT NULL, by TEXT NOT NULL, at TEXT NOT NULL, wire_name TEXT NOT NULL, until TEXT NOT NULL,
    covers TEXT NOT NULL, number INTEGER NOT NULL,
    UNIQUE (principal, agent, tool, digest, shape, server, name, endpoint, scope, covers)
)
""",
            "CREATE INDEX approval_grant_tool ON approval_grant (principal, agent, tool)",
            "CREATE INDEX approval_grant_number ON approval_grant (number)",
            """
CREATE TABLE approval_call (
    principal TEXT NOT NULL, session TEXT NOT NULL, call_id TEXT NOT NULL CHECK (call_id != ''), tool TEXT NOT NULL,
    arguments TEXT NOT NULL CHECK (arguments != ''),
    state TEXT NOT NULL CHECK (state IN ('seen', 'running', 'done', 'failed')), at TEXT NOT NULL,
    number INTEGER NOT NULL, PRIMARY KEY (principal, session, call_id)
)
""",
            "CREATE INDEX approval_call_number ON approval_call (number)",
        ),
    ),
)
_ABOUT: Final = ("digest", "shape", "server", "name", "endpoint")
_GRANT: Final = (
    *("key", "principal", "agent", "tool", *_ABOUT, "approved", "scope", "session", "call_id", "arguments"),
    *("message", "by", "at", "wire_name", "until"),
)
_CALL_KEY: Final = ("principal", "session", "call_id")
_CALL: Final = (*_CALL_KEY, "tool", "arguments", "state", "at")
_IN_ORDER: Final = "ORDER BY number"
_GRANTS: Final[dict[tuple[str, ...], str]] = {
    names: select("approval_grant", _GRANT, where=names, then=_IN_ORDER)
    for names in ((), ("key",), ("principal",), ("agent",), ("principal", "agent"))
}
_GRANTS_ABOUT: Final = select("approval_grant", ("number", *_GRANT), where=("principal", "agent", "tool"))
_NEW_GRANT: Final = insert("approval_grant", (*_GRANT, "covers", "number"))
_SAME: Final = """
DELETE FROM approval_grant WHERE principal = ? AND agent = ? AND tool = ? AND digest = ? AND shape = ? AND server = ?
    AND name = ? AND endpoint = ? AND scope = ? AND covers = ?
"""
_NEXT_GRANT: Final = "SELECT coalesce(max(number), 0) + 1 FROM approval_grant"
_NEXT_CALL: Final = "SELECT coalesce(max(number), 0) + 1 FROM approval_call"
_ONE_CALL: Final = select("approval_call", _CALL, where=_CALL_KEY)
_ALL_ABOUT: Final = "SELECT DISTINCT principal, agent, tool FROM approval_grant"
_OF_SESSION: Final = "SELECT principal, agent, tool FROM approval_grant WHERE principal = ? AND session = ?"
_ALL_CALLS: Final = select("approval_call", _CALL_KEY)
_NEW_CALL: Final = upsert("approval_call", _CALL_KEY, ("tool", "arguments", "state", "at", "number"))
_CALLS_OF_SESSION: Final = (
    "SELECT call_id FROM approval_call WHERE principal = ? AND session = ? AND state != 'running'"
)
# Whoever has the most loses the oldest: a flood of one caller does not take another's decision.
_OLDEST: Final = """
SELECT principal, session, call_id FROM approval_call WHERE state != 'running' AND principal = (
    SELECT principal FROM approval_call WHERE state != 'running'
    GROUP BY principal ORDER BY count(*) DESC, min(number) LIMIT 1
) ORDER BY number LIMIT 1
"""
_DROP_CALL: Final = "DELETE FROM approval_call WHERE principal = ? AND session = ? AND call_id = ?"
_DROP_GRANT_OF_CALL: Final = (
    "DELETE FROM approval_grant WHERE scope = 'call' AND principal = ? AND session = ? AND call_id = ?"
)
_DROP_GRANTS_OF_SESSION: Final = "DELETE FROM approval_grant WHERE scope = 'session' AND principal = ? AND session = ?"
# No database takes half of a surrogate pair, which a model may well send. Such a text is kept as JSON behind a
# character that stands for nothing.
_ESCAPED: Final = "\ufffe"
_MOST_KNOWN: Final = 10_000


class SqlApprovalStore:
    """Decisions and calls in a database that threads and processes share.

    All methods raise `StoreError`: ``corrupt``, ``newer``, ``busy``, ``unusable``, ``full``. Reading creates no file.
    ``patience`` is how many seconds to wait for another process; a ``readonly`` store creates no tables either.
    """

    def __init__(
        self, where: StateLocation | Path | str, *, patience: float = PATIENCE, readonly: bool = False
    ) -> None:
        self._location = StateLocation.of(where)
        self._patience = patience
        self._readonly = readonly
        self._data: Database | None = None
        self._known: _KnownRecords | None = None
        self._reading = threading.Lock()
        # The thread that changes something, which alone sees that before it is committed, and by what it does.
        self._changer = 0
        self._book: ApprovalRecords = MemoryRecords()
        self.read()

    def _open(self) -> Database:
        if self._data is None:
            self._data = open_database(
                self._location,
                SCHEMA,
                patience=self._patience,
                readonly=self._readonly,
                import_former=_import_former,
            )
        return self._data

    def read(self) -> ApprovalRecords:
        """Return the present decisions and calls; they must not be changed."""
        if self._data is None and not self._location.has(SCHEMA.part):
            return MemoryRecords()
        if self._readonly and not self._location.exists:
            return MemoryRecords()
        data = self._open()
        if not data.is_begun:
            return MemoryRecords()
        if self._changer == threading.get_ident():
            return self._book
        # Two threads may ask at once, and only one of them hears of the news.
        with self._reading:
            # A file that was moved is refused: rejections, and which calls ran, would be forgotten with it.
            if data.has_news():
                self._known = None
            if self._known is None:
                self._known = _KnownRecords.read(data)
            return self._known

    def has_news(self) -> bool:
        """Return whether `read` may have to ask a server, without waiting for it. A file is at hand."""
        if self._location.url is None:
            return False
        return self._data is None or self._known is None or self._data.is_behind()

    def reads(self, where: CallKey, agent: str, ids: Collection[ToolId]) -> bool:
        """Return whether a look at the record of a call, and at the grants about tools, has to ask a server."""
        if self._location.url is None:
            return False
        known = self._known
        return known is None or self.has_news() or known.lacks(where, agent, ids)

    @contextmanager
    def change(self) -> Iterator[ApprovalRecords]:
        """Lock out other threads and processes; commit all changes of the block, or none if it raises."""
        data, changer = self._open(), threading.get_ident()
        if self._changer == changer:
            yield self._book
            return
        book = _SqlBook(data)
        is_over = False
        try:
            with data.change():
                self._changer, self._book = changer, book
                try:
                    yield book
                finally:
                    self._changer = 0
                is_over = True
        finally:
            # A change that failed before was rolled back, and one whose commit failed may be stored.
            if is_over:
                self._take_in(data, book)

    def _take_in(self, data: Database, book: _SqlBook) -> None:
        """Have what is known be without what was changed, and read that at once: the database may be away later."""
        with self._reading, suppress(StoreError):
            # Whoever asks the earlier object meanwhile keeps there what it read before the change.
            known, self._known = self._known, None
            is_all_known = known is not None and not data.has_news()
            self._known = known.without(book) if known is not None and is_all_known else _KnownRecords.read(data)
            self._known.recall(book.grant_keys)

    def close(self) -> None:
        """Close the database."""
        if self._data is not None:
            self._data.close()


class _SqlBook:
    """Decisions and calls, each read when it is asked for; ``grant_keys`` and ``call_keys`` are those it changed."""

    def __init__(self, data: Database) -> None:
        self._data = data
        self.grant_keys: set[tuple[str, ...]] = set()
        self.call_keys: set[tuple[str, ...]] = set()

    def grants(self, principal: str | None = None, agent: str | None = None) -> Sequence[Grant]:
        """Return the grants of a principal and an agent (None: of all), in the order in which they were given."""
        wanted = {name: text for name, text in (("principal", principal), ("agent", agent)) if text is not None}
        rows = self._data.rows(_GRANTS[tuple(wanted)], *map(_stored, wanted.values()))
        return [self._grant(row) for row in rows]

    def about(self, principal: str, agent: str, ids: Collection[ToolId]) -> Sequence[Grant]:
        """Return the grants of a principal and an agent for tools, in the order in which they were given."""
        whose = _stored(principal), _stored(agent)
        rows = [row for id in ids for row in self._rows_about(*whose, str(id))]
        return [self._grant(row[1:]) for row in sorted(rows)]

    def _rows_about(self, principal: str, agent: str, id: str) -> Sequence[tuple[Any, ...]]:
        return self._data.rows(_GRANTS_ABOUT, principal, agent, id)

    def keep(self, grant: Grant) -> None:
        """Add a grant; it replaces one that covers the same calls."""
        row = _grant_row(grant, self._data)
        covers = json.dumps(grant.covers_same[-1])
        self.grant_keys.add(tuple(map(str, row[1:4])))
        with self._data.change() as data:
            data.execute(_SAME, (*row[1:9], grant.scope, covers))
            ((count,),) = data.execute("SELECT count(*) FROM approval_grant").fetchall()
            if count >= limits.MAX_GRANTS:
                self._refuse_full(f"it holds {limits.MAX_GRANTS:,} decisions, the most that it can")
            ((number,),) = data.execute(_NEXT_GRANT).fetchall()
            data.execute(_NEW_GRANT, (*row, covers, number))

    def drop(self, key: str) -> Grant | None:
        """Remove a grant by its key and return it; return None if there is none."""
        with self._data.change() as data:
            rows = self._data.rows(_GRANTS[("key",)], key)
            self.grant_keys.update(row[1:4] for row in rows)
            data.execute("DELETE FROM approval_grant WHERE key = ?", (key,))
        return self._grant(rows[0]) if rows else None

    def call(self, where: CallKey) -> StoredCall | None:
        """Return the record of a call."""
        rows = self._data.rows(_ONE_CALL, *map(_stored, where))
        return self._call(rows[0]) if rows else None

    def put(self, record: StoredCall) -> None:
        """Write the record of a call, in the place of an earlier one."""
        row = _call_row(record, self._data)
        self.call_keys.add(tuple(map(str, row[:3])))
        with self._data.change() as data:
            is_new = not data.execute(_ONE_CALL, row[:3]).fetchall()
            ((count,),) = data.execute("SELECT count(*) FROM approval_call").fetchall()
            if is_new and count >= limits.MAX_CALLS:
                self._make_room(data)
            ((number,),) = data.execute(_NEXT_CALL).fetchall()
            data.execute(_NEW_CALL, (*row, number))

    def forget(self, principal: str, session: str) -> None:
        """Remove the decisions and calls of one session; a call that is running is still not run again."""
        whose = _stored(principal), _stored(session)
        with self._data.change() as data:
            self.grant_keys.update(data.execute(_OF_SESSION, whose))
            for (call_id,) in data.execute(_CALLS_OF_SESSION, whose).fetchall():
                data.execute(_DROP_CALL, (*whose, call_id))
                data.execute(_DROP_GRANT_OF_CALL, (*whose, call_id))
            data.execute(_DROP_GRANTS_OF_SESSION, whose)

    def _make_room(self, data: Transaction) -> None:
        oldest = data.execute(_OLDEST).fetchone()
        if oldest is None:
            self._refuse_full(f"{limits.MAX_CALLS:,} calls are running, the most that can")
        self.grant_keys.update(data.execute(_OF_SESSION, oldest[:2]))
        data.execute(_DROP_CALL, oldest)
        data.execute(_DROP_GRANT_OF_CALL, oldest)

    def _refuse_full(self, problem: str) -> NoReturn:
        self._data.refuse(problem, "full", "Revoke what is not needed, or end sessions.")

    def _grant(self, row: Sequence[Any]) -> Grant:
        values = dict(zip(_GRANT, row, strict=True))
        approved = values.pop("approved")
        texts = self._texts("grant", values)
        id = self._id("grant", texts.pop("tool"))
        if (until := texts["until"]) and not is_time(until):
            self._data.refuse(f"the grant {texts['key']!r} is damaged (until)")
        subject = Subject(id, *(texts.pop(name) for name in _ABOUT))
        scope: Any = texts.pop("scope")
        return Grant(approved=bool(approved), scope=scope, subject=subject, **texts)

    def _call(self, row: Sequence[Any]) -> StoredCall:
        texts = self._texts("call", dict(zip(_CALL, row, strict=True)))
        where = CallKey(*(texts[name] for name in _CALL_KEY))
        state: Any = texts["state"]
        id = self._id("call", texts["tool"])
        return StoredCall(where=where, id=id, arguments=texts["arguments"], state=state, at=texts["at"])

    def _texts(self, kind: str, values: dict[str, object]) -> dict[str, str]:
        try:
            return {name: _loaded(value) for name, value in values.items()}
        except (TypeError, ValueError):
            self._data.refuse(f"a {kind} is damaged (a text is none)")

    def _id(self, kind: str, text: str) -> ToolId:
        try:
            found = ToolId.parse(text)
        except InvalidToolId:
            found = None
        if found is None or str(found) != text:
            self._data.refuse(f"a {kind} is damaged ({text!r} is not a tool id)")
        return found


class _KnownRecords(_SqlBook):
    """The records until somebody changes them: what every call asks is read from the database once.

    ``decided`` has the principals, agents and tools about which there may be decisions, ``recorded`` the calls of which
    there may be a record. Most calls are in neither, so they are known without the database, which may be away.
    """

    def __init__(
        self, data: Database, decided: frozenset[tuple[str, ...]], recorded: frozenset[tuple[str, ...]]
    ) -> None:
        super().__init__(data)
        self._decided = decided
        self._recorded = recorded
        self._about: LRUCache[tuple[str, ...], tuple[tuple[Any, ...], ...]] = LRUCache(_MOST_KNOWN)

    @classmethod
    def read(cls, data: Database) -> _KnownRecords:
        """Read about what there are decisions and records."""
        return cls(data, frozenset(data.rows(_ALL_ABOUT)), frozenset(data.rows(_ALL_CALLS)))

    def without(self, book: _SqlBook) -> _KnownRecords:
        """Return the same without what a change was about."""
        known = _KnownRecords(self._data, self._decided | book.grant_keys, self._recorded | book.call_keys)
        known._about = self._about.copy()
        for key in book.grant_keys:
            known._about.pop(key)
        return known

    def recall(self, keys: Collection[tuple[str, ...]]) -> None:
        """Read the decisions on these keys."""
        for key in keys:
            self._rows_about(*key)

    def lacks(self, where: CallKey, agent: str, ids: Collection[ToolId]) -> bool:
        """Return whether `call` and `about` read something."""
        if self._recorded and tuple(map(_stored, where)) in self._recorded:
            return True
        keys = ((_stored(where.principal), _stored(agent), str(id)) for id in ids) if self._decided else ()
        return any(key in self._decided and key not in self._about for key in keys)

    def call(self, where: CallKey) -> StoredCall | None:
        """Return the record of a call."""
        is_recorded = self._recorded and tuple(map(_stored, where)) in self._recorded
        return super().call(where) if is_recorded else None

    def about(self, principal: str, agent: str, ids: Collection[ToolId]) -> Sequence[Grant]:
        """Return the grants of a principal and an agent for tools, in the order in which they were given."""
        return super().about(principal, agent, ids) if self._decided else ()

    def _rows_about(self, principal: str, agent: str, id: str) -> Sequence[tuple[Any, ...]]:
        key = principal, agent, id
        if key not in self._decided:
            return ()
        if (rows := self._about.get(key)) is None:
            rows = self._about[key] = tuple(super()._rows_about(principal, agent, id))
        return rows


def _import_former(data: Transaction, path: Path) -> None:
    """Import the decisions and calls that an earlier version kept as JSON. Raises `StoreError`."""
    try:
        book = read_book(path.read_bytes(), str(path))
    except OSError as error:
        problem = f"it cannot be read ({error.strerror or error})"
        raise StoreError(file=str(path), key="", problem=problem, remedy=FORMER_REMEDY, code="unusable") from error
    except StoreError as error:
        raise replace(error, remedy=error.remedy if error.code == "newer" else FORMER_REMEDY) from error
    for number, grant in enumerate(book.grants(), 1):
        data.execute(_NEW_GRANT, (*_grant_row(grant, None), json.dumps(grant.covers_same[-1]), number))
    for number, record in enumerate(book.calls(), 1):
        data.execute(_NEW_CALL, (*_call_row(record, None), number))


def _grant_row(grant: Grant, data: Database | None) -> list[object]:
    values = {**vars(grant), **grant.subject._asdict(), "tool": str(grant.subject.id), "approved": int(grant.approved)}
    return [_checked(name, values[name], data) for name in _GRANT]


def _call_row(record: StoredCall, data: Database | None) -> list[object]:
    values = {**vars(record), **record.where._asdict(), "tool": str(record.id)}
    return [_checked(name, values[name], data) for name in _CALL]


def _checked(name: str, value: object, data: Database | None) -> object:
    if isinstance(value, str):
        if data is not None and len(value) > LONGEST_TEXT:
            data.refuse(f"{name} has more than {LONGEST_TEXT:,} characters", "full", "Use a shorter one.")
        return _stored(value)
    return value


def _stored(text: str) -> str:
    if text.startswith(_ESCAPED) or not _is_encodable(text):
        return _ESCAPED + json.dumps(text)
    return text


def _loaded(value: object) -> str:
    if not isinstance(value, str):
        message = "a text is none"
        raise TypeError(message)
    return str(json.loads(value[1:])) if value.startswith(_ESCAPED) else value


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True

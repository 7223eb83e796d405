"""Store the end of each chain of the audit log in the state database, where whoever can change the files cannot."""

from __future__ import annotations

import hmac
import logging
import os
import secrets
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal

from truename.audit.chain import canonical, sum_of
from truename.audit.head import LogHead
from truename.errors import StoreError
from truename.storage import Schema, insert, open_database, select

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from truename.audit.chains import ChainPlace
    from truename.storage import Database, StateLocation, Transaction

__all__ = ["HEADS_SCHEMA", "HeadKeeper", "HeadState", "HeadStore", "StoredHead"]

HeadState = Literal["open", "closed", "removed"]

_log: Final = logging.getLogger("truename.audit")
HEADS_SCHEMA: Final = Schema(
    "audit",
    (
        (
            """
CREATE TABLE audit_head (
    chain TEXT PRIMARY KEY, directory TEXT NOT NULL, name TEXT NOT NULL, host TEXT NOT NULL, path TEXT NOT NULL,
    writer TEXT NOT NULL, number INTEGER NOT NULL, hash TEXT NOT NULL, state TEXT NOT NULL, lost INTEGER NOT NULL,
    at TEXT NOT NULL, sum TEXT NOT NULL
)
""",
        ),
    ),
    is_quiet=True,
)
_COLUMNS: Final = (
    *("chain", "directory", "name", "host", "path", "writer", "number", "hash", "state", "lost", "at", "sum"),
)
_SELECT: Final = select("audit_head", _COLUMNS)
_OF_CHAIN: Final = select("audit_head", _COLUMNS, where=("chain",))
_INSERT: Final = insert("audit_head", _COLUMNS)
_DELETE: Final = "DELETE FROM audit_head WHERE chain = ?"
# The longest that a head is behind its chain while the database answers, in seconds.
_EVERY: Final = 1.0
_PATIENCE: Final = 2.0
_END: Final = 5.0


@dataclass(frozen=True, kw_only=True)
class StoredHead:
    """The end of one chain as the state database has it.

    ``directory`` is the id of the audit directory, ``name`` the chain's folder in it (``""``: the directory itself);
    ``host`` and ``path`` say where its writer saw it. ``state``: ``open`` (its writer runs, or was killed), ``closed``
    (this is the last record that its writer wrote) or ``removed`` (pruned as a whole). ``lost`` counts records that
    were never written. ``is_genuine`` is false for a row that was not made with the key of the log.
    """

    chain: str
    directory: str
    name: str
    host: str
    path: str
    writer: str
    number: int
    hash: str
    state: HeadState
    lost: int
    at: str
    is_genuine: bool = True

    @property
    def head(self) -> LogHead:
        """The record that the chain must have."""
        return LogHead(self.chain, self.number, self.hash)


class HeadStore:
    """The heads of all chains, in the state database. Methods raise `StoreError`.

    A database that lost changes is read all the same: what it says of the audit log is then older, and never wrong. It
    is not written.
    """

    def __init__(self, location: StateLocation, key: bytes | None, *, readonly: bool = False) -> None:
        self._key = key
        self._database: Database = open_database(
            location, HEADS_SCHEMA, patience=_PATIENCE, readonly=readonly, checks_revision=not readonly
        )

    @classmethod
    def readable(cls, location: StateLocation, key: bytes | None) -> Self | None:
        """Open the heads for reading where a gateway stored some; None where there are none, or no database."""
        if location.is_memory or not location.exists:
            return None
        found = cls(location, key, readonly=True)
        if found.is_begun:
            return found
        found.close()
        return None

    @classmethod
    def writable(cls, location: StateLocation, key: bytes | None) -> Self | None:
        """Open the heads for a command, which makes no database; None where no gateway has stored some."""
        found = cls.readable(location, key)
        if found is None:
            return None
        found.close()
        return cls(location, key)

    @property
    def is_begun(self) -> bool:
        """Whether the database has a place for heads."""
        return self._database.is_begun

    def all(self) -> tuple[StoredHead, ...]:
        """Return the heads of all chains, by host and name."""
        found = (self._read(row) for row in self._database.rows(_SELECT))
        return tuple(sorted(found, key=lambda one: (one.host, one.path, one.name, one.chain)))

    def of(self, chain: str) -> StoredHead | None:
        """Return the head of one chain."""
        rows = self._database.rows(_OF_CHAIN, chain)
        return self._read(rows[0]) if rows else None

    def claim(self, stored: StoredHead) -> None:
        """Store the head of a chain that its writer takes, whoever wrote it before."""
        with self._database.change() as data:
            self._put(data, stored)

    def advance(self, stored: StoredHead) -> StoredHead | None:
        """Store a later head of the writer's chain; return the head of another writer that has taken it instead.

        A head that is missing, as in a database that was restored, is stored anew.
        """
        with self._database.change() as data:
            rows = data.execute(_OF_CHAIN, (stored.chain,)).fetchall()
            before = self._read(rows[0]) if rows else None
            if before is not None and before.writer != stored.writer:
                return before
            self._put(data, stored)
        return None

    def add(self, head: LogHead, place: ChainPlace) -> None:
        """Store the head after records of a command, which is not the owner of the chain.

        The head of a gateway that writes the chain moves on, and stays that of the gateway.
        """
        with self._database.change() as data:
            rows = data.execute(_OF_CHAIN, (head.journal,)).fetchall()
            before = self._read(rows[0]) if rows else None
            if before is None:
                self._put(data, new_head(head, place, "command", "closed"))
            elif before.number < head.number:
                self._put(data, replace(before, number=head.number, hash=head.hash, at=_now()))

    def remove(self, stored: StoredHead) -> None:
        """Note that a chain was pruned as a whole."""
        with self._database.change() as data:
            self._put(data, replace(stored, state="removed", at=_now()))

    def _put(self, data: Transaction, stored: StoredHead) -> None:
        data.execute(_DELETE, (stored.chain,))
        values = {name: getattr(stored, name) for name in _COLUMNS[:-1]}
        data.execute(_INSERT, (*values.values(), sum_of(canonical(values), self._key)))

    def _read(self, row: tuple[Any, ...]) -> StoredHead:
        *values, said = row
        fields = dict(zip(_COLUMNS[:-1], values, strict=True))
        is_genuine = hmac.compare_digest(str(said).encode(), sum_of(canonical(fields), self._key).encode())
        return StoredHead(**fields, is_genuine=is_genuine)

    def close(self) -> None:
        """Close the database."""
        self._database.close()


def new_head(head: LogHead, place: ChainPlace, writer: str, state: HeadState, lost: int = 0) -> StoredHead:
    """Return the head of a chain in its place, to be stored."""
    return StoredHead(
        chain=head.journal,
        directory=place.directory_id,
        name=place.name,
        host=place.host,
        path=str(place.directory),
        writer=writer,
        number=head.number,
        hash=head.hash,
        state=state,
        lost=lost,
        at=_now(),
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class HeadKeeper:
    """Store the head of a writer's chain about every second, on a thread of its own, and at the end.

    No record waits for the database: while it is away, the head is behind, and records go on. ``head`` and ``lost`` are
    asked for the present end of the chain and the number of records that were lost.
    """

    def __init__(
        self,
        location: StateLocation,
        key: bytes | None,
        place: ChainPlace,
        head: Callable[[], LogHead],
        lost: Callable[[], int],
        *,
        every: float = _EVERY,
    ) -> None:
        self._location, self._key, self._place = location, key, place
        self._head, self._lost = head, lost
        self._every = every
        self._writer = f"{place.host}:{os.getpid()}:{secrets.token_hex(8)}"
        self._store: HeadStore | None = None
        self._lost_before = 0
        self._is_claimed = False
        self._stored: tuple[LogHead, int] | None = None
        self._behind_since = 0.0
        self._problem = ""
        self._check: Callable[[LogHead], object] = lambda _: None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="truename-audit-heads", daemon=True)

    def begin(self, check: Callable[[LogHead], object]) -> None:
        """Take the chain: ``check`` is called with its stored head, if there is one; then go on in the thread.

        Raises what ``check`` raises. A database that cannot be used is asked again later, and logged.
        """
        self._check = check
        try:
            self._store = HeadStore(self._location, self._key)
            before = self._store.of(self._head().journal)
        except StoreError as error:
            self._report(str(error))
        else:
            self._begin(self._store, before)
        self._thread.start()

    def _begin(self, store: HeadStore, before: StoredHead | None) -> None:
        try:
            self._check_stored(before)
        except BaseException:
            store.close()
            raise
        with suppress(StoreError):  # the thread tries again, and reports it
            self._claim(store)

    def _check_stored(self, before: StoredHead | None) -> None:
        if before is not None and before.is_genuine:
            self._check(before.head)
            self._lost_before = before.lost

    def _claim(self, store: HeadStore) -> None:
        head, lost = self._head(), self._lost()
        store.claim(new_head(head, self._place, self._writer, "open", self._lost_before + lost))
        self._is_claimed, self._stored = True, (head, lost)

    @property
    def behind(self) -> float:
        """For how many seconds the stored head has not been that of the chain."""
        return time.monotonic() - self._behind_since if self._behind_since else 0.0

    def _run(self) -> None:
        while not self._ended.wait(self._every):
            self._keep("open")

    def _keep(self, state: HeadState) -> None:
        now = (self._head(), self._lost())
        if now == self._stored and state == "open":
            self._behind_since = 0.0
            return
        self._behind_since = self._behind_since or time.monotonic()
        try:
            self._store_head(now, state)
        except StoreError as error:
            self._report(str(error))

    def _store_head(self, now: tuple[LogHead, int], state: HeadState) -> None:
        if self._store is None:
            self._store = HeadStore(self._location, self._key)
        head, lost = now
        if not self._is_claimed:
            self._check_stored(self._store.of(head.journal))
            self._claim(self._store)
        stored = new_head(head, self._place, self._writer, state, self._lost_before + lost)
        other = self._store.advance(stored)
        if other is not None:
            self._report(f"Another process ({other.writer}) continues this chain: one of the two writes to a copy.")
            return
        self._stored, self._behind_since, self._problem = now, 0.0, ""

    def _report(self, problem: str) -> None:
        if problem != self._problem:
            self._problem = problem
            _log.warning("Cannot store the head of the audit log %s: %s", self._place.path, problem)

    def close(self, *, has_ended: bool = True) -> None:
        """Store the last head, as that of a chain that has ended. Waits some seconds at most."""
        self._ended.set()
        self._thread.join(_END)
        if self._thread.is_alive():
            return
        self._keep("closed" if has_ended else "open")
        if self._store is not None:
            self._store.close()

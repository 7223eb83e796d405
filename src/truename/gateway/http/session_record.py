"""What is kept of sessions beside their ids: the key of these, when each was used last, and which were ended.

All of it is in one file: whoever loses it, or puts another in its place, has no id opened any more, so none that was
ended is good again for want of the note that says so.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import time
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Final

import anyio

from truename.auth.vault import open_vault_at
from truename.errors import ConfigError, StoreError
from truename.gateway.background import background
from truename.gateway.http.session_ids import SessionIds
from truename.gateway.protocol.turns import in_thread
from truename.storage import Schema, StateLocation, import_tables, open_database
from truename.storage.vault_keys import KEY_BYTES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from truename.gateway.http.session_ids import Handshake, Opened

__all__ = ["MOST_ENDED", "SCHEMA", "SessionRecord"]

log: Final = logging.getLogger("truename.gateway")

MOST_ENDED: Final = 100_000
"""How many ended sessions are remembered. Beyond it the oldest are forgotten, and with them all others that were issued
until then and of which no use is written down: what cannot be told from an ended one is not gone on with."""

SCHEMA: Final = Schema(
    "session",
    (
        (
            # Empty: the vault has the key. An earlier version that goes on with the table makes a key of its own.
            "CREATE TABLE session_key (key BLOB NOT NULL)",
            "CREATE TABLE session_used (name BLOB PRIMARY KEY, at REAL NOT NULL)",
            "CREATE TABLE session_ended (name BLOB PRIMARY KEY, until REAL NOT NULL)",
            "CREATE TABLE session_forgotten (until REAL NOT NULL)",
        ),
    ),
    # Each id that comes is looked up, so nobody has to be woken when sessions were used.
    is_quiet=True,
)
_USED: Final = "INSERT INTO session_used (name, at) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET at = excluded.at"
_ENDED: Final = (
    "INSERT INTO session_ended (name, until) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET until = excluded.until"
)
_UNUSED: Final = "DELETE FROM session_used WHERE at < ? OR name IN (SELECT name FROM session_ended)"
_import_former: Final = partial(
    import_tables,
    names={
        "session_key": ("session_key", "sealing"),
        "session_used": ("session_used", "used"),
        "session_ended": ("session_ended", "ended"),
        "session_forgotten": ("session_forgotten", "forgotten"),
    },
)
_SHARED_KEY: Final = "session ids"
_EVERY: Final = 10.0
_UNKEPT: Final = "Sessions will not survive a restart, because their database cannot be used. %s"


class SessionRecord:
    """The ids of sessions, and which of these are good: those used within ``lasts`` seconds and not ended.

    Without a path nothing outlives the process. Raises `StoreError` for a file that cannot be used.
    """

    def __init__(
        self,
        where: StateLocation | Path | None,
        lasts: float,
        *,
        clock: Callable[[], float] = time.time,
        most: int = MOST_ENDED,
    ) -> None:
        self._lasts = lasts
        self._clock = clock
        self._most = most
        # The id that this process will have among the replicas, while it is none of them, though there may be some.
        self.lone_owner: str | None = None
        self._file = open_database(where, SCHEMA, import_former=_import_former)
        # What is not written yet. Requests note the id itself: a digest for each takes longer than all else here.
        self._used: dict[str, float] = {}
        self._ended: dict[bytes, float] = {}
        self._writing = anyio.Lock()
        try:
            self._sealing_key = self._key()
            self._ids = SessionIds(self._sealing_key)
        except BaseException:
            self.close()
            raise

    def _key(self) -> bytes:
        """Return the key of the ids, which the vault has. An earlier version kept it as it is in a table of its own."""
        rows = [key for (key,) in self._file.rows("SELECT key FROM session_key")]
        if len(rows) > 1 or any(not isinstance(key, bytes) or len(key) != KEY_BYTES for key in rows):
            self._file.refuse("its key is not the one that it was created with")
        with open_vault_at(self._file.location) as vault:
            key = vault.key(_SHARED_KEY, *rows)
        if rows and not self._file.readonly_because:
            with self._file.change() as data:
                data.execute("DELETE FROM session_key")
            self._file.empty_log()
        return key

    def derived_key(self, purpose: bytes) -> bytes:
        """Return a key of 32 bytes for another purpose, which all processes on this database derive alike."""
        return hmac.digest(self._sealing_key, b"truename derived:" + purpose, hashlib.sha256)

    @property
    def is_shared(self) -> bool:
        """Whether other processes may have the same record."""
        return not self._file.location.is_memory

    @classmethod
    def opened(cls, where: StateLocation | Path | None, lasts: float) -> SessionRecord:
        """Open a record; if its file cannot be used, log that and keep the record in memory.

        Raises `ConfigError` for a database of a server: the other gateways would not know this one's sessions.
        """
        try:
            return cls(where, lasts)
        except ConfigError as error:
            if StateLocation.of(where).url is not None:
                raise
            log.warning(_UNKEPT, error)
            return cls(None, lasts)

    @asynccontextmanager
    async def keeping(self, look: Callable[[], None]) -> AsyncIterator[None]:
        """Write now and then what was used, while the block lasts. ``look`` notes what is in use just now."""
        async with background() as tasks:
            tasks.start_soon(self._keep, look)
            yield

    async def _keep(self, look: Callable[[], None]) -> None:
        while True:
            await anyio.sleep(min(_EVERY, max(self._lasts / 10, 0.05)))
            look()
            await self.write()

    def issue(self, place: str, handshake: Handshake | None, owner: str | None = None) -> str:
        """Return the id of a session that begins at a replica (`SessionIds`).

        One that begins while this process has a `lone_owner` is good here only: nobody could tell whether it is over.
        """
        if self.lone_owner is not None:
            handshake, owner = None, self.lone_owner
        return self._ids.issue(place, handshake, now=self._clock(), lasts=self._lasts, owner=owner)

    def use(self, id: str) -> None:
        """Note that a session is in use."""
        self._used[id] = self._clock()

    def issued(self, place: str, id: str) -> Opened | None:
        """Return what an id says that was issued for this place, good or not; None for every other."""
        return self._ids.open(place, id)

    async def good(self, place: str, id: str) -> Handshake | None:
        """Return what was agreed on in a session that may go on here; None for every other id.

        None goes on here while this process has a `lone_owner`: a replica may have it. Raises `StoreError` where that
        cannot be found out.
        """
        opened = self.issued(place, id)
        if opened is None or self.lone_owner is not None or not await in_thread(partial(self._is_good, id, opened)):
            return None
        return opened.handshake

    def _is_good(self, id: str, opened: Opened) -> bool:
        name = _name(id)
        until = opened.issued + min(opened.lasts, self._lasts)
        if name in self._ended or self._file.rows("SELECT 1 FROM session_ended WHERE name = ?", name):
            return False
        used = [at for (at,) in self._file.rows("SELECT CAST(at AS REAL) FROM session_used WHERE name = ?", name)]
        used += [self._used[id]] if id in self._used else []
        if used:
            until = max(until, max(used) + self._lasts)
        elif self._file.rows("SELECT 1 FROM session_forgotten WHERE until >= ?", opened.issued + opened.lasts):
            return False
        return self._clock() < until

    async def end(self, place: str, id: str) -> None:
        """Have a session be ended for good; what is no id of one is nothing to end."""
        opened = self.issued(place, id)
        if opened is None:
            return
        # Until then its id could be taken for that of a session that is in use: its last requests end after this.
        lasts = max(opened.lasts, self._lasts)
        self._ended[_name(id)] = self._clock() + lasts
        await self.write()

    async def write(self) -> None:
        """Write down what was used and ended; what cannot be written stays in memory and is tried again."""
        async with self._writing:
            used, ended = self._used, dict(self._ended)
            if not (used or ended):
                return
            self._used = {}
            try:
                await in_thread(partial(self._write, used, ended))
            except StoreError as error:
                log.warning("Cannot record which sessions were used or ended. %s", error)
                now = self._clock()
                self._used = {id: at for id, at in (used | self._used).items() if at > now - self._lasts}
                ended = {name: until for name, until in ended.items() if until < now}
            for name in ended:
                self._ended.pop(name, None)

    def _write(self, used: dict[str, float], ended: dict[bytes, float]) -> None:
        now = self._clock()
        with self._file.change() as data:
            data.executemany(_USED, [(_name(id), at) for id, at in used.items()])
            data.executemany(_ENDED, ended.items())
            data.execute(_UNUSED, (now - self._lasts,))
            data.execute("DELETE FROM session_ended WHERE until < ?", (now,))
            data.execute("DELETE FROM session_forgotten WHERE until < ?", (now,))
            (count,) = data.execute("SELECT count(*) FROM session_ended").fetchone()
            if count > self._most:
                query = "SELECT until FROM session_ended ORDER BY until LIMIT 1 OFFSET ?"
                (until,) = data.execute(query, (count - self._most - 1,)).fetchone()
                data.execute("DELETE FROM session_ended WHERE until <= ?", (until,))
                data.execute("DELETE FROM session_forgotten")
                data.execute("INSERT INTO session_forgotten (until) VALUES (?)", (until,))

    def close(self) -> None:
        """Close the file."""
        with suppress(StoreError):
            self._file.close()


def _name(id: str) -> bytes:
    return hashlib.sha256(id.encode("utf-8", "surrogateescape")).digest()[:16]

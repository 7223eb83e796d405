"""Register this gateway among the replicas of its scope, keep its lease, and take named leases under it.

Each process has one row with a heartbeat. What it holds (a session, a server) is a named lease: a row with the
holder's id and a fencing token of its own. A named lease lasts as long as the row of its holder, so nothing is written
for it while it is held. A replica whose heartbeat stood still is removed by whoever wants something that it holds, in
the transaction that takes it: only one of several wins. A process that lost its row holds nothing, and registers anew
under another id and a larger token.

While the database cannot be reached nobody can take a lease, and holders go on. When it is back, a holder asks for its
row before others can have watched it for long enough.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from truename.errors import StoreError
from truename.gateway.replicas.liveness import INTERVAL, VALIDITY, Observations, Replica, awake_clock, lease_clock
from truename.gateway.replicas.machine import machine_id
from truename.storage import Schema, open_database

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from truename.storage import StateLocation
    from truename.storage.database import Transaction

__all__ = ["SCHEMA", "HeldLease", "LeaseLostError", "ReplicaRegistry", "new_replica_id"]

log: Final = logging.getLogger("truename.gateway")

SCHEMA: Final = Schema(
    "replica",
    (
        (
            """
CREATE TABLE replica (
    id TEXT PRIMARY KEY, address TEXT NOT NULL, machine TEXT NOT NULL, fence INTEGER NOT NULL, beat INTEGER NOT NULL
)
""",
            "CREATE TABLE replica_fence (one INTEGER PRIMARY KEY, last INTEGER NOT NULL)",
            "CREATE TABLE replica_lease (name TEXT PRIMARY KEY, holder TEXT NOT NULL, fence INTEGER NOT NULL)",
            "CREATE INDEX replica_lease_holder ON replica_lease (holder)",
        ),
    ),
)
_FENCE: Final = """
INSERT INTO replica_fence (one, last) VALUES (1, 1)
ON CONFLICT (one) DO UPDATE SET last = replica_fence.last + 1 RETURNING last
"""
_READ: Final = "SELECT id, address, machine, fence, beat FROM replica ORDER BY fence"
# An attempt that was reported to have failed may have been stored. Both statements count on from what is stored: others
# that read the same number again would go on counting from the first attempt, and the holder counts from the last one.
_ENTER: Final = """
INSERT INTO replica (id, address, machine, fence, beat) VALUES (?, ?, ?, ?, 0)
ON CONFLICT (id) DO UPDATE SET address = excluded.address, fence = excluded.fence, beat = replica.beat + 1
"""
_BEAT: Final = "UPDATE replica SET beat = beat + 1 WHERE id = ?"
_HOLD: Final = """
INSERT INTO replica_lease (name, holder, fence) VALUES (?, ?, ?)
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, fence = excluded.fence
"""
# A stutter that nobody noticed costs nothing: rows are removed when somebody wants what they hold, or after this.
_FORGOTTEN: Final = 15.0
# A look that takes longer counts as one in vain.
_PATIENCE: Final = 1.0
# A wait for a look has such parts. In one that takes longer the process was stopped: the look has its time anew.
_SLICE: Final = 0.125
_LONGEST_SLICE: Final = 0.5
# What takes longer, with the pause before it, was interrupted: the process was stopped, or the machine slept.
_LONGEST_LOOK: Final = INTERVAL + _PATIENCE + 0.5
# After a look in vain, a holder goes on for so long without another one. It is shorter than `EXPIRY`: when the database
# is back, the holder asks before others may take anything over.
_EXCUSED: Final = 1.0
# Who asks again after so many looks is told that the database is away.
_MOST_LOOKS: Final = 3
# Seconds between two looks while somebody waits for a replica to beat or to expire.
_HASTE: Final = 0.1
_JOIN: Final = 2.0


def new_replica_id() -> str:
    """Return an id for a process that enters the table of replicas."""
    return secrets.token_urlsafe(9)


class LeaseLostError(Exception):
    """This process no longer has the lease under which something was asked for."""


class HeldLease(NamedTuple):
    """Who holds a named lease, and the fencing token with which it was taken."""

    holder: Replica
    fence: int


class ReplicaRegistry:
    """The replicas of a scope as this process sees them, and its own lease, from `start` to `close`.

    Methods that are not async wait for the database, unless they say otherwise: call them in a thread. They raise
    `StoreError`.

    ``address`` is where others reach this process, and ``id`` its first id, if that was said before. ``clock`` and
    ``awake`` are the clocks of a holder and of an observer. ``on_change`` is called, in a thread, when replicas came or
    went, or this process lost its lease.
    """

    def __init__(
        self,
        where: StateLocation,
        address: str,
        *,
        id: str | None = None,
        clock: Callable[[], float] = lease_clock,
        awake: Callable[[], float] = awake_clock,
        on_change: Callable[[], object] = lambda: None,
    ) -> None:
        self._address = address
        self._clock = clock
        self._awake = awake
        self._on_change = on_change
        self._data = open_database(where, SCHEMA)
        # A lone process writes nothing into a file: whoever joins is seen at the next look, and waits for longer.
        self._beats_alone = where.url is not None
        self._observed = Observations()
        self._own = self._unregistered(id)
        self._beat = 0
        self._valid_until = self._excused_until = float("-inf")
        # Set to begin a look, when one is done, and to begin the next one early.
        self._begin, self._done, self._hurry = threading.Event(), threading.Event(), threading.Event()
        self._done.set()
        # When the last look began that was in vain.
        self._failed: float | None = None
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []
        self._lock = threading.Lock()
        self._end = threading.Event()
        self._threads: tuple[threading.Thread, ...] = ()

    def start(self) -> None:
        """Register this process, and keep its lease from now on."""
        self._register()
        self._threads = tuple(
            threading.Thread(target=work, name=name, daemon=True)
            for work, name in ((self._keep, "truename-replica"), (self._look_on, "truename-replica-look"))
        )
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Give the lease up at once, with all that is held under it."""
        if self._end.is_set():
            return
        self._end.set()
        self._hurry.set()
        self._begin.set()
        for thread in self._threads:
            thread.join(_JOIN)
        own, self._own = self._own, self._unregistered()
        if own.fence:
            with suppress(StoreError), self._data.change() as data:
                data.execute("DELETE FROM replica_lease WHERE holder = ?", (own.id,))
                data.execute("DELETE FROM replica WHERE id = ?", (own.id,))
        with suppress(StoreError):
            self._data.close()

    @property
    def own(self) -> Replica:
        """This process's entry. Whoever holds something keeps it, to ask later whether it `is_current`."""
        return self._own

    @property
    def beat(self) -> int:
        """The number of this process's last heartbeat: a clock that all replicas read."""
        return self._beat

    @property
    def observed(self) -> Observations:
        """What was read of the table last."""
        return self._observed

    @property
    def alive(self) -> int:
        """How many replicas are alive, this process included."""
        return 1 + len(self.others())

    def others(self) -> tuple[Replica, ...]:
        """Return the replicas beside this one that were alive when the table was read last."""
        observed, own = self._observed, self._own
        return tuple(one for one in observed.replicas if one.id != own.id and not observed.is_expired(one.id))

    def find(self, id: str) -> Replica | None:
        """Return, without waiting, a replica as it was read last; None if it was not in the table."""
        sighting = self._observed[id]
        return None if sighting is None else sighting.replica

    def is_current(self, own: Replica) -> bool:
        """Return, without waiting, whether this process surely has the lease that it had as ``own``.

        After a pause (a stopped process, a suspended machine) the answer is False until the database was asked.
        """
        return own is self._own and self._clock() < max(self._valid_until, self._excused_until)

    def is_confirmed(self, own: Replica) -> bool:
        """Return, without waiting, whether the database confirmed the lease that this process had as ``own`` just now.

        Unlike `is_current` it is False while the database cannot be reached: others may reach it.
        """
        return own is self._own and self._clock() < self._valid_until

    async def check(self, own: Replica) -> bool:
        """Return whether this process still has the lease that it had as ``own``; ask the database if unsure.

        While the database cannot be reached the answer is True. Raises nothing.
        """
        for _ in range(_MOST_LOOKS):
            if self.is_current(own) or own is not self._own:
                break
            # One that is under way may have begun before a pause.
            await self.looked()
        return own is self._own

    async def looked(self) -> None:
        """Have the table be read now, and wait until that is done or takes too long. Raises nothing."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        with self._lock:
            self._waiting.append((loop, future))
        self._hurry.set()
        if self._end.is_set():
            self._tell()
        await future

    async def found(self, id: str) -> Replica | None:
        """Return a replica that is in the table, reading it anew for one that was not there before."""
        for _ in range(2):
            if self.find(id) is not None:
                break
            # A look that is under way may have read the table before.
            await self.looked()
        return self.find(id)

    async def settled(self, replica: Replica, timeout: float) -> bool:
        """Wait until a replica beats, or is gone or expired; return whether that happened within ``timeout``."""
        first, until = self._observed[replica.id], self._awake() + timeout
        while True:
            now = self._observed[replica.id]
            is_settled = first is None or now is None or now.beat != first.beat
            if is_settled or self._observed.is_expired(replica.id) or self._awake() > until:
                return is_settled or self._observed.is_expired(replica.id)
            await asyncio.sleep(_HASTE)
            await self.looked()

    def take(self, name: str, first: str | None = None, *, given_up: HeldLease | None = None) -> HeldLease:
        """Take a named lease if nobody alive holds it, and return who holds it now.

        ``first`` is the id of the replica that holds it while no row says otherwise, with the token of its own lease.
        ``given_up`` is what a replica that is alive said that it does not hold any more. Raises `LeaseLostError` if
        this process lost its own lease: it can take nothing until it has registered anew.
        """
        own = self._own
        with self._data.change() as data:
            holder = self._present_holder(data, name, first, own)
            if holder is not None and holder != given_up:
                return holder
            if not data.execute("SELECT 1 FROM replica WHERE id = ?", (own.id,)).fetchall():
                raise LeaseLostError
            ((fence,),) = data.execute(_FENCE).fetchall()
            data.execute(_HOLD, (name, own.id, fence))
        return HeldLease(own, fence)

    def _present_holder(self, data: Transaction, name: str, first: str | None, own: Replica) -> HeldLease | None:
        """Return who holds a lease; one whose heartbeat stood still is removed, and holds it no longer."""
        rows = data.execute("SELECT holder, fence FROM replica_lease WHERE name = ?", (name,)).fetchall()
        id, fence = rows[0] if rows else (first or "", 0)
        found = data.execute("SELECT id, address, machine, fence, beat FROM replica WHERE id = ?", (id,)).fetchall()
        if not found:
            return None
        *fields, beat = found[0]
        replica, seen = Replica(*fields), self._observed[id]
        # A lone process does not beat.
        is_dead = id != own.id and seen is not None and seen.beat == beat and self._observed.is_expired(id)
        if is_dead and _removed(data, id, beat):
            return None
        return HeldLease(replica, fence or replica.fence)

    def holder(self, name: str) -> HeldLease | None:
        """Return who holds a named lease; None if nobody does who is in the table."""
        query = """
SELECT replica.id, replica.address, replica.machine, replica.fence, replica_lease.fence
FROM replica_lease JOIN replica ON replica.id = replica_lease.holder WHERE replica_lease.name = ?
"""
        rows = self._data.rows(query, name)
        return HeldLease(Replica(*rows[0][:4]), rows[0][4]) if rows else None

    def release(self, names: Iterable[str], own: Replica) -> None:
        """Give named leases up that this process took as ``own``."""
        with self._data.change() as data:
            data.executemany(
                "DELETE FROM replica_lease WHERE name = ? AND holder = ?", [(name, own.id) for name in names]
            )

    # The heartbeat

    def _unregistered(self, id: str | None = None) -> Replica:
        """Return the entry of a process that has none in the table: nothing that was held before is held under it."""
        return Replica(id or new_replica_id(), self._address, machine_id(), 0)

    def _register(self) -> None:
        began, own = self._clock(), self._own
        with self._data.change() as data:
            ((fence,),) = data.execute(_FENCE).fetchall()
            own = Replica(own.id, own.address, own.machine, fence)
            data.execute(_ENTER, (own.id, own.address, own.machine, own.fence))
        self._beat, self._own, self._valid_until = 0, own, began + VALIDITY
        self._read()

    def _keep(self) -> None:
        """Begin looks, wait for each only as long as it may take, and tell whoever waits."""
        while not self._end.is_set():
            before = self._clock()
            self._hurry.wait(INTERVAL)
            self._hurry.clear()
            if self._end.is_set():
                break
            if self._done.is_set():
                self._done.clear()
                self._begin.set()
            is_done, now = self._is_done_in_time(), self._clock()
            # Whoever was stopped meanwhile cannot tell a database that is away from his own absence.
            is_vain = not is_done or (self._failed is not None and self._failed > now - _LONGEST_LOOK)
            if is_vain and before > now - _LONGEST_LOOK:
                self._excused_until = now + _EXCUSED
            self._tell()
        self._tell()

    def _is_done_in_time(self) -> bool:
        """Wait for a look; return whether it was done before it took too long while this process was awake."""
        left, before = _PATIENCE, self._clock()
        while left > 0:
            if self._done.wait(_SLICE):
                return True
            now = self._clock()
            left = left - _SLICE if now - before < _LONGEST_SLICE else _PATIENCE
            before = now
        return False

    def _look_on(self) -> None:
        """Look whenever it is time, in a thread of its own: a silent database keeps it for long."""
        while True:
            self._begin.wait()
            self._begin.clear()
            if self._end.is_set():
                self._done.set()
                return
            before, began = self._observed.replicas, self._clock()
            try:
                self._look()
            except StoreError as error:
                log.debug("Cannot reach the table of replicas. %s", error)
                self._observed.interrupt()
                self._failed = began
            else:
                self._failed = None
            self._done.set()
            if self._observed.replicas != before:
                self._on_change()

    def _look(self) -> None:
        """Beat and read the table. Whoever lost the lease registers anew."""
        own, began = self._own, self._clock()
        was_alone = self._is_alone(own)
        is_there = own.fence > 0 and (was_alone or self._stored_beat(own))
        if is_there:
            self._read()
            is_there = self._observed[own.id] is not None
        if is_there and was_alone and not self._is_alone(own):
            # Others joined, and if this process was stopped meanwhile, they may have watched its row for long enough.
            is_there = self._stored_beat(own)
        if is_there:
            self._valid_until, self._excused_until = began + VALIDITY, float("-inf")
            self._forget_dead(own)
            return
        if own.fence:
            log.warning("This gateway did not keep its lease: other replicas may have taken over its sessions.")
            self._valid_until = self._excused_until = float("-inf")
            self._own = self._unregistered()
        self._register()

    def _is_alone(self, own: Replica) -> bool:
        """Return whether this process need not beat, by what was read last."""
        return not self._beats_alone and all(one.id == own.id for one in self._observed.replicas)

    def _stored_beat(self, own: Replica) -> bool:
        """Store a heartbeat, and return whether this process is still in the table."""
        is_there = self._data.write_uncounted(_BEAT, own.id) > 0
        # One that is not known to be stored is none, until it is read.
        self._beat += 1
        return is_there

    def _tell(self) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, []
        for loop, future in waiting:
            # The loop may have ended.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(_resolve, future)

    def _read(self) -> None:
        began = self._awake()
        rows = [(Replica(*fields), beat) for *fields, beat in self._data.rows(_READ)]
        self._observed.read(rows, began=began, ended=self._awake())
        if (sighting := self._observed[self._own.id]) is not None:
            self._beat = sighting.beat

    def _forget_dead(self, own: Replica) -> None:
        """Remove rows that have been dead for long; the oldest of the living does it."""
        replicas, observed = self._observed.replicas, self._observed
        dead = [one for one in replicas if observed.silence(one.id) > _FORGOTTEN and one != own]
        if not dead or next(one for one in replicas if one not in dead) != own:
            return
        with self._data.change() as data:
            for one in dead:
                if (sighting := observed[one.id]) is not None:
                    _removed(data, one.id, sighting.beat)


def _removed(data: Transaction, id: str, beat: int) -> bool:
    """Remove a replica with all that it holds if its heartbeat is the one that was watched; return whether it was.

    The condition is in the statement: a heartbeat is no change, so it waits for no transaction in PostgreSQL.
    """
    if not data.execute("DELETE FROM replica WHERE id = ? AND beat = ?", (id, beat)).rowcount:
        return False
    data.execute("DELETE FROM replica_lease WHERE holder = ?", (id,))
    return True


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)

"""Lease calls of a minute and places of running calls to replicas, in the state database.

The minutes are those of the database's clock, so that replicas whose clocks differ agree. A clock that is set back
begins a minute anew: its calls are then leased twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from truename.gateway.call_quotas.budgets import MINUTE, Lease, LeaseAnswer, LeaseRequest
from truename.storage import Schema, open_database, upsert

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from truename.storage import StateLocation, Transaction

__all__ = ["SCHEMA", "LeaseStore"]

SCHEMA: Final = Schema(
    "quota",
    (
        (
            "CREATE TABLE quota_replica (replica TEXT PRIMARY KEY, seen REAL NOT NULL)",
            "CREATE TABLE quota_minute (principal TEXT PRIMARY KEY, minute INTEGER NOT NULL, granted INTEGER NOT NULL)",
            """
CREATE TABLE quota_place (
    principal TEXT NOT NULL, replica TEXT NOT NULL, places INTEGER NOT NULL, PRIMARY KEY (principal, replica)
)
""",
        ),
    ),
    is_quiet=True,
)
_SEEN: Final = upsert("quota_replica", ("replica",), ("seen",))
_GONE: Final = "DELETE FROM quota_replica WHERE seen < ? OR seen > ?"
_FREED: Final = "DELETE FROM quota_place WHERE replica NOT IN (SELECT replica FROM quota_replica)"
_OLD: Final = "DELETE FROM quota_minute WHERE minute < ? OR minute > ?"
_COUNT: Final = "SELECT count(*) FROM quota_replica"
_GRANTED: Final = "SELECT granted FROM quota_minute WHERE principal = ? AND minute = ?"
_GRANT: Final = upsert("quota_minute", ("principal",), ("minute", "granted"))
_OTHERS: Final = "SELECT coalesce(sum(places), 0) FROM quota_place WHERE principal = ? AND replica <> ?"
_HOLD: Final = upsert("quota_place", ("principal", "replica"), ("places",))
_LEAVE: Final = "DELETE FROM quota_place WHERE principal = ? AND replica = ?"
_END: Final = "DELETE FROM quota_replica WHERE replica = ?"
# A replica that was not heard of for so many seconds is dead: others get its places.
_LIFE: Final = 15.0
_PATIENCE: Final = 1.0
_KEPT_MINUTES: Final = 2


def _file_clock(data: Transaction) -> float:
    return float(data.execute("SELECT (julianday('now') - 2440587.5) * 86400.0").fetchone()[0])


def _server_clock(data: Transaction) -> float:
    return float(data.execute("SELECT CAST(extract(epoch FROM clock_timestamp()) AS REAL)").fetchone()[0])


class LeaseStore:
    """The leases of all replicas. Methods raise `StoreError`, and are called from one thread at a time."""

    def __init__(
        self, location: StateLocation, replica: str, *, clock: Callable[[Transaction], float] | None = None
    ) -> None:
        """Open the leases. ``clock`` returns the time in seconds since 1970, instead of the database's clock."""
        self._database = open_database(location, SCHEMA, patience=_PATIENCE)
        self._clock = clock or (_file_clock if location.url is None else _server_clock)
        self._replica = replica

    def minute(self) -> int:
        """Return the number of the database's present minute."""
        with self._database.change() as data:
            return int(self._clock(data) // MINUTE)

    def exchange(self, wishes: Iterable[LeaseRequest]) -> LeaseAnswer:
        """Lease what there is of these wishes, in one transaction."""
        with self._database.change() as data:
            now = self._clock(data)
            minute = int(now // MINUTE)
            data.execute(_SEEN, (self._replica, now))
            if data.execute(_GONE, (now - _LIFE, now + MINUTE)).rowcount:
                data.execute(_FREED)
            data.execute(_OLD, (minute - _KEPT_MINUTES, minute + _KEPT_MINUTES))
            (replicas,) = data.execute(_COUNT).fetchone()
            grants = {wish.key: Lease(self._calls(data, wish, minute), self._places(data, wish)) for wish in wishes}
        return LeaseAnswer(window=minute, left=(minute + 1) * MINUTE - now, replicas=int(replicas), grants=grants)

    def _calls(self, data: Transaction, wish: LeaseRequest, minute: int) -> int:
        limit = wish.calls_limit
        if limit is None:
            return 0
        row = data.execute(_GRANTED, (wish.key, minute)).fetchone()
        granted = 0 if row is None else int(row[0])
        is_present = wish.window in {minute, minute + 1, -1}
        granted += wish.debt if is_present else 0
        if wish.calls < 0 and wish.window != minute:
            # What is given back was of another minute.
            return 0
        calls = max(wish.calls, -granted) if wish.calls < 0 else min(wish.calls, max(limit - granted, 0))
        data.execute(_GRANT, (wish.key, minute, granted + calls))
        return calls

    def _places(self, data: Transaction, wish: LeaseRequest) -> int:
        limit = wish.places_limit
        if limit is None:
            return 0
        others = int(data.execute(_OTHERS, (wish.key, self._replica)).fetchone()[0])
        # Calls that run are held, also those that were begun while the database was away.
        places = max(min(wish.places, limit - others), min(wish.running, wish.places))
        if places:
            data.execute(_HOLD, (wish.key, self._replica, places))
        else:
            data.execute(_LEAVE, (wish.key, self._replica))
        return places

    def close(self) -> None:
        """Give back the places of this replica, and close the database."""
        try:
            with self._database.change() as data:
                data.execute(_END, (self._replica,))
                data.execute(_FREED)
        finally:
            self._database.close()

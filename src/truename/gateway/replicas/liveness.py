"""Judge which replicas are alive, by how long their heartbeat stayed the same on this process's own clock.

No wall clock takes part: neither that of a machine nor that of the database server may jump without harm. A replica
counts its heartbeat up in its row; whoever reads the row measures for how long it reads the same number.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["EXPIRY", "INTERVAL", "VALIDITY", "Observations", "Replica", "Sighting", "awake_clock", "lease_clock"]

INTERVAL: Final = 0.5
"""Seconds between two heartbeats."""
VALIDITY: Final = 1.4
"""Seconds for which a replica takes its lease for granted after the beginning of its last heartbeat."""
EXPIRY: Final = 1.5
"""Seconds of an unchanged heartbeat after which others may take over what a replica holds. It is longer than
`VALIDITY`, so that the holder stops first."""

awake_clock: Final = time.monotonic
"""The clock of an observer: it does not count the time for which the machine was suspended."""


def lease_clock() -> float:
    """Return the seconds of a clock that goes on while the machine is suspended, where the system has one.

    A holder that slept must not take its lease for granted afterwards.
    """
    return time.monotonic() if _LEASE_CLOCK is None else time.clock_gettime(_LEASE_CLOCK)


# Windows has neither; the one of macOS goes on too.
_LEASE_CLOCK: Final[int | None] = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))


@dataclass(frozen=True)
class Replica:
    """One running gateway process: its random id, where others reach it, and its fencing token.

    ``address`` is HOST:PORT, and ``machine`` names the network in which a loopback address means that process. The
    fencing token grows with each start of a gateway in the scope.
    """

    id: str
    address: str
    machine: str
    fence: int


# Seconds between two readings. Who reads less often may miss that the database was away in between.
_LONGEST_GAP: Final = 2 * INTERVAL
# Since when the heartbeat of a process that has certainly ended stands still.
_ENDED: Final = float("-inf")


class Sighting(NamedTuple):
    """A replica as it was read last: its heartbeat, and since when (of `awake_clock`) it has been the same."""

    replica: Replica
    beat: int
    since: float


class Observations:
    """What one process read of the others.

    >>> ann = Replica("ann", "127.0.0.1:1", "here", 1)
    >>> seen = Observations()
    >>> for now in (10.0, 10.5, 11.0, 11.5, 12.0):
    ...     seen.read([(ann, 7)], began=now, ended=now)
    >>> seen.is_expired("ann")
    True

    A heartbeat that could not be read for a while proves nothing: the replica may not have reached the database either.

    >>> seen = Observations()
    >>> for now in (10.0, 20.0):
    ...     seen.read([(ann, 7)], began=now, ended=now)
    >>> seen.is_expired("ann")
    False
    """

    def __init__(self, *, expiry: float = EXPIRY) -> None:
        self._expiry = expiry
        self._sightings: dict[str, Sighting] = {}
        self._began = self._ended = float("-inf")

    def __getitem__(self, id: str) -> Sighting | None:
        return self._sightings.get(id)

    @property
    def replicas(self) -> tuple[Replica, ...]:
        """All that were in the table."""
        return tuple(one.replica for one in self._sightings.values())

    def read(self, rows: Iterable[tuple[Replica, int]], *, began: float, ended: float) -> None:
        """Note all rows of the table, and when the reading began and ended (of `awake_clock`)."""
        is_gap = began - self._ended > _LONGEST_GAP
        found = dict[str, Sighting]()
        for replica, beat in rows:
            known = self._sightings.get(replica.id)
            is_same = known is not None and known.beat == beat and (not is_gap or known.since == _ENDED)
            found[replica.id] = Sighting(replica, beat, known.since if known is not None and is_same else ended)
        # Other threads read meanwhile.
        self._sightings, self._began, self._ended = found, began, ended

    def interrupt(self) -> None:
        """Note that the table could not be read: the heartbeats may not have reached it either."""
        self._ended = float("-inf")

    def note_end(self, id: str) -> None:
        """Note that a replica's process has certainly ended, though its row is still there."""
        if (known := self._sightings.get(id)) is not None:
            self._sightings = {**self._sightings, id: known._replace(since=_ENDED)}

    def silence(self, id: str) -> float:
        """Return for how many seconds a replica's heartbeat has been read as the same."""
        known = self._sightings.get(id)
        return 0.0 if known is None else max(0.0, self._began - known.since)

    def is_expired(self, id: str) -> bool:
        """Return whether others may take over what a replica holds."""
        return self.silence(id) >= self._expiry

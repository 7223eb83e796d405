"""Let messages pass only while this process surely has the lease under which it runs a program.

A process that was stopped, or whose machine was suspended, may have lost its lease meanwhile, and another one may run
the program. So after any pause that is long enough for that, the database is asked before the next message passes. A
database that does not answer is no answer: messages wait.

Where others may reach the database when this process cannot, messages also wait while it cannot (``is_strict``).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import anyio

from truename.errors import StoreError
from truename.gateway.protocol.turns import in_thread
from truename.gateway.replicas.liveness import lease_clock

if TYPE_CHECKING:
    from collections.abc import Callable

    from truename.gateway.replicas.registry import HeldLease, ReplicaRegistry

__all__ = ["LOOK_EVERY", "LeaseGate", "PauseDetector"]

LOOK_EVERY: Final = 0.2
"""Seconds after which somebody has to look at a `PauseDetector` again."""
# Shorter than the time after which others may take a lease over, by more than a heartbeat.
_LONGEST_PAUSE: Final = 0.8
_AGAIN: Final = 0.25


class PauseDetector:
    """Counts the pauses of this process, in which it did not look. ``clock`` goes on while the machine sleeps.

    >>> times = iter((0.0, 0.5, 5.0, 5.1))
    >>> detector = PauseDetector(lambda: next(times))
    >>> [detector.look() for _ in range(3)]
    [0, 1, 1]
    """

    def __init__(self, clock: Callable[[], float] = lease_clock) -> None:
        self._clock = clock
        self._looked = clock()
        self._count = 0

    def look(self) -> int:
        """Return how many pauses there were until now."""
        now = self._clock()
        if now - self._looked > _LONGEST_PAUSE:
            self._count += 1
        self._looked = now
        return self._count


class LeaseGate:
    """The gate of one lease, which this process took under ``name``; ``pauses`` is the detector of the process."""

    def __init__(
        self, registry: ReplicaRegistry, name: str, lease: HeldLease, pauses: PauseDetector, *, is_strict: bool
    ) -> None:
        self.name = name
        self.lease = lease
        self.is_lost = False
        self._registry = registry
        self._own = registry.own
        self._is_held = registry.is_confirmed if is_strict else registry.is_current
        self._pauses = pauses
        # The last pause after which the database said that the lease is still this process's.
        self._confirmed = pauses.look()
        self._asking = anyio.Lock()

    def is_open(self) -> bool:
        """Return, without waiting, whether messages may pass."""
        return self._pauses.look() == self._confirmed and not self.is_lost and self._is_held(self._own)

    async def passed(self) -> bool:
        """Wait until messages may pass, asking the database if unsure; False once the lease is lost."""
        while not (self.is_lost or self.is_open()):
            async with self._asking:
                if not (self.is_lost or self.is_open()):
                    await self._ask()
        return not self.is_lost

    async def _ask(self) -> None:
        pauses = self._pauses.look()
        try:
            holder = await in_thread(partial(self._registry.holder, self.name))
        except StoreError:
            await anyio.sleep(_AGAIN)
            return
        if holder is None or (holder.holder.id, holder.fence) != (self._own.id, self.lease.fence):
            self.is_lost = True
        elif self._pauses.look() == pauses:
            # After a pause since the question the answer is worthless.
            self._confirmed = pauses
            if not self._is_held(self._own):
                await self._registry.looked()

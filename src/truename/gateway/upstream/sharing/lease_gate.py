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

__all__ = ["LeaseGate"]

_TICK: Final = 0.2
# Shorter than the time after which others may take a lease over, by more than a heartbeat.
_LONGEST_PAUSE: Final = 0.8
_AGAIN: Final = 0.25


class LeaseGate:
    """The gate of one lease, which this process took under ``name``. ``clock`` goes on while the machine sleeps."""

    def __init__(
        self,
        registry: ReplicaRegistry,
        name: str,
        lease: HeldLease,
        *,
        is_strict: bool,
        clock: Callable[[], float] = lease_clock,
    ) -> None:
        self._is_held = registry.is_confirmed if is_strict else registry.is_current
        self.name = name
        self.lease = lease
        self._registry = registry
        self._own = registry.own
        self._clock = clock
        self._seen = clock()
        self._is_sure = True
        self.is_lost = False
        self._asking = anyio.Lock()

    def is_open(self) -> bool:
        """Return, without waiting, whether messages may pass."""
        now = self._clock()
        if now - self._seen > _LONGEST_PAUSE or not self._is_held(self._own):
            self._is_sure = False
        self._seen = now
        return self._is_sure and not self.is_lost

    async def watch(self) -> None:
        """Notice pauses also while no messages come, until the lease is lost."""
        while not self.is_lost:
            await anyio.sleep(_TICK)
            await self.passed()

    async def passed(self) -> bool:
        """Wait until messages may pass, asking the database if unsure; False once the lease is lost."""
        while not (self.is_lost or self.is_open()):
            async with self._asking:
                if not (self.is_lost or self._is_sure):
                    await self._ask()
        return not self.is_lost

    async def _ask(self) -> None:
        began = self._clock()
        try:
            holder = await in_thread(partial(self._registry.holder, self.name))
        except StoreError:
            await anyio.sleep(_AGAIN)
            return
        if holder is None or (holder.holder.id, holder.fence) != (self._own.id, self.lease.fence):
            self.is_lost = True
            return
        # A pause since the question makes its answer worthless.
        self._seen = began
        self._is_sure = self._clock() - began <= _LONGEST_PAUSE and self._is_held(self._own)
        if not self._is_sure:
            await self._registry.looked()

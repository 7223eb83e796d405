"""Admit calls within the quotas of their principals; lease more in the background."""

from __future__ import annotations

import logging
import secrets
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

import anyio

from truename.errors import QuotaExceeded, StoreError
from truename.gateway.call_quotas.budgets import Budgets
from truename.gateway.call_quotas.lease_store import LeaseStore
from truename.gateway.protocol.turns import in_thread

if TYPE_CHECKING:
    from collections.abc import Callable

    from truename.config.quotas import Quotas
    from truename.gateway.call_quotas.budgets import LeaseAnswer, LeaseRequest, QuotaDecision
    from truename.policy.principal import Principal
    from truename.storage import StateLocation

__all__ = ["CallQuotas", "TakenPlace"]

log: Final = logging.getLogger("truename.gateway")

# How long a call waits for the answer of the database, where its replica holds nothing more. Afterwards no call waits
# until the database has answered.
_PATIENCE: Final = 1.0
_TICK: Final = 1.0
# How often a replica asks again for the places that it holds, so that the database keeps them for it.
_HEARTBEAT: Final = 4.0


class TakenPlace:
    """The place of one call among those that run at a time."""

    def __init__(self, budgets: Budgets, key: str) -> None:
        self._budgets = budgets
        self._key = key

    def release(self) -> None:
        """Give the place back: the call has ended."""
        self._budgets.end(self._key)


class CallQuotas:
    """The quotas of all principals, as one replica keeps them. Used by one event loop.

    While the database is away, each replica has its fraction of every limit, besides what it holds.
    """

    def __init__(
        self, location: StateLocation, *, patience: float = _PATIENCE, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._location = location
        self._patience = patience
        self._clock = clock
        self._budgets = Budgets(clock())
        self._replica = secrets.token_hex(8)
        self._store: LeaseStore | None = None
        self._is_needed = anyio.Event()
        self._has_answered = anyio.Event()
        self._renewed = clock()
        self._problem = ""

    @property
    def is_well(self) -> bool | None:
        """Whether the database answers; None while no quota applies to anybody."""
        return None if not self._budgets else not self._budgets.is_alone

    async def take(self, principal: Principal, quotas: Quotas) -> TakenPlace | None:
        """Begin a call of somebody; None where no quota applies. Raises `QuotaExceeded`.

        It waits for the database only where this replica holds nothing more, and then a second at most.
        """
        limits = quotas.of(principal)
        if limits is None:
            return None
        key, now = principal.key, self._clock()
        verdict = self._budgets.take(key, limits, now)
        if not verdict.may_begin and verdict.limit is None:
            verdict = await self._after_answer(key, partial(self._budgets.take, key, limits), now + self._patience)
        if self._budgets.is_short(key, now):
            self._is_needed.set()
        if verdict.limit is not None:
            limit = getattr(limits, verdict.limit)
            raise QuotaExceeded(
                principal=key, quota=verdict.limit, limit=limit, retry_after=round(verdict.retry_after + 0.05, 1)
            )
        return TakenPlace(self._budgets, key)

    async def _after_answer(self, key: str, take: Callable[[float], QuotaDecision], deadline: float) -> QuotaDecision:
        """Return the verdict of the next answer that decides it, or what is decided without one."""
        self._budgets.wait(key, 1)
        try:
            while True:
                self._is_needed.set()
                with anyio.move_on_after(deadline - self._clock()):
                    await self._has_answered.wait()
                if self._clock() >= deadline:
                    self._budgets.is_alone = True
                verdict = take(self._clock())
                if verdict.may_begin or verdict.limit is not None:
                    return verdict
        finally:
            self._budgets.wait(key, -1)

    async def run(self, *, is_used: bool) -> None:
        """Lease in the background what calls need, and give back what they do not.

        ``is_used``: there are quotas, so the first call should not wait until the database is open.
        """
        try:
            if is_used:
                await self._exchange(())
            while True:
                with anyio.move_on_after(_TICK if self._budgets else None):
                    await self._is_needed.wait()
                self._is_needed = anyio.Event()
                is_due = self._clock() - self._renewed > _HEARTBEAT
                wishes = self._budgets.wishes(self._clock(), renews=is_due)
                if is_due:
                    self._renewed = self._clock()
                if wishes:
                    await self._exchange(wishes)
        finally:
            if self._store is not None:
                with anyio.CancelScope(shield=True), suppress(StoreError):
                    await in_thread(self._store.close)

    async def _exchange(self, wishes: tuple[LeaseRequest, ...]) -> None:
        asked = self._clock()
        try:
            answer = await in_thread(partial(self._leased, wishes))
        except StoreError as error:
            self._budgets.is_alone = True
            if str(error) != self._problem:
                self._problem = str(error)
                log.warning("Quotas cannot be leased; each replica has its fraction of them meanwhile. %s", error)
            self._answer()
            await anyio.sleep(_TICK)
            return
        self._problem = ""
        self._budgets.apply(answer, wishes, asked, self._clock())
        self._answer()

    def _leased(self, wishes: tuple[LeaseRequest, ...]) -> LeaseAnswer:
        if self._store is None:
            self._store = LeaseStore(self._location, self._replica)
        return self._store.exchange(wishes)

    def _answer(self) -> None:
        self._has_answered.set()
        self._has_answered = anyio.Event()

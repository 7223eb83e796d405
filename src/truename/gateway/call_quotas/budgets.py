"""What one replica may use of each principal's quotas: blocks of calls and places that are leased from all replicas.

A replica holds some calls of the present minute and some places of calls that run at a time. It asks for more before it
has used them up, and gives back what it does not use. Nothing here waits or does I/O.

With R replicas, a replica holds at most 1/12 R of a minute's calls unused, and begins at most 1/20 R before its lease
came: so all replicas together are between 8 % below and 5 % above a limit. Quotas below ``20 R`` calls have no such
room: there each call is leased by itself, and the limit holds exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from truename.config.quotas import PrincipalLimits

__all__ = ["MINUTE", "Budgets", "Lease", "LeaseAnswer", "LeaseRequest", "QuotaDecision"]

MINUTE: Final = 60.0
"""The seconds of a window."""
_HELD: Final = 12
_CREDIT: Final = 20
# The minute of a replica begins a moment before that of the database, which may still be in the one before.
_DOUBT: Final = 0.1
# How many replicas are assumed before the database has said how many there are.
_ASSUMED: Final = 8
# After so many seconds without a call, a replica gives back what it holds.
_IDLE: Final = 3.0
# What was used up is asked for again after so many seconds: another replica may have given some back.
_AGAIN: Final = 2.0
# What a lease of places lasts without an answer of the database; `lease_store` forgets a replica later.
PLACES_LAST: Final = 10.0


class LeaseRequest(NamedTuple):
    """What a replica asks for one principal.

    ``calls`` of the present minute (negative: given back), after ``debt`` calls that were begun before in ``window``;
    ``places`` is how many places it wants to hold in all, of which ``running`` are in use.
    """

    key: str
    window: int
    calls: int
    debt: int
    calls_limit: int | None
    places: int
    running: int
    places_limit: int | None


class Lease(NamedTuple):
    """What a replica got: more calls of the minute, and the places that it holds now."""

    calls: int
    places: int


class LeaseAnswer(NamedTuple):
    """The answer of the database: its present minute, the seconds left in it, and how many replicas live."""

    window: int
    left: float
    replicas: int
    grants: Mapping[str, Lease]


Limit = Literal["calls_per_minute", "concurrent_calls"]


class QuotaDecision(NamedTuple):
    """Whether a call may begin: yes, no because of a limit, or (neither) after the next answer of the database."""

    may_begin: bool
    limit: Limit | None = None
    retry_after: float = 0.0


@dataclass
class _Budget:
    """What this replica has of one principal's quotas."""

    limits: PrincipalLimits
    window: int = -1
    # Calls of this minute that are leased and not used, that were begun without a lease, and all that were begun.
    lease: int = 0
    debt: int = 0
    used: int = 0
    # Whether a wish of this minute was not granted, and until when no other is made.
    is_used_up: bool = False
    used_up_until: float = 0.0
    running: int = 0
    places: int = 0
    is_full: bool = False
    full_until: float = 0.0
    last_use: float = 0.0
    waiting: int = 0


class Budgets:
    """The budgets of all principals on one replica. Times are of one monotonic clock, in seconds."""

    def __init__(self, now: float) -> None:
        self._budgets: dict[str, _Budget] = {}
        # Those that hold or need something, or were used a moment ago. The others have nothing to ask for, and are
        # kept for a minute in the order in which they came to rest, with the time of that.
        self._active: dict[str, None] = {}
        self._resting: dict[str, float] = {}
        self._window = -1
        self._window_ends = now + MINUTE
        self._replicas = _ASSUMED
        self._answered = now
        self._has_lapsed = False
        # Whether the database does not answer: then each replica has its fraction of a limit.
        self.is_alone = False

    def __len__(self) -> int:
        return len(self._budgets)

    def take(self, key: str, limits: PrincipalLimits, now: float) -> QuotaDecision:
        """Begin a call if there is room, and say whether it may begin."""
        self._roll(now)
        if (budget := self._budgets.get(key)) is None:
            budget = self._budgets[key] = _Budget(limits)
        if key not in self._active:
            self._active[key] = None
            self._resting.pop(key, None)
        budget.limits, budget.last_use = limits, now
        self._renew(budget)
        verdict = self._may_have_call(budget, now)
        if verdict.may_begin:
            verdict = self._may_have_place(budget, now)
        if verdict.may_begin:
            self._begin(budget)
        return verdict

    def _begin(self, budget: _Budget) -> None:
        budget.running += 1
        budget.used += 1
        if budget.lease:
            budget.lease -= 1
        elif budget.limits.calls_per_minute is not None:
            budget.debt += 1

    def _may_have_call(self, budget: _Budget, now: float) -> QuotaDecision:
        limit = budget.limits.calls_per_minute
        if limit is None or budget.lease:
            return QuotaDecision(may_begin=True)
        over = QuotaDecision(False, "calls_per_minute", max(self._window_ends - now, 0.0))
        if self.is_alone:
            return QuotaDecision(may_begin=True) if budget.used < self._fraction(limit) else over
        if now < budget.used_up_until:
            return over
        has_begun = self._window < 0 or now > self._window_ends - MINUTE + _DOUBT
        has_credit = has_begun and not budget.is_used_up
        return QuotaDecision(may_begin=has_credit and budget.debt < limit // (_CREDIT * self._replicas))

    def _may_have_place(self, budget: _Budget, now: float) -> QuotaDecision:
        limit = budget.limits.concurrent_calls
        if limit is None or budget.running < budget.places:
            return QuotaDecision(may_begin=True)
        over = QuotaDecision(False, "concurrent_calls", 1.0)
        if self.is_alone:
            return QuotaDecision(may_begin=True) if budget.running < self._fraction(limit) else over
        if now < budget.full_until or budget.places >= limit:
            return over
        credit = 0 if budget.is_full else limit // (_CREDIT * self._replicas)
        return QuotaDecision(may_begin=budget.running < budget.places + credit)

    def _fraction(self, limit: int) -> int:
        return -(-limit // self._replicas)

    def end(self, key: str) -> None:
        """Note that a call has ended."""
        self._budgets[key].running -= 1

    def wait(self, key: str, change: int) -> None:
        """Note that a call waits for the next answer (1), or no longer does (-1)."""
        if (budget := self._budgets.get(key)) is not None:
            budget.waiting += change

    def _roll(self, now: float) -> None:
        while now >= self._window_ends:
            self._window += self._window >= 0
            self._window_ends += MINUTE
        if now > self._answered + PLACES_LAST and not self._has_lapsed:
            # The database is away, or this process was stopped: others may have them by now.
            self._has_lapsed = True
            for key in self._active:
                self._budgets[key].places = 0

    def _renew(self, budget: _Budget) -> None:
        """Begin a new minute of a budget, if there is one."""
        if budget.window != self._window:
            budget.window, budget.lease, budget.debt, budget.used = self._window, 0, 0, 0
            budget.is_used_up, budget.used_up_until = False, 0.0

    def is_short(self, key: str, now: float) -> bool:
        """Return whether more has to be asked for now, so that the next calls need not wait."""
        return self._wish(key, self._budgets[key], now, is_tick=False) is not None

    def wishes(self, now: float, *, renews: bool = False) -> tuple[LeaseRequest, ...]:
        """Return what to ask the database for, with what is given back; forget principals that have nothing here.

        ``renews`` asks again for all places that are held.
        """
        self._roll(now)
        active = [(key, self._budgets[key]) for key in self._active]
        for _, budget in active:
            self._renew(budget)
        found = (self._wish(key, budget, now, is_tick=True, renews=renews) for key, budget in active)
        wishes = tuple(wish for wish in found if wish is not None)
        for wish in wishes:
            # What is given back is not used any more from now on.
            budget = self._budgets[wish.key]
            budget.lease += min(wish.calls, 0)
            budget.places = min(budget.places, wish.places)
        for key, budget in active:
            if not _holds(budget) and now - budget.last_use > _IDLE:
                del self._active[key]
                self._resting[key] = now
        self._forget(now)
        return wishes

    def _forget(self, now: float) -> None:
        over = list(takewhile(lambda key: now - self._resting[key] > MINUTE, self._resting))
        for key in over:
            del self._resting[key], self._budgets[key]

    def _wish(
        self, key: str, budget: _Budget, now: float, *, is_tick: bool, renews: bool = False
    ) -> LeaseRequest | None:
        is_idle = now - budget.last_use > _IDLE
        calls, places = self._wanted_calls(budget, now, is_idle=is_idle), self._wanted_places(budget, is_idle=is_idle)
        needs_places = places > budget.places if now >= budget.full_until else False
        gives_back = is_tick and (calls < 0 or places < budget.places)
        if not (calls > 0 or budget.debt or needs_places or gives_back or (renews and budget.places)):
            return None
        return LeaseRequest(
            key=key,
            window=budget.window,
            calls=calls if is_tick or calls > 0 else 0,
            debt=budget.debt,
            calls_limit=budget.limits.calls_per_minute,
            places=places,
            running=budget.running,
            places_limit=budget.limits.concurrent_calls,
        )

    def _wanted_calls(self, budget: _Budget, now: float, *, is_idle: bool) -> int:
        limit = budget.limits.calls_per_minute
        if limit is None:
            return 0
        if is_idle and not budget.waiting:
            return -budget.lease
        if now < budget.used_up_until:
            return 0
        held = limit // (_HELD * self._replicas)
        missing = budget.waiting - budget.lease
        return missing + held if missing > 0 else held - budget.lease if budget.lease <= held // 2 else 0

    def _wanted_places(self, budget: _Budget, *, is_idle: bool) -> int:
        limit = budget.limits.concurrent_calls
        if limit is None:
            return 0
        held = 0 if is_idle else limit // (_HELD * self._replicas)
        needed = budget.running + budget.waiting
        is_kept = needed + held // 2 <= budget.places <= needed + held
        return budget.places if is_kept else min(needed + held, max(limit, budget.running))

    def apply(self, answer: LeaseAnswer, wishes: Iterable[LeaseRequest], asked: float, now: float) -> None:
        """Take what the database granted to wishes that were sent at a time."""
        self.is_alone, self._answered, self._has_lapsed = False, now, False
        self._replicas = max(answer.replicas, 1)
        self._roll(now)
        if answer.window >= self._window or self._window - answer.window > 1:
            # The minute ends for this replica before it does for the database, never after.
            self._window, self._window_ends = answer.window, asked + answer.left
            self._roll(now)
        for wish in wishes:
            if (budget := self._budgets.get(wish.key)) is not None:
                self._renew(budget)
                self._receive(budget, wish, answer, now)

    def _receive(self, budget: _Budget, wish: LeaseRequest, answer: LeaseAnswer, now: float) -> None:
        grant = answer.grants[wish.key]
        if answer.window == self._window:
            if wish.window == answer.window:
                budget.debt = max(budget.debt - wish.debt, 0)
            budget.lease += max(grant.calls, 0)
            if grant.calls < wish.calls:
                budget.is_used_up, budget.used_up_until = True, min(now + _AGAIN, self._window_ends)
        budget.places, budget.is_full = grant.places, grant.places < wish.places
        budget.full_until = now + _AGAIN if budget.is_full else 0.0


def _holds(budget: _Budget) -> bool:
    return bool(budget.lease or budget.debt or budget.places or budget.running or budget.waiting)

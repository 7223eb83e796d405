"""A circuit breaker: a server that fails again and again is left alone until it shows a sign of life."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["LEASE", "BreakerPermit", "CircuitBreaker"]

State = Literal["closed", "open", "half-open"]

# So long a probe has its place to itself: one that takes longer keeps no other call from being the next.
LEASE: Final = 1.0


class BreakerPermit(NamedTuple):
    """Leave to send one call. ``period`` is the time between two changes of the breaker in which it was given."""

    number: int
    period: int


class CircuitBreaker:
    """Counts failures in a row; after ``failures`` of them it is open, for at most ``seconds``.

    Half-open it lets one call through at a time, the probe, whose outcome decides; a sign of life makes it half-open
    before the time is over. What a call of an earlier period brings decides nothing: an answer is a sign of life, a
    failure is old news.

    >>> breaker = CircuitBreaker(failures=1, seconds=60)
    >>> first, second = breaker.admit(), breaker.admit()
    >>> breaker.failed(first), breaker.state, breaker.admit()
    (None, 'open', None)
    >>> breaker.revive(), breaker.state
    (None, 'half-open')
    >>> breaker.succeeded(breaker.admit()), breaker.failed(second), breaker.state
    (None, None, 'closed')
    """

    def __init__(self, *, failures: int, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = failures
        self._seconds = seconds
        self._clock = clock
        self._failures = 0
        self._until = -math.inf
        self._period = 0
        self._given = 0
        self._probe: BreakerPermit | None = None
        self._leased = -math.inf

    @property
    def state(self) -> State:
        """Where it stands."""
        if self._failures < self._most:
            return "closed"
        return "open" if self._clock() < self._until else "half-open"

    @property
    def failures(self) -> int:
        """How many failures there were in a row."""
        return self._failures

    def admit(self) -> BreakerPermit | None:
        """Return the leave to send a call, None where there is none; half-open, that takes the place of the probe."""
        if self._failures < self._most:
            self._given += 1
            return BreakerPermit(self._given, self._period)
        state, now = self.state, self._clock()
        if state == "open" or (state == "half-open" and self._probe is not None and now < self._leased):
            return None
        self._given += 1
        permit = BreakerPermit(self._given, self._period)
        if state == "half-open":
            self._probe, self._leased = permit, now + LEASE
        return permit

    def succeeded(self, permit: BreakerPermit) -> None:
        """Note that the server answered this call."""
        if permit.period != self._period:
            self.revive()
            return
        if self._failures >= self._most:
            self._turn()
        self._failures = 0

    def failed(self, permit: BreakerPermit) -> None:
        """Note that it did not."""
        if permit.period != self._period:
            return
        self._failures += 1
        if self._failures >= self._most:
            self._turn()
            self._until = self._clock() + self._seconds

    def abandoned(self, permit: BreakerPermit) -> None:
        """Note that a call ended without saying anything of the server: its client gave it up."""
        if permit == self._probe:
            self._probe = None

    def revive(self) -> None:
        """Note a sign of life that was no call."""
        self._until = -math.inf

    def _turn(self) -> None:
        self._period += 1
        self._probe = None

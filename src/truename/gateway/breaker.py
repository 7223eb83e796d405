"""A circuit breaker: a server that fails again and again is left alone until it shows a sign of life."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Breaker"]

State = Literal["closed", "open", "half-open"]


class Breaker:
    """Counts failures in a row; after ``failures`` of them it is open, for at most ``seconds``.

    Half-open it lets one call through, the probe, whose outcome decides. A sign of life makes it half-open before the
    time is over, and lets another probe through where the last one takes long.

    >>> breaker = Breaker(failures=2, seconds=60)
    >>> breaker.failed(), breaker.failed(), breaker.admits(), breaker.state
    (None, None, False, 'open')
    >>> breaker.revive(), breaker.admits(), breaker.admits(), breaker.succeeded(), breaker.state
    (None, True, False, None, 'closed')
    """

    def __init__(self, *, failures: int, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = failures
        self._seconds = seconds
        self._clock = clock
        self._failures = 0
        self._until = -math.inf
        self._is_probing = False

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

    def admits(self) -> bool:
        """Tell whether a call may be sent; half-open, that takes the place of the probe."""
        if self.state != "half-open":
            return self.state == "closed"
        admitted = not self._is_probing
        self._is_probing = True
        return admitted

    def succeeded(self) -> None:
        """Note that the server answered."""
        self._failures, self._is_probing = 0, False

    def failed(self) -> None:
        """Note that it did not."""
        self._failures, self._is_probing = self._failures + 1, False
        self._until = self._clock() + self._seconds

    def abandoned(self) -> None:
        """Note that a call ended without saying anything of the server: its client gave it up."""
        self._is_probing = False

    def revive(self) -> None:
        """Note a sign of life that was no call."""
        self._until, self._is_probing = -math.inf, False

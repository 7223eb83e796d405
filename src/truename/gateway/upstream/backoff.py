"""How long to wait before a server is tried again: longer each time, never all at once, shorter when it is wanted."""

from __future__ import annotations

import math
import random
import time
from typing import TYPE_CHECKING, Final

import anyio

from truename.gateway.background import background

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from truename.gateway.upstream_errors import UpstreamError

__all__ = ["Backoff", "FlapDamping"]

_FIRST: Final = 0.2
_LONGEST: Final = 30.0
# A call that wants the server waits so long for it; meanwhile it is tried again after this at most.
_WANTED: Final = 2.0
_WANTED_DELAY: Final = 0.4
# How long an attempt may go without an answer while a call waits: some times what the last good one took, within
# bounds. After some that were cut off it is twice as long, for a server that has become slower.
_TIMES: Final = 3
SHORTEST_ATTEMPT: Final = 1.0
FIRST_ATTEMPT: Final = 5.0
_CUT_OFF: Final = 5
# A connection that lasted this long was a good one: its loss is met without delay.
_STEADY: Final = 5.0
# Trying again soon does not mend these.
_LASTING: Final = frozenset({"missing", "protocol", "refused", "too_large"})
_LASTING_DELAY: Final = 5.0
# A burst of announcements is one change.
_SETTLE: Final = 0.05
_QUIET: Final = 1.0


class Backoff:
    """Counts the attempts of one server."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._attempts = 0
        self._wanted = anyio.Event()
        self._wanted_until = -math.inf
        self._usual: float | None = None
        self._cut_off = 0
        self.began = clock()

    def begin(self) -> None:
        """Note that an attempt begins."""
        self.began = self._clock()
        self._wanted = anyio.Event()
        if self._is_wanted:
            self._wanted.set()

    @property
    def seconds(self) -> float:
        """How long the attempt has taken."""
        return self._clock() - self.began

    @property
    def _is_wanted(self) -> bool:
        return self._clock() < self._wanted_until

    def hurry(self) -> None:
        """Ask for the next attempt now: a call is waiting."""
        self._wanted_until = self._clock() + _WANTED
        self._wanted.set()

    @property
    def limit(self) -> float:
        """How long an attempt may go without an answer while a call waits."""
        usual = FIRST_ATTEMPT if self._usual is None else max(SHORTEST_ATTEMPT, _TIMES * self._usual)
        return float(usual * 2 ** min(self._cut_off // _CUT_OFF, 10))

    async def answered(self, attempt: Awaitable[None]) -> None:
        """Await an attempt. Raises `TimeoutError` with the seconds once it takes too long for a call that waits.

        Where packets vanish, an attempt from before a server's return would not find it for many seconds.
        """
        limit = self.limit
        with anyio.CancelScope() as scope:
            async with background() as tasks:
                tasks.start_soon(self._give_up, limit, scope)
                await attempt
        if scope.cancelled_caught:
            self._cut_off += 1
            raise TimeoutError(limit)
        self._usual, self._cut_off = self.seconds, 0

    async def _give_up(self, limit: float, attempt: anyio.CancelScope) -> None:
        await anyio.sleep(limit)
        await self._wanted.wait()
        attempt.cancel()

    async def pause(self, problem: UpstreamError | None) -> None:
        """Wait before the next attempt."""
        self._attempts = 0 if self.seconds > _STEADY else self._attempts + 1
        delay = min(_LONGEST, _FIRST * 2 ** min(self._attempts, 10))
        if problem is not None and problem.kind in _LASTING:
            delay = max(delay, _LASTING_DELAY)
        await anyio.sleep(_jittered(min(delay, _WANTED_DELAY)))
        if not self._is_wanted:
            with anyio.move_on_after(_jittered(delay)):
                await self._wanted.wait()


class FlapDamping:
    """How long a server's announcements of changes may wait: longer while they don't cease, so that it rules nobody."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._delay = _SETTLE
        self._until = -math.inf

    def delay(self) -> float:
        """Return how long to wait now that one came; short again after a quiet time as long as the last wait."""
        now = self._clock()
        restless = now < self._until + max(_QUIET, self._delay)
        self._delay = min(_LONGEST, 2 * self._delay) if restless else _SETTLE
        self._until = now + self._delay
        return self._delay


def _jittered(seconds: float) -> float:
    return seconds * random.uniform(0.5, 1)  # noqa: S311 - nothing secret: it keeps servers from starting in step

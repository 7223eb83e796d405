"""How long to wait before a server is tried again: longer each time, never all at once, shorter when it is wanted."""

from __future__ import annotations

import math
import random
import time
from typing import TYPE_CHECKING, Final

import anyio

if TYPE_CHECKING:
    from collections.abc import Callable

    from truename.gateway.faults import UpstreamError

__all__ = ["Calm", "Patience"]

_FIRST: Final = 0.2
_LONGEST: Final = 30.0
# A connection that lasted this long was a good one: its loss is met without delay.
_STEADY: Final = 5.0
# Trying again soon does not mend these.
_LASTING: Final = frozenset({"missing", "protocol", "refused", "too_large"})
_LASTING_DELAY: Final = 5.0
# A burst of announcements is one change.
_SETTLE: Final = 0.05
_QUIET: Final = 1.0


class Patience:
    """Counts the attempts of one server."""

    def __init__(self) -> None:
        self._attempts = 0
        self._wanted = anyio.Event()
        self.began = time.monotonic()

    def begin(self) -> None:
        """Note that an attempt begins."""
        self.began = time.monotonic()
        self._wanted = anyio.Event()

    @property
    def seconds(self) -> float:
        """How long the attempt has taken."""
        return time.monotonic() - self.began

    def hurry(self) -> None:
        """Ask for the next attempt now: a call is waiting."""
        self._wanted.set()

    async def pause(self, problem: UpstreamError | None) -> None:
        """Wait before the next attempt."""
        self._attempts = 0 if self.seconds > _STEADY else self._attempts + 1
        delay = min(_LONGEST, _FIRST * 2 ** min(self._attempts, 10))
        if problem is not None and problem.kind in _LASTING:
            delay = max(delay, _LASTING_DELAY)
        await anyio.sleep(_jittered(_FIRST))
        with anyio.move_on_after(_jittered(delay)):
            await self._wanted.wait()


class Calm:
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

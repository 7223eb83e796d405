"""Limit how much is done at once, and let people take turns: whoever asks for much waits behind themselves."""

from __future__ import annotations

from collections import OrderedDict, deque
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, TypeVar

import anyio
from anyio import to_thread

from truename.console.refusals import RefusedError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

__all__ = ["FairSemaphore"]

Made = TypeVar("Made")
MOST_WAITING: Final = 32
_TOO_MANY: Final = "You have asked for too many pages at once. Wait a moment, and reload."


class FairSemaphore:
    """At most ``places`` have their turn at once; of those who wait, each person's first one is next in turn.

    Of one person at most ``MOST_WAITING`` wait; the next ones are refused.
    """

    def __init__(self, places: int) -> None:
        self._free = places
        self._limiter = anyio.CapacityLimiter(places)
        # By person, the one whose turn is next first.
        self._waiting: OrderedDict[str, deque[anyio.Event]] = OrderedDict()

    async def run(self, whose: str, make: Callable[[], Made]) -> Made:
        """Run a function in a thread, and return its result. Raises `RefusedError` if too many of this person wait."""
        async with self.turn(whose):
            return await to_thread.run_sync(make, limiter=self._limiter)

    @asynccontextmanager
    async def turn(self, whose: str) -> AsyncIterator[None]:
        """Wait for a turn, and have it while the block lasts. Raises `RefusedError` as `run` does."""
        if self._free:
            self._free -= 1
        else:
            await self._wait(whose)
        try:
            yield
        finally:
            self._hand_on()

    async def _wait(self, whose: str) -> None:
        own = self._waiting.setdefault(whose, deque())
        if len(own) >= MOST_WAITING:
            raise RefusedError(429, _TOO_MANY)
        turn = anyio.Event()
        own.append(turn)
        try:
            await turn.wait()
        except BaseException:
            if turn.is_set():
                self._hand_on()
            else:
                own.remove(turn)
                if not own:
                    del self._waiting[whose]
            raise

    def _hand_on(self) -> None:
        """Give the place that is free now to the next person who waits."""
        if not self._waiting:
            self._free += 1
            return
        whose, own = self._waiting.popitem(last=False)
        own.popleft().set()
        if own:
            self._waiting[whose] = own

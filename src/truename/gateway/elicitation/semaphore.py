"""How many calls may run at one server: a call that waits for a person lends its permit to others."""

from __future__ import annotations

from collections import deque
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ["Permit", "Semaphore"]


class Semaphore:
    """So many permits at a time. Who waits is let in in the order of coming, who was in before goes first."""

    def __init__(self, most: int) -> None:
        self._free = most
        self._returning: deque[anyio.Event] = deque()
        self._coming: deque[anyio.Event] = deque()

    @property
    def free(self) -> int:
        """How many more may begin now."""
        return max(0, self._free)

    @property
    def waiting(self) -> int:
        """How many wait to begin."""
        return len(self._coming)

    def take_at_once(self) -> Permit | None:
        """Take a permit if one is free."""
        if self._free <= 0:
            return None
        self._free -= 1
        return Permit(self)

    async def take(self) -> Permit:
        """Take a place; where none is free, wait for one."""
        await self.enter(self._coming)
        return Permit(self)

    async def enter(self, queue: deque[anyio.Event] | None = None) -> None:
        """Take a place in a queue, by default before all who have not begun yet."""
        queue = self._returning if queue is None else queue
        if self._free > 0:
            self._free -= 1
            return
        turn = anyio.Event()
        queue.append(turn)
        try:
            await turn.wait()
        except BaseException:
            if turn.is_set():
                self.leave()
            else:
                queue.remove(turn)
            raise

    def enter_at_once(self) -> None:
        """Take a place even if there is none: who leaves next then lets nobody in."""
        self._free -= 1

    def leave(self) -> None:
        """Leave a place, to who waits for it if anybody does."""
        if self._free >= 0 and (queue := self._returning or self._coming):
            queue.popleft().set()
        else:
            self._free += 1


class Permit:
    """The place of one call, which it can be away from. `leave` ends it, also while it is away."""

    def __init__(self, semaphore: Semaphore) -> None:
        self._semaphore = semaphore
        self._away = 0
        self._is_over = False

    @asynccontextmanager
    async def away(self) -> AsyncIterator[None]:
        """Leave the place to another call while the block lasts; what the call does then has to wait for one again.

        A call may be away for several things at once; it is back when the last of them ends.
        """
        self._away += 1
        if self._away == 1 and not self._is_over:
            self._semaphore.leave()
        try:
            yield
        except BaseException:
            # Whoever gave up waiting must not begin to wait for this.
            if self._came_back():
                self._semaphore.enter_at_once()
            raise
        if self._came_back():
            await self._enter()

    def _came_back(self) -> bool:
        self._away -= 1
        return not self._away and not self._is_over

    async def _enter(self) -> None:
        self._away += 1
        try:
            await self._semaphore.enter()
        except BaseException:
            if self._came_back():
                self._semaphore.enter_at_once()
            raise
        if not self._came_back():
            self._semaphore.leave()

    def leave(self) -> None:
        """End it."""
        if not self._away and not self._is_over:
            self._semaphore.leave()
        self._is_over = True

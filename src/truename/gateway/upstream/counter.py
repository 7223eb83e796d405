"""The requests that run at one server: counted, so that its connection is not ended under them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

__all__ = ["ActiveCounter"]


class ActiveCounter:
    """Counts while blocks last; ``quiet_since`` is when the last one ended, or when it was begun."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._none = anyio.Event()
        self.count = 0
        self.quiet_since = clock()

    def __enter__(self) -> None:
        self.count += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.count -= 1
        if not self.count:
            self.quiet_since = self._clock()
            self._none.set()

    async def none(self) -> None:
        """Wait until nothing is counted."""
        while self.count:
            self._none = anyio.Event()
            await self._none.wait()

    @property
    def quiet(self) -> float:
        """For how many seconds nothing was counted; 0 while something is."""
        return 0.0 if self.count else self._clock() - self.quiet_since

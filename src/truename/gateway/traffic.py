"""The calls that run through the gateway: counted, so that it can end without breaking one off."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import anyio

from truename.gateway.faults import UpstreamError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Traffic"]


class Traffic:
    """Counts calls while they run; once it is `close`d, no other begins."""

    def __init__(self) -> None:
        self._running = 0
        self._is_closed = False
        self._idle = anyio.Event()

    @property
    def running(self) -> int:
        """How many calls run now."""
        return self._running

    @contextmanager
    def call(self, gateway: str) -> Iterator[None]:
        """Count a call while the block lasts. Raises `UpstreamError` (busy) once the gateway is ending."""
        if self._is_closed:
            raise UpstreamError(
                server=gateway,
                kind="busy",
                problem="is ending and takes no more calls; this call was not sent",
                remedy="Connect again and repeat the call.",
            )
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1
            self._look()

    def close(self) -> None:
        """Let no other call begin."""
        self._is_closed = True
        self._look()

    async def drained(self) -> None:
        """Wait until no call runs any more, after `close`."""
        await self._idle.wait()

    def _look(self) -> None:
        if self._is_closed and not self._running:
            self._idle.set()

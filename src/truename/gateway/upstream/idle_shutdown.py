"""When a lazy server runs: from a request to it until none came for a while."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from truename.gateway.upstream.counter import ActiveCounter
    from truename.gateway.upstream.following import Follower

__all__ = ["IdleShutdown"]


class IdleShutdown:
    """The rest of one server: ``is_on`` while it is not to run. ``running`` counts the requests to it."""

    def __init__(self, running: ActiveCounter) -> None:
        self._running = running
        self._wanted = anyio.Event()
        self._tried = anyio.Event()
        self.is_on = False

    @property
    def is_wanted(self) -> bool:
        """Whether somebody waits for it."""
        return self._wanted.is_set() or self._running.count > 0

    async def over(self) -> None:
        """IdleShutdown until somebody wants the server."""
        self.is_on = True
        await self._wanted.wait()
        self.is_on = False

    def wake(self) -> None:
        """Have the server started."""
        if not self._wanted.is_set():
            self._tried = anyio.Event()
            self._wanted.set()

    async def want(self, patience: float) -> None:
        """Have the server started, and wait until it is ready, or the attempt failed."""
        self.wake()
        with anyio.move_on_after(patience):
            await self._tried.wait()

    def tried(self) -> None:
        """Note that an attempt is over; who wants the server from now on wants another one."""
        self._tried.set()
        self._wanted = anyio.Event()

    async def idle(self, seconds: float, follower: Follower) -> None:
        """Wait until there was no request for so long, and nobody watches a resource."""
        await anyio.sleep(seconds)
        while follower.watches or self._running.quiet < seconds:
            await self._running.none()
            await anyio.sleep(seconds if follower.watches else seconds - self._running.quiet)

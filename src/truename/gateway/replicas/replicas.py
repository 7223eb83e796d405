"""One gateway process among the replicas of its scope: its lease, requests to the others, and answers to theirs."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

import anyio

from truename.gateway.protocol.turns import in_thread
from truename.gateway.replicas.client import PeerClient
from truename.gateway.replicas.receiving import PeerReceiver
from truename.gateway.replicas.registry import ReplicaRegistry

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from truename.gateway.replicas.receiving import Handler, RequestBounds
    from truename.storage import StateLocation

__all__ = ["Replicas"]


class Replicas:
    """This process among the replicas of its scope.

    ``registry`` says who is alive and who holds what. ``client`` sends requests to others. `handle` adds a kind of
    requests that this process answers. ``receiver`` is the application for the listener at this process's address.

    Make it with `joined`.
    """

    def __init__(
        self,
        where: StateLocation,
        address: str,
        key: bytes,
        bounds: RequestBounds,
        loop: asyncio.AbstractEventLoop,
        *,
        id: str | None = None,
    ) -> None:
        self._loop = loop
        self._listeners: list[Callable[[], object]] = []
        self._handlers: dict[str, Handler] = {}
        self.registry = ReplicaRegistry(where, address, id=id, on_change=self._changed)
        self.client = PeerClient(self.registry, key)
        self.receiver = PeerReceiver(self.registry, key, self._handlers, bounds)

    @classmethod
    @asynccontextmanager
    async def joined(
        cls, where: StateLocation, address: str, key: bytes, bounds: RequestBounds, *, id: str | None = None
    ) -> AsyncIterator[Replicas]:
        """Be one of the replicas while the block lasts; at its end all that is held is given up. Raises `StoreError`.

        ``address`` is where others reach this process, ``key`` is what all replicas of the scope have, and ``bounds``
        are those of requests of others. ``id`` is a `new_replica_id` under which this process is found at first.
        """
        replicas = await in_thread(partial(cls, where, address, key, bounds, asyncio.get_running_loop(), id=id))
        try:
            await in_thread(replicas.registry.start)
            async with replicas.client.running():
                yield replicas
        finally:
            with anyio.CancelScope(shield=True):
                await replicas.leave()

    async def leave(self) -> None:
        """Give up all that is held, at once; what others send is refused from then on."""
        await in_thread(self.registry.close)

    def handle(self, kind: str, handler: Handler) -> None:
        """Answer requests of this kind. Raises `ValueError` for a kind that has a handler."""
        if kind in self._handlers:
            message = f"two handlers of {kind}"
            raise ValueError(message)
        self._handlers[kind] = handler

    def on_change(self, then: Callable[[], object]) -> None:
        """Call this in the event loop when replicas came or went, or this process lost its lease."""
        self._listeners.append(then)

    def _changed(self) -> None:
        for then in self._listeners:
            # The loop may have ended.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(then)

"""Tell other replicas that a server announced a change of its lists, and hear it from them.

Each replica has a connection of its own to a server over HTTP. Many servers tell of a change only on the session over
which it came about; the lists of the other replicas would stay as they were. And a client that is told of a change
lists again, at any replica: so clients are told when all replicas have read the lists.
"""

from __future__ import annotations

from contextlib import asynccontextmanager, closing, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio

from truename.gateway.background import background
from truename.gateway.replicas.client import PeerFailure

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Sequence

    from truename.gateway.replicas.client import PeerClient
    from truename.gateway.replicas.liveness import Replica
    from truename.gateway.replicas.receiving import PeerReply, PeerRequest
    from truename.gateway.replicas.replicas import Replicas

__all__ = ["ListChangeRelay"]

_CHANGED: Final = "lists.changed"
_READ: Final = "lists.read"
# However often a server announces changes, the others are told no more often; how often they list is theirs to bound.
_PAUSE: Final = 0.25
# Seconds for which clients are not told of a change while a replica reads the lists.
_PATIENCE: Final = 2.0
# A replica that was just seen may have listed a server before a change, and joined after it.
_REMEMBERED: Final = 30.0


class ListChangeRelay:
    """The changes of lists that servers announced to this process, for the others once it is `among` them.

    ``hear`` reads the lists of a server whose change another replica was told of. What came from there is not passed
    on.
    """

    def __init__(self, hear: Callable[[str], Coroutine[Any, Any, None]]) -> None:
        self._hear = hear
        self._is_among = False
        self._announced: dict[str, float] = {}
        # By the id of a replica: the servers that it is still to be told of.
        self._untold: dict[str, set[str]] = {}
        # The replicas that tell all others now: this process, or one that told this process.
        self._telling: set[str] = set()
        self._woken, self._told = anyio.Event(), anyio.Event()

    def announce(self, server: str) -> None:
        """Note that a server announced a change to this process."""
        if self._is_among:
            self._announced[server] = anyio.current_time()
            for untold in self._untold.values():
                untold.add(server)
            self._woken.set()

    async def told(self) -> None:
        """Wait until all replicas have read the lists whose change was announced to any; for two seconds at most."""
        with anyio.move_on_after(_PATIENCE) as scope:
            while self._is_among and (self._telling or any(self._untold.values())):
                await self._told.wait()
        if scope.cancelled_caught:
            # One that ended meanwhile never says that it is over.
            self._telling.clear()

    @asynccontextmanager
    async def among(self, replicas: Replicas) -> AsyncIterator[None]:
        """Tell these replicas, and hear them, while the block lasts."""
        replicas.handle(_CHANGED, self._heard)
        replicas.handle(_READ, self._heard_end)
        replicas.on_change(self._wake)
        async with background() as tasks:
            self._is_among = True
            tasks.start_soon(self._tell, replicas)
            try:
                yield
            finally:
                self._is_among = False

    def _wake(self) -> None:
        self._woken.set()

    async def _tell(self, replicas: Replicas) -> None:
        own = replicas.registry.own.id
        while True:
            self._woken = anyio.Event()
            since = anyio.current_time() - _REMEMBERED
            self._announced = {server: at for server, at in self._announced.items() if at > since}
            peers = {one.id: one for one in replicas.registry.others()}
            self._untold = {id: self._untold.get(id, set(self._announced)) for id in peers}
            waiting = [peer for id, peer in peers.items() if self._untold[id]]
            self._telling.add(own)
            await self._tell_all(waiting, partial(self._tell_one, replicas.client))
            self._end(own)
            await self._tell_all(waiting, partial(_tell_end, replicas.client))
            await anyio.sleep(_PAUSE)
            if not any(self._untold.values()):
                await self._woken.wait()

    @staticmethod
    async def _tell_all(peers: Sequence[Replica], tell: Callable[[Replica], Coroutine[Any, Any, None]]) -> None:
        async with anyio.create_task_group() as tasks:
            for peer in peers:
                tasks.start_soon(tell, peer)

    async def _tell_one(self, client: PeerClient, peer: Replica) -> None:
        """Tell one replica, and wait until it has read. Hearing it twice does no harm, so a failure is told again."""
        servers, began = frozenset(self._untold[peer.id]), anyio.current_time()
        with anyio.move_on_after(2 * _PATIENCE), suppress(PeerFailure):
            response = await client.send(peer, _CHANGED, {"servers": sorted(servers)}, b"")
            with closing(response):
                # What announced another change meanwhile is told once more.
                self._untold[peer.id] -= {one for one in servers if self._announced.get(one, began) <= began}
                async for _ in response.body():
                    pass

    async def _heard(self, request: PeerRequest, reply: PeerReply) -> None:
        servers: Any = request.about.get("servers")
        if not isinstance(servers, list) or not all(isinstance(one, str) for one in servers):
            await reply.refuse("it names no servers")
            return
        self._telling.add(request.sender.id)
        await reply.begin({})
        await reply.write(b"")
        with anyio.move_on_after(_PATIENCE):
            async with anyio.create_task_group() as tasks:
                for server in servers:
                    tasks.start_soon(self._hear, server)
        await reply.end()

    async def _heard_end(self, request: PeerRequest, reply: PeerReply) -> None:
        self._end(request.sender.id)
        await reply.begin({})
        await reply.end()

    def _end(self, id: str) -> None:
        self._telling.discard(id)
        self._told.set()
        self._told = anyio.Event()


async def _tell_end(client: PeerClient, peer: Replica) -> None:
    """Tell a replica that all have read the lists. One that does not hear it waits two seconds for it."""
    with anyio.move_on_after(_PATIENCE), suppress(PeerFailure):
        (await client.send(peer, _READ, {}, b"")).close()

"""Tell other replicas that a server announced a change of its lists, and hear it from them.

Each replica has a connection of its own to a server over HTTP. Many servers tell of a change only on the session over
which it came about; the lists of the other replicas would stay as they were.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import anyio

from truename.gateway.background import background
from truename.gateway.replicas.client import PeerFailure

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from truename.gateway.replicas.liveness import Replica
    from truename.gateway.replicas.receiving import PeerReply, PeerRequest
    from truename.gateway.replicas.replicas import Replicas

__all__ = ["ListNews"]

_KIND: Final = "lists.changed"
# However often a server announces changes, the others are told no more often; how often they list is theirs to bound.
_PAUSE: Final = 0.25
_PATIENCE: Final = 1.0
# A replica that was just seen may have listed a server before a change, and joined after it.
_REMEMBERED: Final = 30.0


class ListNews:
    """The changes of lists that servers announced to this process, for the others once it is `among` them.

    ``hear`` is called with the key of a server whose change another replica was told of. What came from there is not
    passed on.
    """

    def __init__(self, hear: Callable[[str], None]) -> None:
        self._hear = hear
        self._is_among = False
        self._announced: dict[str, float] = {}
        # By the id of a replica: the servers that it is still to be told of.
        self._untold: dict[str, set[str]] = {}
        self._woken = anyio.Event()

    def announce(self, server: str) -> None:
        """Note that a server announced a change to this process."""
        if self._is_among:
            self._announced[server] = anyio.current_time()
            for untold in self._untold.values():
                untold.add(server)
            self._woken.set()

    @asynccontextmanager
    async def among(self, replicas: Replicas | None) -> AsyncIterator[None]:
        """Tell these replicas, and hear them, while the block lasts. None: there are no others."""
        if replicas is None:
            yield
            return
        replicas.handle(_KIND, self._heard)
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
        while True:
            self._woken = anyio.Event()
            since = anyio.current_time() - _REMEMBERED
            self._announced = {server: at for server, at in self._announced.items() if at > since}
            peers = {one.id: one for one in replicas.registry.others()}
            self._untold = {id: self._untold.get(id, set(self._announced)) for id in peers}
            async with anyio.create_task_group() as tasks:
                for id, peer in peers.items():
                    if self._untold[id]:
                        tasks.start_soon(self._tell_one, replicas, peer)
            await anyio.sleep(_PAUSE)
            if not any(self._untold.values()):
                await self._woken.wait()

    async def _tell_one(self, replicas: Replicas, peer: Replica) -> None:
        """Tell one replica. Hearing it twice does no harm, so it is told again if the request fails."""
        servers, began = frozenset(self._untold[peer.id]), anyio.current_time()
        with anyio.move_on_after(_PATIENCE):
            try:
                response = await replicas.client.send(peer, _KIND, {"servers": sorted(servers)}, b"")
            except PeerFailure as failure:
                if failure.has_ended:
                    replicas.registry.observed.note_end(peer.id)
                return
            response.close()
            # One that announced another change meanwhile is told of once more.
            self._untold[peer.id] -= {one for one in servers if self._announced[one] <= began}

    async def _heard(self, request: PeerRequest, reply: PeerReply) -> None:
        servers: Any = request.about.get("servers")
        if not isinstance(servers, list) or not all(isinstance(one, str) for one in servers):
            await reply.refuse("it names no servers")
            return
        for server in servers:
            self._hear(server)
        await reply.begin({})
        await reply.end()

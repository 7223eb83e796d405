"""Send requests to other replicas, over connections that are kept. Nothing is ever sent twice."""

from __future__ import annotations

import socket
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import anyio

from truename.gateway.background import background
from truename.gateway.http_connections import Connections, HttpFailure, HttpOrigin, fields_of
from truename.gateway.replicas.sealing import FrameReader, RequestHead, SealError, seal_request

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from ipaddress import IPv4Address, IPv6Address

    from truename.gateway.http_connections import HttpResponse
    from truename.gateway.replicas.liveness import Replica
    from truename.gateway.replicas.registry import ReplicaRegistry

__all__ = ["GIVEN_UP", "PATH", "PROOF", "REFUSED", "PeerClient", "PeerFailure", "PeerResponse", "host_and_port"]

PATH: Final = "/replica/1"
"""The only path of the listener between replicas."""
PROOF: Final = b"truename-replica"
"""The header with the head of a request, sealed: it is checked before anything of the body is read."""
REFUSED: Final = "refused"
"""The key in the head of a response that says why the target did nothing at all with the request."""
GIVEN_UP: Final = "given_up"
"""The key with the fencing token of a lease that the target gave up, so that the sender may take it."""
# Elsewhere a process that is too busy to accept a connection looks the same.
_SAYS_THE_END: Final = sys.platform == "linux"
_LOOK: Final = 0.25
# A replica that ended in order has sent its last answers, but they may not have been read yet.
_LAST_WORDS: Final = 2.0
_CONNECT: Final = 2.0
_TYPE: Final = (b"content-type", b"application/octet-stream")


class PeerFailure(Exception):
    """A request to a replica that was not answered whole.

    ``is_certain``: the replica did not do anything with it. ``was_refused``: because it said so. ``has_ended``: because
    its process does not exist any more. ``given_up`` is the fencing token of the lease that it gave up instead.
    """

    def __init__(
        self,
        text: str,
        *,
        is_certain: bool,
        was_refused: bool = False,
        has_ended: bool = False,
        given_up: int | None = None,
    ) -> None:
        super().__init__(text)
        self.given_up = given_up
        self.is_certain = is_certain
        self.was_refused = was_refused
        self.has_ended = has_ended


class PeerResponse:
    """A response of another replica: its head is there, the body comes. Close it in any case."""

    def __init__(self, response: HttpResponse, reader: FrameReader) -> None:
        self.about: dict[str, Any] = {}
        self._response = response
        self._reader = reader
        self._pieces: list[bytes] = []
        self._has_head = False

    async def begin(self) -> None:
        """Wait for the head. Raises `PeerFailure`."""
        while not await self._more():
            pass

    async def body(self) -> AsyncIterator[bytes]:
        """Yield the body as it comes. Raises `PeerFailure` if it breaks off."""
        while True:
            pieces, self._pieces = self._pieces, []
            for piece in pieces:
                yield piece
            if self._reader.is_over and not self._pieces:
                return
            await self._more()

    async def _more(self) -> bool:
        """Read more, and return whether the head has come."""
        try:
            data = await self._response.chunk()
            if data is None:
                raise PeerFailure("the response broke off", is_certain=False)
            for one in self._reader.feed(data):
                if isinstance(one, bytes):
                    self._pieces.append(one)
                else:
                    self.about = one
                    self._has_head = True
        except (HttpFailure, SealError) as error:
            raise PeerFailure(str(error), is_certain=False) from error
        return self._has_head

    def close(self) -> None:
        """Free the connection; a response that has not come whole is broken off."""
        self._response.close()


@dataclass(frozen=True)
class _Target:
    replica: Replica
    origin: HttpOrigin
    fields: bytes
    connections: Connections


class PeerClient:
    """Sends requests to other replicas of this process's scope, sealed with its key."""

    def __init__(self, registry: ReplicaRegistry, key: bytes) -> None:
        self._registry = registry
        self._key = key
        self._targets: dict[str, _Target] = {}
        self._numbers = count(1)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Break off what waits for replicas that are gone, while the block lasts; close all connections at its end."""
        try:
            async with background() as tasks:
                tasks.start_soon(self._watch)
                yield
        finally:
            for id in list(self._targets):
                await self._drop(id)

    async def _watch(self) -> None:
        gone: dict[str, float] = {}
        while True:
            await anyio.sleep(_LOOK)
            observed, now = self._registry.observed, anyio.current_time()
            gone = {id: gone.get(id, now) for id in self._targets if observed[id] is None}
            over = {id for id, since in gone.items() if now - since > _LAST_WORDS}
            for id in [id for id in self._targets if id in over or observed.is_expired(id)]:
                await self._drop(id)

    async def _drop(self, id: str) -> None:
        await self._targets.pop(id).connections.aclose()

    async def send(self, replica: Replica, kind: str, about: dict[str, Any], body: bytes) -> PeerResponse:
        """Send a request to the handler ``kind`` of a replica, and return its response when its head has come.

        Raises `PeerFailure`. Only one that is certain may be followed by another attempt.
        """
        target, sighting = self._target(replica), self._registry.observed[replica.id]
        own, beat = self._registry.own, 0 if sighting is None else sighting.beat
        is_here = replica.machine == own.machine and _is_loopback(target.origin.host)
        if _is_loopback(target.origin.host) and not is_here:
            text = f"{replica.address} is on another machine"
            raise PeerFailure(text, is_certain=True)
        # The number is drawn by this process, whatever its entry is called meanwhile.
        head = RequestHead(own.id, own.fence, replica.id, replica.fence, beat, next(self._numbers), kind)
        sealed = seal_request(self._key, head, about, body)
        try:
            fields = target.fields + fields_of([(PROOF, sealed.proof)])
            response = await target.connections.send(
                b"POST", target.origin, PATH.encode(), fields, sealed.content, connect=_CONNECT
            )
        except HttpFailure as failure:
            has_ended = _SAYS_THE_END and isinstance(failure.__cause__, ConnectionRefusedError)
            text = f"{replica.address}: {failure}"
            raise PeerFailure(text, is_certain=not failure.was_sent, has_ended=has_ended and is_here) from failure
        found = PeerResponse(response, FrameReader(self._key, sealed.salt))
        try:
            if response.status != 200:
                # It is not sealed, so anybody may have sent it.
                raise PeerFailure(f"{replica.address}: HTTP {response.status}", is_certain=False)
            await found.begin()
            if (reason := found.about.get(REFUSED)) is not None:
                text, given_up = f"{replica.address}: {reason}", found.about.get(GIVEN_UP)
                raise PeerFailure(text, is_certain=True, was_refused=True, given_up=given_up)
        except BaseException:
            found.close()
            raise
        return found

    def _target(self, replica: Replica) -> _Target:
        known = self._targets.get(replica.id)
        if known is None or known.replica != replica:
            host, port = host_and_port(replica.address)
            fields = fields_of([(b"host", replica.address.encode("ascii", "replace")), _TYPE])
            known = _Target(replica, HttpOrigin("http", host, port), fields, Connections(_PeerResolver()))
            self._targets[replica.id] = known
        return known


def host_and_port(address: str) -> tuple[str, int]:
    """Return the two parts of HOST:PORT.

    >>> host_and_port("[::1]:80"), host_and_port("gw-1.internal:8751")
    (('::1', 80), ('gw-1.internal', 8751))
    """
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class _PeerResolver:
    """Finds the address that a replica registered. It is the operator's word, so none is refused."""

    async def addresses(self, host: str, port: int) -> tuple[IPv4Address | IPv6Address, ...]:
        """Return the addresses to connect to. Raises `OSError`."""
        try:
            return (ip_address(host),)
        except ValueError:
            found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            return tuple(ip_address(str(where[0]).partition("%")[0]) for *_, where in found)

    def check_written(self, host: str) -> None:
        """Refuse none."""

"""Answer requests of other replicas: open them, refuse those that are foreign, late or replayed, and hand them on."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from truename.gateway.replicas.client import GIVEN_UP, PATH, REFUSED
from truename.gateway.replicas.sealing import FrameWriter, SealError, SenderWindow, open_request

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.types import Receive, Scope, Send

    from truename.gateway.replicas.liveness import Replica
    from truename.gateway.replicas.registry import ReplicaRegistry
    from truename.gateway.replicas.sealing import RequestHead

    Handler = Callable[["PeerRequest", "PeerReply"], Awaitable[None]]

__all__ = ["LATE", "PeerReceiver", "PeerReply", "PeerRequest", "RequestBounds"]

LATE: Final = 20
"""Heartbeats of this process after which a request that names one counts as late: ten seconds."""
_OVERHEAD: Final = 256 * 1024
# Of the future: a heartbeat that was stored may be read before this process knows that it was.
_AHEAD: Final = 2
_MOST_SENDERS: Final = 1_000
_STREAM: Final = (b"content-type", b"application/octet-stream")


class RequestBounds(NamedTuple):
    """How many bytes one request may have, and all together that are being read."""

    each: int
    total: int


@dataclass(frozen=True)
class PeerRequest:
    """A request of another replica, and the HTTP request that carried it."""

    sender: Replica
    about: dict[str, Any]
    body: bytes
    scope: Scope
    receive: Receive


class PeerReply:
    """Sends the response to a request of another replica, sealed."""

    def __init__(self, send: Send, frames: FrameWriter) -> None:
        self._send = send
        self._frames = frames
        self._head: bytes | None = None

    async def begin(self, about: dict[str, Any]) -> None:
        """Send the head, with the first piece of the body: each goes the whole way alone else."""
        self._head = self._frames.head(about)

    async def write(self, text: bytes) -> None:
        """Send a piece of the body."""
        await self._put(self._frames.body(text))

    async def end(self, text: bytes = b"") -> None:
        """Send the last piece of the body, and the end."""
        last = self._frames.body(text) + self._frames.end()
        if self._head is not None:
            last, self._head = self._head + last, None
            headers = [_STREAM, (b"content-length", b"%d" % len(last))]
            await self._send({"type": "http.response.start", "status": 200, "headers": headers})
        await self._send({"type": "http.response.body", "body": last})

    async def refuse(self, reason: str, *, given_up: int | None = None) -> None:
        """Say that nothing at all was done with the request, and which lease was given up, by its fencing token."""
        await self.begin({REFUSED: reason, GIVEN_UP: given_up})
        await self.end()

    async def _put(self, frames: bytes) -> None:
        if self._head is not None:
            frames, self._head = self._head + frames, None
            await self._send({"type": "http.response.start", "status": 200, "headers": [_STREAM]})
        await self._send({"type": "http.response.body", "body": frames, "more_body": True})


class PeerReceiver:
    """The ASGI application of the listener between replicas. ``handlers`` answer requests by their kind.

    ``bounds`` are how many bytes a request may have besides what it says of itself, and all that are being read.
    """

    def __init__(
        self, registry: ReplicaRegistry, key: bytes, handlers: dict[str, Handler], bounds: RequestBounds
    ) -> None:
        self._registry = registry
        self._key = key
        self._handlers = handlers
        self._bounds = bounds
        self._reading = 0
        # By sender; the numbers of one that is not in the table any more are not needed.
        self._windows: OrderedDict[tuple[str, int], SenderWindow] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. Whoever has not the key of the scope is told nothing but a status."""
        if scope["type"] != "http":
            return
        if scope["method"] != "POST" or scope["path"] != PATH:
            await _fail(send, HTTPStatus.NOT_FOUND)
            return
        sealed = await self._read(receive)
        if isinstance(sealed, HTTPStatus):
            await _fail(send, sealed)
            return
        try:
            request = open_request(self._key, sealed)
        except SealError:
            await _fail(send, HTTPStatus.FORBIDDEN)
            return
        reply = PeerReply(send, FrameWriter(self._key, request.salt))
        sender = await self._registry.found(request.head.sender)
        reason = await self._reason(request.head, sender)
        handler = self._handlers.get(request.head.kind)
        if reason is not None or sender is None or handler is None:
            await reply.refuse(reason or "this version does not know such requests")
            return
        await handler(PeerRequest(sender, request.head.about, request.body, scope, receive), reply)

    async def _read(self, receive: Receive) -> bytes | HTTPStatus:
        """Return the whole body, or the status with which it is refused."""
        parts, size = list[bytes](), 0
        try:
            while True:
                message = await receive()
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                self._reading += len(parts[-1])
                if message["type"] != "http.request" or size > self._bounds.each + _OVERHEAD:
                    return HTTPStatus.REQUEST_ENTITY_TOO_LARGE
                if self._reading > self._bounds.total:
                    return HTTPStatus.SERVICE_UNAVAILABLE
                if not message.get("more_body", False):
                    return b"".join(parts)
        finally:
            self._reading -= size

    async def _reason(self, head: RequestHead, sender: Replica | None) -> str | None:
        """Return why a request is refused; None for one that is for this process, in time, and new."""
        own = self._registry.own
        # Whoever was stopped learns here that others may have what it held.
        if not await self._registry.check(own) or (head.target, head.target_fence) != (own.id, own.fence):
            return "it is for a replica that is not here any more"
        if sender is None or sender.fence != head.sender_fence:
            return "it is from a replica that has no lease"
        if not self._registry.beat - LATE <= head.beat <= self._registry.beat + _AHEAD:
            return "it is late"
        window = self._windows.setdefault((sender.id, sender.fence), SenderWindow())
        self._windows.move_to_end((sender.id, sender.fence))
        while len(self._windows) > _MOST_SENDERS:
            self._windows.popitem(last=False)
        return None if window.admits(head.number) else "it was sent before"


async def _fail(send: Send, status: HTTPStatus) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})

"""Answer requests of other replicas: open them, refuse those that are foreign, late or replayed, and hand them on.

Whoever has not the key of the scope is told nothing but a status, and nothing that follows is read. So is whoever sends
a request again, which may have run: a sealed refusal says that a request did not, and its sender may repeat it.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from truename.gateway.protocol.callers import header_of
from truename.gateway.replicas.client import GIVEN_UP, PATH, PROOF, REFUSED
from truename.gateway.replicas.sealing import FrameWriter, SealError, SenderWindow, open_content, open_head

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from starlette.types import Receive, Scope, Send

    from truename.gateway.replicas.liveness import Replica
    from truename.gateway.replicas.registry import ReplicaRegistry
    from truename.gateway.replicas.sealing import OpenedHead, RequestHead

    Handler = Callable[["PeerRequest", "PeerReply"], Awaitable[None]]

__all__ = ["LATE", "PROVED", "PeerReceiver", "PeerReply", "PeerRequest", "RequestBounds"]

LATE: Final = 20
"""Heartbeats of this process after which a request that names one counts as late: ten seconds."""
PROVED: Final = "truename.peer-proved"
"""Where a scope has what is told, with the sender's id, that a request comes from a replica."""
_OVERHEAD: Final = 256 * 1024
# Of the future: a heartbeat that was stored may be read before this process knows that it was.
_AHEAD: Final = 2
_MOST_SENDERS: Final = 1_000
_STREAM: Final = (b"content-type", b"application/octet-stream")


class RequestBounds(NamedTuple):
    """How many bytes one request may have, and all together that are being read. One alone may be longer than that."""

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
        """Answer one request."""
        if scope["type"] != "http":
            return
        if scope["method"] != "POST" or scope["path"] != PATH:
            await _fail(send, HTTPStatus.NOT_FOUND)
            return
        try:
            opened = open_head(self._key, header_of(scope, PROOF) or b"")
            if not self._is_new(opened.head):
                raise SealError
            if PROVED in scope:
                scope[PROVED](opened.head.sender)
            read = await self._read(opened, receive)
        except SealError:
            await _fail(send, HTTPStatus.FORBIDDEN)
            return
        reply, head = PeerReply(send, FrameWriter(self._key, opened.salt)), opened.head
        if isinstance(read, str):
            await reply.refuse(read)
            return
        sender = await self._registry.found(head.sender)
        reason, handler = await self._reason(head, sender), self._handlers.get(head.kind)
        if reason is not None or sender is None or handler is None:
            await reply.refuse(reason or "this version does not know such requests")
            return
        await handler(PeerRequest(sender, *read, scope, receive), reply)

    async def _read(self, opened: OpenedHead, receive: Receive) -> tuple[dict[str, Any], bytes] | str:
        """Return what follows a head, or why it is refused. Raises `SealError` for what is not that."""
        size = opened.head.size
        if size > self._bounds.each + _OVERHEAD:
            refused = "it is too large"
        elif self._reading and self._reading + size > self._bounds.total:
            refused = "too many bytes of requests are being read"
        else:
            self._reading += size
            try:
                return open_content(self._key, opened, b"".join([part async for part in _parts(receive, size)]))
            finally:
                self._reading -= size
        # Whoever still sends would not read an answer.
        async for _ in _parts(receive, size):
            pass
        return refused

    def _is_new(self, head: RequestHead) -> bool:
        """Return whether a request did not come before, and note that it came."""
        sender = head.sender, head.sender_fence
        window = self._windows.setdefault(sender, SenderWindow())
        self._windows.move_to_end(sender)
        while len(self._windows) > _MOST_SENDERS:
            self._windows.popitem(last=False)
        return window.admits(head.number)

    async def _reason(self, head: RequestHead, sender: Replica | None) -> str | None:
        """Return why a request is refused; None for one that is for this process, and in time."""
        own = self._registry.own
        # Whoever was stopped learns here that others may have what it held.
        if not await self._registry.check(own) or (head.target, head.target_fence) != (own.id, own.fence):
            return "it is for a replica that is not here any more"
        if sender is None or sender.fence != head.sender_fence:
            return "it is from a replica that has no lease"
        if not self._registry.beat - LATE <= head.beat <= self._registry.beat + _AHEAD:
            return "it is late"
        return None


async def _parts(receive: Receive, size: int) -> AsyncIterator[bytes]:
    """Yield the parts of a body of so many bytes. Raises `SealError` for any other."""
    left, has_more = size, True
    while has_more:
        message = await receive()
        part = message.get("body", b"")
        left, has_more = left - len(part), message.get("more_body", False)
        if left < 0 or (left and not has_more):
            raise SealError
        yield part


async def _fail(send: Send, status: HTTPStatus) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})

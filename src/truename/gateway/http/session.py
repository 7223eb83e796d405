"""One session over HTTP (the handshake versions): its client, the requests that run, and the streams that are open."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import anyio

from truename.gateway.http.replay import STANDALONE
from truename.gateway.mcp.connection import Channel, ClientConnection, PendingRequests
from truename.gateway.mcp.messages import is_id

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator

    from truename.gateway.cancellation import Cancellation
    from truename.gateway.http.replay import Key, Replay
    from truename.gateway.http.response_stream import EventWriter, ResponseStream
    from truename.gateway.mcp.requests import RequestId
    from truename.gateway.replicas.liveness import Replica
    from truename.policy.principal import Principal

    Message = dict[str, Any]

__all__ = ["SESSION_HEADER", "Session"]

SESSION_HEADER: Final = b"mcp-session-id"


class Session:
    """One session: its client, the requests that run, and the streams that are open."""

    def __init__(
        self,
        id: str,
        principal: Principal,
        replay: Replay,
        *,
        first: int = 1,
        is_resumed: bool = False,
        own: Replica | None = None,
    ) -> None:
        self.id = id
        # As what this process holds it, where it has replicas.
        self.own = own
        self.principal = principal
        self.is_resumed = is_resumed
        self.headers = [(SESSION_HEADER, id.encode("ascii"))]
        self.requests = PendingRequests(first)
        self.connection = ClientConnection(Channel(self._tell, self.requests))
        self.events = replay.session(self._is_live)
        # The requests that are being answered; `cancel` and the end of the session break them off.
        self.running: dict[RequestId, Cancellation] = {}
        self.streams: dict[Key, ResponseStream] = {}
        # The connections that go on with streams, by the number of the stream.
        self.followers: dict[int, EventWriter] = {}
        # Of another process: requests whose clients were told that they are lost.
        self.lost: set[RequestId] = set()
        self.on_listening: Callable[[], object] | None = None
        self.open_requests = 0
        self.last_use = 0.0
        # Ends the session when it is not used for long.
        self.expiry: asyncio.TimerHandle | None = None
        self.is_over = False
        self._listener: tuple[EventWriter, anyio.CancelScope] | None = None

    def _is_live(self, key: Key) -> bool:
        return key in self.streams or (key is STANDALONE and self._listener is not None)

    @property
    def is_listening(self) -> bool:
        """Whether the client has its standalone stream open."""
        return self._listener is not None

    async def _tell(self, message: Message) -> None:
        """Send a message that belongs to no request; it is kept for a client that listens later."""
        event = self.events.store(STANDALONE, message)
        if self._listener is not None:
            await self._listener[0].write(event.text, event.id)

    def cancel(self, id: object) -> None:
        """Break off a request that the client cancels."""
        if is_id(id) and (scope := self.running.get(id)) is not None:
            scope.cancel()

    @contextmanager
    def listening(self, writer: EventWriter) -> Iterator[anyio.CancelScope]:
        """Have what belongs to no request sent to this stream while the block lasts."""
        with anyio.CancelScope() as scope:
            own = self._listener = writer, scope
            try:
                yield scope
            finally:
                if self._listener is own:
                    self._listener = None

    async def detach(self, key: Key) -> None:
        """End the connection on which a stream is sent, without waiting for its client: another goes on with it."""
        if key is STANDALONE:
            if self._listener is not None:
                listener, self._listener = self._listener, None
                listener[1].cancel()
        elif (stream := self.streams.pop(key, None)) is not None:
            await stream.detach()

    def end(self) -> None:
        """Break off all requests and streams; what was kept for the client is let go."""
        self.is_over = True
        if self.expiry is not None:
            # The timer would keep the session in memory until it fires.
            self.expiry.cancel()
        self.requests.close()
        self.events.close()
        for scope in self.running.values():
            scope.cancel()
        if self._listener is not None:
            self._listener[1].cancel()
        for follower in self.followers.values():
            follower.release()

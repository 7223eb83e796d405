"""An upstream server over streamable HTTP: a POST for each message, and a stream for what is told unasked."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import anyio

from truename.gateway.background import background
from truename.gateway.http_connections import HttpFailure
from truename.gateway.protocol.event_stream import EventReader, SentEvent
from truename.gateway.upstream.explained import explained
from truename.gateway.upstream.messages import receive
from truename.gateway.upstream.transport import Receiver, Transport, TransportError
from truename.gateway.upstream.transports.http_requests import EVENTS, HttpRequests, StreamPosition, pieces
from truename.gateway.upstream.web import headers_for, media_type

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable

    from anyio.abc import TaskGroup

    from truename.config import ServerConfig, Settings
    from truename.gateway.protocol.envelopes import Envelope
    from truename.gateway.protocol.lines import TooLong
    from truename.gateway.rate_limited_log import RateLimitedLog
    from truename.gateway.upstream.outside import Outside

__all__ = ["open_http"]

# A server may end its stream at once, and ask for no delay.
_SHORTEST_PAUSE: Final = 1.0
_MOST_FAILURES: Final = 2
_LAST_WORD: Final = 1.0


@asynccontextmanager
async def open_http(
    server: ServerConfig, settings: Settings, log: RateLimitedLog, outside: Outside
) -> AsyncIterator[Transport]:
    """Open a channel to the server's address; nothing is sent yet. Raises `UpstreamError` for one that is none."""
    sender = outside.sender(server)
    try:
        requests = HttpRequests(sender, server.url or "", headers_for(server.headers), settings.max_result)
    except HttpFailure as error:
        raise explained(server.key, "unreachable", str(error)) from error
    try:
        async with background() as tasks:
            transport = _HttpTransport(server.key, requests, log, tasks)
            try:
                yield transport
            finally:
                tasks.cancel_scope.cancel()
                await transport.end()
    finally:
        with anyio.CancelScope(shield=True):
            await sender.aclose()


class _HttpTransport(Transport):
    has_headers = True
    ends_calls_by_closing = True

    def __init__(self, key: str, requests: HttpRequests, log: RateLimitedLog, tasks: TaskGroup) -> None:
        super().__init__()
        self.listens = anyio.Event()
        self._key = key
        self._requests = requests
        self._log = log
        self._tasks = tasks
        self._lines = b""
        self._may_resume = False
        self._receiver: Receiver

    def begin(self, receiver: Receiver) -> None:
        """Give to this receiver what comes."""
        self._receiver = receiver

    async def greet(self, number: int, message: bytes) -> Envelope:
        """Send ``initialize``."""
        try:
            return await self._requests.greet(number, message, self._receiver)
        finally:
            if self._requests.is_outdated:
                self.outdated.set()

    async def greeted(self, message: bytes, headers: bytes) -> None:
        """Send ``notifications/initialized``, and open the stream of what is told unasked."""
        self._lines, self._may_resume = headers, True
        await self._requests.tell(message, headers)
        self._tasks.start_soon(self._follow)

    def request(self, number: int, message: bytes, headers: bytes) -> Awaitable[Envelope]:
        """Send a request, and return its response."""
        return self._requests.ask(number, message, headers, self._receiver, may_resume=self._may_resume)

    async def notify(self, message: bytes, headers: bytes) -> None:
        """Send a message that is not answered."""
        await self._requests.tell(message, headers)

    async def end(self) -> None:
        """Tell the server that the session is over, if there is one and there is time."""
        with anyio.move_on_after(_LAST_WORD, shield=True):
            await self._requests.end(self._lines)

    async def _follow(self) -> None:
        """Keep the session's own stream open, from where it broke off, until the server refuses it twice."""
        position, failures = StreamPosition(), 0
        assert self.listens is not None  # noqa: S101 - set above
        while self._requests.has_session and failures < _MOST_FAILURES:
            began = anyio.current_time()
            failures += 1
            try:
                response = await self._requests.stream(self._lines, position)
            except TransportError:
                self.listens.set()
            else:
                self.listens.set()
                try:
                    if 200 <= response.status < 300 and media_type(response) == EVENTS:
                        failures = 0
                        reader = EventReader(self._requests.max_body)
                        async for chunk in pieces(response):
                            for event in reader.feed(chunk):
                                self._hear(event, position)
                finally:
                    response.close()
            await anyio.sleep(max(position.pause, began + _SHORTEST_PAUSE - anyio.current_time()))
        self.listens.set()

    def _hear(self, event: SentEvent | TooLong, position: StreamPosition) -> None:
        if isinstance(event, SentEvent):
            position.note(event)
            if event.kind != b"message" or not event.text:
                return
        text = event.text if isinstance(event, SentEvent) else event
        receive(text or b"", self._receiver, self._key, self._log, "sent an event that is not a message")

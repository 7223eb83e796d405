"""The response to a POST: one JSON body, or a stream of events as soon as something else comes before the answer."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import anyio

from truename.gateway.background import begin
from truename.gateway.http.replay import STANDALONE
from truename.gateway.mcp.messages import encode

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Callable
    from typing import Any

    from starlette.types import Receive, Send

    from truename.gateway.http.replay import Key, SessionEvents, StoredEvent

    Abort = Callable[[], object]
    Headers = list[tuple[bytes, bytes]]

__all__ = ["ABORT", "RETRY_LATER", "EventWriter", "ResponseStream", "send_events", "send_json", "send_nothing"]

ABORT: Final = "truename.abort"
"""Where a web server that can do so puts a function into the scope that closes the connection, whatever is unsent."""

PING_SECONDS: Final = 15.0
_PING: Final = b": ping\r\n\r\n"
# Milliseconds after which a client comes back for a stream that broke off.
RETRY: Final = 500
# After the end of the gateway; many try twice only, and one failure has Gemini CLI hear of no change any more. It is no
# event, so a client that does not know the field reads nothing.
RETRY_LATER: Final = b"retry: 10000\r\n"
_STREAM: Final = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"connection", b"keep-alive"),
    (b"x-accel-buffering", b"no"),
)
_JSON: Final = (b"content-type", b"application/json")


async def send_json(send: Send, body: bytes, headers: Headers, status: int = HTTPStatus.OK) -> None:
    """Send a whole JSON body."""
    head = [_JSON, (b"content-length", b"%d" % len(body)), *headers]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body})


async def send_nothing(send: Send, status: int, headers: Headers) -> None:
    """Send a response without a body."""
    head = [(b"content-length", b"0"), *headers]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": b""})


def _event(text: bytes, id: str) -> bytes:
    named = b"id: %s\r\n" % id.encode("ascii") if id else b""
    return b"%sevent: message\r\ndata: %s\r\n\r\n" % (named, text)


class EventWriter:
    """Writes the events of one response, one after the other, whoever sends them.

    ``place`` is the id of the place at which the stream begins, if the client is told one. ``abort`` closes the
    client's connection at once, where the web server can do so (`ABORT`).
    """

    def __init__(self, send: Send, headers: Headers, *, place: str = "", abort: Abort | None = None) -> None:
        self._send = send
        self._headers = headers
        self._place = place
        self._abort = abort
        # Who comes first writes first.
        self._lock = anyio.Lock(fast_acquire=True)
        self._writing: anyio.CancelScope | None = None
        self._is_open = False
        self.is_over = False

    async def begin(self) -> None:
        """Send the head, and the place at which the stream begins."""
        await self._put(b"")

    async def write(self, text: bytes, id: str = "") -> None:
        """Send an event."""
        await self._put(_event(text, id))

    async def ping(self) -> None:
        """Send a comment, so that no proxy closes the connection."""
        await self._put(_PING)

    async def end(self, last: bytes = b"") -> None:
        """Send the last bytes and end the response."""
        await self._put(last, is_last=True)

    async def leave(self, last: bytes = b"") -> None:
        """Send the last bytes and end the response, without waiting: if the client does not read, it is cut off."""
        is_stuck = self._lock.locked()
        if not (is_stuck or self.is_over):
            with anyio.move_on_after(0) as limit:
                await self._send_chunk(last, is_last=True)
            is_stuck = limit.cancelled_caught
        self.is_over = True
        if is_stuck:
            self._cut_off()

    def release(self) -> None:
        """Cut off a client that keeps a write waiting; one that reads goes on."""
        if self._lock.locked():
            self._cut_off()

    def _cut_off(self) -> None:
        self.is_over = True
        if self._writing is not None:
            self._writing.cancel()
        if self._abort is not None:
            self._abort()

    async def _put(self, chunk: bytes, *, is_last: bool = False) -> None:
        async with self._lock:
            if not self.is_over:
                with anyio.CancelScope() as self._writing:
                    await self._send_chunk(chunk, is_last=is_last)

    async def _send_chunk(self, chunk: bytes, *, is_last: bool) -> None:
        self.is_over = is_last
        if not self._is_open:
            self._is_open = True
            head = [*_STREAM, *self._headers]
            await self._send({"type": "http.response.start", "status": 200, "headers": head})
            chunk = _beginning(self._place) + chunk
        await self._send({"type": "http.response.body", "body": chunk, "more_body": not is_last})


def _beginning(place: str) -> bytes:
    return b"id: %s\r\ndata: \r\nretry: %d\r\n\r\n" % (place.encode("ascii"), RETRY) if place else b""


class ResponseStream:
    """The response to one request.

    In a session (``events``) what is sent on a stream is kept under ``key`` for a client that comes back;
    ``tells_place`` says whether the client understands the id of the place at which the stream begins (since MCP
    2025-11-25). After `detach` another connection goes on with it. ``abort`` closes this one at once.
    """

    def __init__(
        self,
        send: Send,
        headers: Headers,
        *,
        events: SessionEvents | None = None,
        key: Key = STANDALONE,
        tells_place: bool = False,
        on_begin: Callable[[ResponseStream], None] | None = None,
        abort: Abort | None = None,
    ) -> None:
        self._send = send
        self._headers = headers
        self._events = events
        self._key = key
        self._tells_place = tells_place
        self._on_begin = on_begin
        self._abort = abort
        self._writer: EventWriter | None = None
        self._is_answered = False
        self._alive: anyio.CancelScope | None = None
        self._timer: asyncio.TimerHandle | None = None

    def _begun(self) -> EventWriter:
        """Make the response a stream of events, if it is not yet."""
        if self._writer is None:
            place = self._events.begin(self._key) if self._events is not None and self._tells_place else ""
            self._writer = EventWriter(self._send, self._headers, place=place, abort=self._abort)
            if self._on_begin is not None:
                self._on_begin(self)
        return self._writer

    def _stored(self, message: dict[str, Any]) -> tuple[str, bytes]:
        """Keep an event, before anything is waited for: the client may come back on another connection meanwhile."""
        return ("", encode(message)) if self._events is None else self._events.store(self._key, message)

    async def write(self, message: dict[str, Any]) -> None:
        """Send a message that comes before the answer."""
        writer = self._begun()
        id, text = self._stored(message)
        await writer.write(text, id)

    async def answer(self, message: dict[str, Any], status: int = HTTPStatus.OK, *, waits: bool = True) -> None:
        """Send the answer and end the response; unless it ``waits``, a client that does not read is cut off."""
        self.close()
        if self._writer is None:
            await send_json(self._send, encode(message), self._headers, status)
            return
        id, text = self._stored(message)
        await (self._writer.end if waits else self._writer.leave)(_event(text, id))

    async def detach(self) -> None:
        """End this response at once: what comes is only kept, for another connection."""
        if self._writer is not None:
            await self._writer.leave()

    def close(self) -> None:
        """Keep it alive no longer: it is answered, or whoever would be answered has gone."""
        self._is_answered = True
        if self._timer is not None:
            self._timer.cancel()
        if self._alive is not None:
            self._alive.cancel()

    def stream_after(self, seconds: float) -> None:
        """Have it be a stream after this time, if it is not answered by then."""
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(seconds, lambda: begin(self._keep_alive()))

    async def _keep_alive(self) -> None:
        """Make it a stream and keep that alive until it is answered, or another connection goes on with it."""
        if self._is_answered:
            return
        writer = self._begun()
        await writer.begin()
        with anyio.CancelScope() as self._alive:
            while not (self._is_answered or writer.is_over):
                await anyio.sleep(PING_SECONDS)
                await writer.ping()


async def send_events(events: AsyncIterable[StoredEvent], receive: Receive, writer: EventWriter) -> None:
    """Send events until there are no more, or the client goes away."""
    async with anyio.create_task_group() as tasks:

        async def watch() -> None:
            while True:
                with anyio.move_on_after(PING_SECONDS) as waited:
                    while (await receive())["type"] != "http.disconnect":
                        pass
                if not waited.cancelled_caught:
                    tasks.cancel_scope.cancel()
                    return
                await writer.ping()

        await writer.begin()
        tasks.start_soon(watch)
        async for event in events:
            await writer.write(event.text, event.id)
        tasks.cancel_scope.cancel()

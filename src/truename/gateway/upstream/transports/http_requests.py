"""Requests over streamable HTTP: each by its own POST, whose response is read by who sent it.

Source: MCP 2025-03-26 to 2026-07-28, basic/transports, streamable HTTP.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import anyio

from truename.gateway.background import begin
from truename.gateway.http_connections import HttpFailure, fields_of
from truename.gateway.protocol.envelopes import Envelope
from truename.gateway.protocol.event_stream import EventReader, SentEvent
from truename.gateway.protocol.lines import TooLong
from truename.gateway.protocol.specification import SESSION_HEADER
from truename.gateway.upstream.addresses import ServerUrl
from truename.gateway.upstream.messages import read_message
from truename.gateway.upstream.transport import TransportError
from truename.gateway.upstream.web import (
    EMPTY,
    FAILURES,
    NoMessage,
    answer_in,
    failure,
    media_type,
    misleading,
    reason,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from truename.gateway.http_connections import HttpResponse, Sender
    from truename.gateway.upstream.cookies import ServerCookies
    from truename.gateway.upstream.transport import Receiver

__all__ = ["EVENTS", "USER_AGENT", "HttpRequests", "StreamPosition", "pieces"]

EVENTS: Final = b"text/event-stream"
_POSTED: Final = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
_STREAMED: Final = {"accept": "text/event-stream", "cache-control": "no-store"}
USER_AGENT: Final = {"user-agent": "truename"}
_MOST_MOVES: Final = 5
# How often in a row it is tried to go on with an answer whose stream broke off, and how long before that.
_ATTEMPTS: Final = 3
_SHORTEST: Final = 0.05
_PAUSE: Final = 1.0
_LONGEST: Final = 30.0
_MOMENT: Final = 0.5
# Of a body that does not count so much is read, so that its connection can be used again.
_SPARE: Final = 8 * 1024
# How the handshake is refused by who knows only the old transport.
_OUTDATED: Final = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED})


class StreamPosition:
    """How far a stream of events was read, and how long its server wants to be left alone before it goes on."""

    def __init__(self) -> None:
        self.id: bytes | None = None
        self.pause = _PAUSE

    def note(self, event: SentEvent) -> None:
        """Note what an event says of going on after it."""
        self.id = event.id or self.id
        if event.retry is not None:
            self.pause = min(max(event.retry / 1000, _SHORTEST), _LONGEST)


class HttpRequests:
    """Requests to one address. ``session`` is the id of the session, once there is one."""

    def __init__(self, sender: Sender, url: str, headers: Mapping[str, str], max_body: int) -> None:
        self._sender = sender
        self._url = ServerUrl.of(url)
        self.max_body = max_body
        self._cookies: ServerCookies | None = None
        own = {**USER_AGENT, **{name.lower(): value for name, value in headers.items()}}
        if basic := self._url.basic():
            own["authorization"] = basic.decode()
        self._posted = self._fields({**own, **_POSTED})
        self._streamed = self._fields({**own, **_STREAMED})
        # Whether the server keeps a session for us.
        self.has_session = False
        self.is_outdated = False

    def _fields(self, headers: Mapping[str, str]) -> bytes:
        encoded = ((name.encode("latin-1"), value.encode("utf-8")) for name, value in headers.items())
        return fields_of([(b"host", self._url.host), *encoded])

    async def greet(self, number: int, message: bytes, receiver: Receiver) -> Envelope:
        """Send ``initialize``, and keep the id of the session that it begins. Raises as `ask` does."""
        response = await self._send(b"POST", self._posted, b"", message)
        status = response.status
        session = response.header(SESSION_HEADER.encode())
        try:
            found = await self._read(response, number, b"", receiver)
        except (NoMessage, TransportError):
            self.is_outdated = status in _OUTDATED
            raise
        if session and 200 <= status < 300:
            line = fields_of([(SESSION_HEADER.encode(), session)])
            self._posted, self._streamed, self.has_session = self._posted + line, self._streamed + line, True
        return found

    async def ask(self, number: int, message: bytes, lines: bytes, receiver: Receiver, *, may_resume: bool) -> Envelope:
        """Send a request and return its response. Raises `TransportError`, and `MCPError` for what a status means.

        How long that may take is the caller's word alone: the server may wait for a person meanwhile.
        """
        response = await self._send(b"POST", self._posted, lines, message)
        return await self._read(response, number, lines if may_resume else None, receiver)

    async def tell(self, message: bytes, lines: bytes) -> None:
        """Send a message that is not answered. Whether it arrived is not known."""
        try:
            response = await self._send(b"POST", self._posted, lines, message)
        except TransportError:
            return
        await _spared(response)

    async def end(self, lines: bytes) -> None:
        """Tell the server that its session has ended."""
        if not self.has_session:
            return
        try:
            response = await self._send(b"DELETE", self._posted, lines, b"")
        except TransportError:
            return
        await _spared(response)

    async def stream(self, lines: bytes, position: StreamPosition) -> HttpResponse:
        """Open a stream of events, behind a position if there is one. Raises `TransportError`."""
        if position.id is not None:
            lines += fields_of([(b"last-event-id", position.id)])
        return await self._send(b"GET", self._streamed, lines, b"")

    def _keep_cookies(self, response: HttpResponse) -> None:
        from truename.gateway.upstream.cookies import ServerCookies  # noqa: PLC0415 - costs 10 ms, and few servers set any

        self._cookies = self._cookies or ServerCookies(self._url.text())
        self._cookies.keep(value for name, value in response.headers if name.lower() == b"set-cookie")

    async def _send(self, verb: bytes, fields: bytes, lines: bytes, body: bytes) -> HttpResponse:
        """Send a request, to another place of its origin if the server says so. Raises `TransportError`."""
        url = self._url
        for _ in range(_MOST_MOVES + 1):
            cookie = b"" if self._cookies is None else self._cookies.header()
            whole = fields + lines + (b"cookie: %b\r\n" % cookie if cookie else b"")
            try:
                response = await self._sender.send(verb, url.origin, url.target, whole, body)
            except FAILURES as error:
                raise failure(error) from error
            if response.header(b"set-cookie"):
                self._keep_cookies(response)
            found = misleading(response, url, verb.decode())
            if found is None:
                return response
            response.close()
            if isinstance(found, TransportError):
                raise found
            url = found
        raise TransportError("redirected", f"more than {_MOST_MOVES} redirects")

    async def _read(self, response: HttpResponse, number: int, lines: bytes | None, receiver: Receiver) -> Envelope:
        """Return the response to a request. ``lines`` are those to go on with, None if that is not possible."""
        is_left = False
        try:
            if response.status in EMPTY:
                raise TransportError("protocol", f"HTTP {response.status} instead of a response")
            kind = media_type(response)
            if kind != EVENTS or not 200 <= response.status < 300:
                body = response.whole()
                if body is None:
                    body = await self._body(response)
                elif len(body) > self.max_body:
                    raise TransportError("too_large", f"more than {self.max_body:,} bytes")
                return answer_in(body, response.status, response.reason, kind, number, has_session=self.has_session)
            position = StreamPosition()
            found = await self._from_events(response, number, position, receiver)
            if found is not None:
                is_left = True
                begin(_ended(response))
                return found
        finally:
            if not is_left:
                response.close()
        return await self._resumed(number, lines, position, receiver)

    async def _body(self, response: HttpResponse) -> bytes:
        parts, size = list[bytes](), 0
        try:
            while (chunk := await response.chunk()) is not None:
                parts.append(chunk)
                size += len(chunk)
                if size > self.max_body:
                    raise TransportError("too_large", f"more than {self.max_body:,} bytes")
        except HttpFailure as error:
            raise TransportError("lost", reason(error)) from error
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def _from_events(
        self, response: HttpResponse, number: int, position: StreamPosition, receiver: Receiver
    ) -> Envelope | None:
        """Return the response that comes on a stream, None if the stream ends before that."""
        reader = EventReader(self.max_body)
        async for chunk in pieces(response):
            for event in reader.feed(chunk):
                if isinstance(event, TooLong):
                    raise TransportError("too_large", f"{event.size:,} bytes")
                position.note(event)
                if event.kind != b"message" or not event.text:
                    continue
                found = read_message(event.text)
                if found is None:
                    raise TransportError("protocol", "an event that is not a message")
                if not isinstance(found, Envelope):
                    is_own = found.number == number
                    raise TransportError(
                        "protocol", "a malformed response" if is_own else "the response to another request"
                    )
                if not found.is_response:
                    await receiver.take(found, number)
                elif found.id == number or (found.id is None and not found.is_result):
                    return found
                else:
                    raise TransportError("protocol", "the response to another request")
        return None

    async def _resumed(
        self, number: int, lines: bytes | None, position: StreamPosition, receiver: Receiver
    ) -> Envelope:
        """Go on with an answer whose stream broke off, from the last event that came of it; nothing is sent again."""
        failed = 0
        while position.id is not None and lines is not None and failed < _ATTEMPTS:
            await anyio.sleep(position.pause)
            failed += 1
            try:
                response = await self.stream(lines, position)
            except TransportError:
                continue
            try:
                if 200 <= response.status < 300 and media_type(response) == EVENTS:
                    failed = 0
                    if (found := await self._from_events(response, number, position, receiver)) is not None:
                        return found
            finally:
                response.close()
        raise TransportError("lost", "its stream ended without a response")


async def pieces(response: HttpResponse) -> AsyncIterator[bytes]:
    """Give the pieces of a stream, which just ends when the connection breaks."""
    try:
        while (chunk := await response.chunk()) is not None:
            yield chunk
    except HttpFailure:
        return


async def _ended(response: HttpResponse) -> None:
    """Give a stream a moment to end after its answer, so that its connection can be used again."""
    try:
        with anyio.move_on_after(_MOMENT):
            async for _ in pieces(response):
                pass
    finally:
        response.close()


async def _spared(response: HttpResponse) -> None:
    """Read what stands in a response that does not count, if it is not much."""
    size = 0
    try:
        with anyio.move_on_after(_MOMENT):
            async for chunk in pieces(response):
                if (size := size + len(chunk)) > _SPARE:
                    return
    finally:
        response.close()

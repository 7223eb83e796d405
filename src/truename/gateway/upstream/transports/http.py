"""An upstream server over streamable HTTP: each message by its own POST, whose answer is read by who sent it.

Source: MCP 2025-11-25 and 2026-07-28, basic/transports, streamable HTTP.
"""

from __future__ import annotations

import os
from base64 import b64encode
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import anyio
import httpx2
from mcp_types import INTERNAL_ERROR, METHOD_NOT_FOUND

from truename.gateway.background import background
from truename.gateway.mcp.messages import error, is_error
from truename.gateway.protocol.event_stream import EventReader
from truename.gateway.protocol.lines import TooLong
from truename.gateway.protocol.marking import transport_fault
from truename.gateway.protocol.routing_headers import VERSION_HEADER
from truename.gateway.protocol.sdk import is_modern
from truename.gateway.questions.origins import RequestOrigins
from truename.gateway.upstream.connections import HttpOrigin, fields_of, head_of
from truename.gateway.upstream.messages import read_message
from truename.gateway.upstream.transport import Transport
from truename.gateway.upstream.transports.contained import Contained
from truename.gateway.upstream.web import (
    ASKED,
    CONNECT,
    EMPTY,
    FAILURES,
    MESSAGE,
    SESSION_HEADER,
    STATUS,
    WholeBody,
    failure,
    headers_for,
    judged,
    misleading,
    moved,
    reason,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from anyio.abc import TaskGroup

    from truename.config import ServerConfig
    from truename.gateway.mcp.requests import RequestId
    from truename.gateway.protocol.event_stream import SentEvent
    from truename.gateway.upstream.connections import Connections, RawResponse
    from truename.gateway.upstream.outside import Outside
    from truename.gateway.upstream.transport import Hearer, Message, Take

__all__ = ["HttpRequests", "open_http"]

_POSTED: Final = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
_STREAMED: Final = {"accept": "text/event-stream", "cache-control": "no-store"}
_SESSION: Final = SESSION_HEADER.encode()
# How often in a row it is tried to go on with an answer whose stream broke off, and how long before that.
_ATTEMPTS: Final = 3
# How often in a row a server may refuse the standing stream.
_MOST_REFUSED: Final = 2
# Cookies of a server, and characters of one with its attributes.
_MOST_COOKIES: Final = 50
_LONGEST_COOKIE: Final = 4_096
_SHORTEST: Final = 0.05
_PAUSE: Final = 1.0
_LONGEST: Final = 30.0
_MOMENT: Final = 0.01
_LAST_WORD: Final = 2.0
# How the handshake is refused by who knows only the old transport.
_OUTDATED: Final = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED})
_NOTHING: Final = METHOD_NOT_FOUND, "Not Found"
_UNSERVED: Final = INTERNAL_ERROR, "Server returned an error response"


@dataclass
class _Mark:
    """How far a stream was read, and how long its server wants to be left alone before it goes on."""

    id: bytes | None = None
    pause: float = _PAUSE

    def note(self, event: SentEvent) -> None:
        self.id = event.id or self.id
        if event.retry is not None:
            self.pause = min(max(event.retry / 1000, _SHORTEST), _LONGEST)


class _Moved(Exception):
    """A request was not run where it was sent, but has to be sent to another address of the same origin."""

    def __init__(self, url: httpx2.URL) -> None:
        super().__init__(str(url))
        self.url = url


@asynccontextmanager
async def open_http(
    server: ServerConfig, max_body: int, call_timeout: float, outside: Outside
) -> AsyncIterator[Transport]:
    """Open a channel to the server's address; nothing is sent yet."""
    secret, origins = os.urandom(8).hex(), RequestOrigins()
    contained = Contained(outside.transport(server), secret, max_body, origins)
    # Longer than a call may take: the deadline of a call is its caller's.
    timeout = httpx2.Timeout(CONNECT, read=call_timeout + 60)
    async with (
        httpx2.AsyncClient(transport=contained, timeout=timeout, headers=headers_for(server.headers)) as client,
        background() as tasks,
    ):
        requests = HttpRequests(server.url or "", client, contained, secret=secret, max_event=max_body, tasks=tasks)
        try:
            yield Transport(
                requests=requests, secret=secret, origins=origins, outdated=requests.outdated, listens=requests.listens
            )
        finally:
            await requests.end_session()


class HttpRequests:
    """A `RequestTransport` over the connections of a client, and the session that a server gave it.

    ``outdated`` is set where the server refuses the handshake as one would that knows only the old transport,
    ``listens`` once the standing stream of the session is open or refused.
    """

    def __init__(
        self,
        url: str,
        client: httpx2.AsyncClient,
        contained: Contained,
        *,
        secret: str,
        max_event: int,
        tasks: TaskGroup,
    ) -> None:
        self.outdated, self.listens = anyio.Event(), anyio.Event()
        self._secret = secret
        self._url = httpx2.URL(url)
        self._client = client
        self._contained = contained
        self._max_event = max_event
        self._tasks = tasks
        self._session: str | None = None
        self._standing_headers: dict[str, str] | None = None
        self._hearer: Hearer | None = None
        self._extensions = {"timeout": client.timeout.as_dict()}
        own = {**client.headers, **_credentials(self._url)}
        self._posted = httpx2.Headers({**own, **_POSTED}).raw
        self._host = (b"host", self._url.netloc)
        self._connect = client.timeout.connect
        self._streamed = httpx2.Headers({**own, **_STREAMED}).raw

    def begin(self, hearer: Hearer) -> None:
        """Learn to whom the messages of the standing stream are given."""
        self._hearer = hearer

    async def request(self, number: RequestId, message: bytes, headers: Mapping[str, str], take: Take) -> Message:
        """Send a request and return its answer."""
        url = self._url
        if self._contained.connections is not None and not len(self._client.cookies.jar):
            try:
                return await self._straight(self._contained.connections, number, message, headers, take)
            except _Moved as moved_to:
                url = moved_to.url
        response = await self._sent("POST", number, self._posted, headers, message, url=url)
        try:
            if VERSION_HEADER not in headers:
                status = response.extensions.get(STATUS, response.status_code)
                self._take_handshake(status, response.headers.get(SESSION_HEADER), is_message=_is_message(response))
            if not _is_stream(response):
                return self._answer(response.extensions.get(MESSAGE) or {}, response.status_code)
            mark = _Mark()
            if (answer := await self._from_stream(response.aiter_raw(), number, mark, take)) is not None:
                return answer
        finally:
            await response.aclose()
        return await self._resumed(number, headers, mark, take)

    async def _straight(
        self, connections: Connections, number: RequestId, message: bytes, headers: Mapping[str, str], take: Take
    ) -> Message:
        """Send a request to a server that needs nothing more than it. Raises `_Moved`.

        How long the answer may take is the caller's word alone: it may wait for a person meanwhile.
        """
        try:
            head = self._head + fields_of(self._said(headers)) + b"content-length: %d\r\n\r\n" % len(message)
            response = await connections.exchange(self._origin, head, message, connect=self._connect, read=None)
        except FAILURES as error:
            return self._fault(*failure(error))
        try:
            return await self._read_from(response, number, take, headers)
        finally:
            response.close()

    @cached_property
    def _origin(self) -> HttpOrigin:
        return HttpOrigin.of(self._url)

    @cached_property
    def _head(self) -> bytes:
        """What the heads of all requests begin with. Raises `httpx2.LocalProtocolError`."""
        return head_of("POST", self._url.raw_path, (self._host, *self._posted)).removesuffix(b"\r\n")

    def _said(self, headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
        said = [(name.encode(), value.encode()) for name, value in headers.items()]
        if self._session is not None:
            said.append((_SESSION, self._session.encode()))
        return said

    async def _read_from(
        self, response: RawResponse, number: RequestId, take: Take, headers: Mapping[str, str]
    ) -> Message:
        status = response.status
        if (wrong := self._wrong(response)) is not None:
            return self._fault(*wrong)
        is_handshake = VERSION_HEADER not in headers
        given = response.header(_SESSION).decode("latin-1") if is_handshake else ""
        kind = response.header(b"content-type").partition(b";")[0].strip().lower().decode("latin-1")
        if kind == "text/event-stream" and 200 <= status < 300:
            if is_handshake:
                self._take_handshake(status, given, is_message=True)
            mark = _Mark()
            answer = await self._from_stream(_watched(response, self._contained.watch(number)), number, mark, take)
            response.close()
            return await self._resumed(number, headers, mark, take) if answer is None else answer
        try:
            body = await self._body_of(response)
        except httpx2.TransportError as error:
            return self._fault("lost", reason(error))
        if body is None:
            return self._fault("too_large", f"more than {self._max_event:,} bytes")
        phrase = response.reason.decode("latin-1")
        found = judged(body, status, phrase, kind, number, has_session=self._session is not None)
        if is_handshake:
            is_message = isinstance(found, WholeBody) and "jsonrpc" in found.message
            self._take_handshake(status, given, is_message=is_message)
        return self._answer(found.message, status) if isinstance(found, WholeBody) else self._fault(*found)

    def _take_handshake(self, status: int, session: str | None, is_message: bool) -> None:
        """Take what the response to the handshake says beside its answer."""
        if session and 200 <= status < 300:
            self._session = session
        if status in _OUTDATED and not is_message:
            self.outdated.set()

    def _wrong(self, response: RawResponse) -> tuple[str, str] | None:
        """Say what is wrong with a response whose head shows that it answers nothing; keep the cookies that it sets."""
        is_led = 300 <= response.status < 400
        if is_led or response.header(b"set-cookie") or response.header(b"content-encoding"):
            asked = httpx2.Request("POST", self._url)
            whole = httpx2.Response(response.status, headers=response.headers, request=asked)
            self._keep_cookies(whole)
            if (there := moved(asked, whole)) is not None:
                raise _Moved(there)
            if (wrong := misleading(whole)) is not None:
                return wrong
        return ("protocol", f"HTTP {response.status} instead of a response") if response.status in EMPTY else None

    async def _body_of(self, response: RawResponse) -> bytes | None:
        """Return the whole body; None for one that is too large. Raises `httpx2.TransportError`."""
        parts, size = list[bytes](), 0
        while (chunk := await response.chunk()) is not None:
            parts.append(chunk)
            size += len(chunk)
            if size > self._max_event:
                return None
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def _sent(
        self,
        verb: str,
        number: RequestId | None,
        own: list[tuple[bytes, bytes]],
        headers: Mapping[str, str],
        content: bytes | None = None,
        *,
        url: httpx2.URL | None = None,
    ) -> httpx2.Response:
        request = httpx2.Request(
            verb,
            url or self._url,
            headers=[*own, *self._said(headers)],
            content=content,
            extensions={**self._extensions, ASKED: number},
        )
        cookies = self._client.cookies
        if len(cookies.jar):
            cookies.set_cookie_header(request)
        response = await self._contained.handle_async_request(request)
        if "set-cookie" in response.headers:
            response.request = request
            self._keep_cookies(response)
        return response

    def _keep_cookies(self, response: httpx2.Response) -> None:
        """Keep the cookies of a response that can be sent back, in the bounds that RFC 6265 (section 6.1) names."""
        headers = [("set-cookie", value) for value in response.headers.get_list("set-cookie") if _is_cookie(value)]
        jar = self._client.cookies.jar
        self._client.cookies.extract_cookies(httpx2.Response(200, headers=headers, request=response.request))
        for cookie in list(jar)[_MOST_COOKIES:]:
            jar.clear(cookie.domain, cookie.path, cookie.name)

    def _answer(self, message: Message, status: int) -> Message:
        if isinstance(message.get("error"), dict):
            return message if is_error(message["error"]) else self._fault("protocol", "a malformed error")
        if 200 <= status < 300:
            return message
        code, text = _NOTHING if status == HTTPStatus.NOT_FOUND else _UNSERVED
        return error(None, code, text)

    async def _from_stream(
        self, chunks: AsyncIterator[bytes], number: RequestId, mark: _Mark, take: Take
    ) -> Message | None:
        """Return the answer that comes on a stream, None if it ends before that."""
        reader = EventReader(self._max_event)
        async for chunk in chunks:
            for event in reader.feed(chunk):
                if isinstance(event, TooLong):
                    return self._fault("too_large", f"{event.size:,} bytes")
                mark.note(event)
                if event.kind != b"message" or not event.text:
                    continue
                if (answer := await self._taken(event.text, number, take)) is not None:
                    await _read_out(chunks)
                    return answer
        return None

    async def _taken(self, text: bytes, number: RequestId, take: Take) -> Message | None:
        """Return the answer that an event is; give any other message to who takes it."""
        message = read_message(text, self._secret)
        if message is None:
            return self._fault("protocol", "an event that is not a message")
        if "method" in message:
            await take(message)
            return None
        is_own = message["id"] == number or ("error" in message and message["id"] is None)
        return message if is_own else self._fault("protocol", "the response to another request")

    async def _resumed(self, number: RequestId, headers: Mapping[str, str], mark: _Mark, take: Take) -> Message:
        """Go on with an answer whose stream broke off, from the last event that came of it; nothing is sent again."""
        failed = 0
        while mark.id is not None and not is_modern(headers.get(VERSION_HEADER)) and failed < _ATTEMPTS:
            await anyio.sleep(mark.pause)
            there = {**headers, "last-event-id": mark.id.decode("utf-8", "replace")}
            response = await self._sent("GET", number, self._streamed, there)
            failed += 1
            try:
                if _is_stream(response):
                    failed = 0
                    if (answer := await self._from_stream(response.aiter_raw(), number, mark, take)) is not None:
                        return answer
            finally:
                await response.aclose()
        return self._fault("lost", "its stream ended without a response")

    def _fault(self, kind: str, detail: str) -> Message:
        return error(None, -32000, detail, transport_fault(self._secret, kind, detail))

    async def post(self, message: bytes, headers: Mapping[str, str]) -> None:
        """Send a notification or an answer; a server that does not take it is no reason to stop.

        After the end of the handshake the standing stream is opened, on which the server tells what it is not asked.
        """
        response = await self._sent("POST", None, self._posted, headers, message)
        await response.aclose()
        if self._session is not None and self._standing_headers is None and not is_modern(headers.get(VERSION_HEADER)):
            self._standing_headers = dict(headers)
            self._tasks.start_soon(self._listen, self._standing_headers)

    async def _listen(self, headers: Mapping[str, str]) -> None:
        """Read the standing stream of the session, which a server may close, and which is opened again then."""
        mark, failed = _Mark(), 0
        while failed < _MOST_REFUSED:
            place = {} if mark.id is None else {"last-event-id": mark.id.decode("utf-8", "replace")}
            response = await self._sent("GET", None, self._streamed, {**headers, **place})
            self.listens.set()
            try:
                failed = 0 if _is_stream(response) else failed + 1
                if not failed:
                    await self._read_standing(response.aiter_raw(), mark)
            finally:
                await response.aclose()
            # A server may end it at once, and ask for no delay.
            await anyio.sleep(max(mark.pause, _PAUSE))

    async def _read_standing(self, chunks: AsyncIterator[bytes], mark: _Mark) -> None:
        assert self._hearer is not None  # noqa: S101 - the session began before it sent anything
        reader = EventReader(self._max_event)
        async for chunk in chunks:
            for event in reader.feed(chunk):
                if isinstance(event, TooLong):
                    continue
                mark.note(event)
                message = read_message(event.text, self._secret) if event.kind == b"message" and event.text else None
                if message is not None:
                    await self._hearer.hear(message)

    async def end_session(self) -> None:
        """Tell the server that the session is over (DELETE), for a moment."""
        if self._session is None:
            return
        with anyio.move_on_after(_LAST_WORD, shield=True):
            response = await self._sent("DELETE", None, self._posted, self._standing_headers or {})
            await response.aclose()


async def _watched(response: RawResponse, watch: Callable[[bytes], None]) -> AsyncIterator[bytes]:
    """Give the pieces of a stream, which just ends when the connection breaks."""
    with suppress(httpx2.TransportError):
        while (chunk := await response.chunk()) is not None:
            watch(chunk)
            yield chunk


async def _read_out(chunks: AsyncIterator[bytes]) -> None:
    """Give a stream a moment to end after its answer, so that its connection can be used again."""
    with anyio.move_on_after(_MOMENT):
        async for _ in chunks:
            pass


def _is_stream(response: httpx2.Response) -> bool:
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    return bool(response.is_success and kind == "text/event-stream")


def _is_message(response: httpx2.Response) -> bool:
    """Return whether a response is the server's own, and holds a message."""
    return STATUS not in response.extensions and "jsonrpc" in (response.extensions.get(MESSAGE) or {"jsonrpc": ""})


def _is_cookie(value: str) -> bool:
    return value.isascii() and len(value) <= _LONGEST_COOKIE


def _credentials(url: httpx2.URL) -> dict[str, str]:
    """Return the header for credentials that stand in the address itself."""
    if not url.userinfo:
        return {}
    said = f"{url.username}:{url.password}".encode()
    return {"authorization": f"Basic {b64encode(said).decode()}"}

"""Requests that are forwarded over streamable HTTP: each by its own POST, whose answer is read by who sent it.

What a session says for itself (the handshake, notifications, its standing stream) the SDK's client sends.
"""

from __future__ import annotations

from base64 import b64encode
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import anyio
import httpx2
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp_types import INTERNAL_ERROR, METHOD_NOT_FOUND, ErrorData, JSONRPCError, JSONRPCResponse
from pydantic import ValidationError

from truename.gateway.protocol.event_stream import EventReader
from truename.gateway.protocol.lines import TooLong
from truename.gateway.protocol.sdk import is_modern, transport_fault
from truename.gateway.upstream.connections import HttpOrigin, head_of
from truename.gateway.upstream.messages import said
from truename.gateway.upstream.web import (
    ASKED,
    EMPTY,
    FAILURES,
    MESSAGE,
    SESSION_HEADER,
    WholeBody,
    failure,
    judged,
    misleading,
    moved,
    reason,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from mcp_types import RequestId

    from truename.gateway.protocol.event_stream import SentEvent
    from truename.gateway.protocol.wire import Outcome, Take
    from truename.gateway.upstream.connections import Connections, RawResponse
    from truename.gateway.upstream.http_link import Contained
    from truename.gateway.upstream.link import Link

__all__ = ["Posts"]

_POSTED: Final = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
_STREAMED: Final = {"accept": "text/event-stream", "cache-control": "no-store"}
# How often in a row it is tried to go on with an answer whose stream broke off, and how long before that.
_ATTEMPTS: Final = 3
# Cookies of a server, and characters of one with its attributes.
_MOST_COOKIES: Final = 50
_LONGEST_COOKIE: Final = 4_096
_SHORTEST: Final = 0.05
_PAUSE: Final = 1.0
_LONGEST: Final = 30.0
_MOMENT: Final = 0.01
_NOTHING: Final = ErrorData(code=METHOD_NOT_FOUND, message="Not Found")
_UNSERVED: Final = ErrorData(code=INTERNAL_ERROR, message="Server returned an error response")


@dataclass
class _Mark:
    """How far the stream of an answer was read, and how long its server wants to be left alone before it goes on."""

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


class Posts:
    """A `Carrier` over the connections of a client, contained as all that it sends is."""

    def __init__(self, link: Link, url: str, client: httpx2.AsyncClient, contained: Contained, max_event: int) -> None:
        self._link = link
        self._url = httpx2.URL(url)
        self._client = client
        self._contained = contained
        self._max_event = max_event
        self._extensions = {"timeout": client.timeout.as_dict()}
        own = {**client.headers, **_credentials(self._url)}
        self._posted = httpx2.Headers({**own, **_POSTED}).raw
        self._host = (b"host", self._url.netloc)
        self._connect = client.timeout.connect
        self._streamed = httpx2.Headers({**own, **_STREAMED}).raw

    def begin(self, hear: Take) -> None:
        """Learn nothing: what comes for a request comes on its own stream."""

    async def carry(self, number: RequestId, message: bytes, headers: Mapping[str, str], take: Take) -> Outcome:
        """Send a request and return its answer. See `Carrier`."""
        url = self._url
        if self._contained.connections is not None and not len(self._client.cookies.jar):
            try:
                return await self._straight(self._contained.connections, number, message, headers, take)
            except _Moved as moved_to:
                url = moved_to.url
        response = await self._sent("POST", number, self._posted, headers, message, url=url)
        try:
            if not _is_stream(response):
                return self._whole(response)
            mark = _Mark()
            if (outcome := await self._from_stream(response, number, mark, take)) is not None:
                return outcome
        finally:
            await response.aclose()
        return await self._resumed(number, headers, mark, take)

    async def _straight(
        self, connections: Connections, number: RequestId, message: bytes, headers: Mapping[str, str], take: Take
    ) -> Outcome:
        """Send a request to a server that needs nothing more than it. Raises `_Moved`.

        How long the answer may take is the caller's word alone: it may wait for a person meanwhile.
        """
        said = [(name.encode(), value.encode()) for name, value in headers.items()]
        if (session := self._contained.session) is not None:
            said.append((SESSION_HEADER.encode(), session.encode()))
        framing = (b"content-length", b"%d" % len(message))
        try:
            head = head_of("POST", self._url.raw_path, (self._host, *self._posted, *said, framing))
            origin = HttpOrigin.of(self._url)
            response = await connections.exchange(origin, head, message, connect=self._connect, read=None)
        except FAILURES as error:
            return self._fault(*failure(error))
        try:
            return await self._read_from(response, number, take, headers, has_session=session is not None)
        finally:
            response.close()

    async def _read_from(
        self, response: RawResponse, number: RequestId, take: Take, headers: Mapping[str, str], *, has_session: bool
    ) -> Outcome:
        status = response.status
        if (wrong := self._wrong(response)) is not None:
            return self._fault(*wrong)
        kind = response.header(b"content-type").partition(b";")[0].strip().lower().decode("latin-1")
        if kind == "text/event-stream" and 200 <= status < 300:
            mark = _Mark()
            outcome = await self._from_chunks(_watched(response, self._contained.watch(number)), number, mark, take)
            response.close()
            return await self._resumed(number, headers, mark, take) if outcome is None else outcome
        try:
            body = await self._body_of(response)
        except httpx2.TransportError as error:
            return self._fault("lost", reason(error))
        if body is None:
            return self._fault("too_large", f"more than {self._max_event:,} bytes")
        phrase = response.reason.decode("latin-1")
        found = judged(body, status, phrase, kind, number, has_session=has_session)
        return self._answer(found.message, status) if isinstance(found, WholeBody) else self._fault(*found)

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
        number: RequestId,
        own: list[tuple[bytes, bytes]],
        headers: Mapping[str, str],
        content: bytes | None = None,
        *,
        url: httpx2.URL | None = None,
    ) -> httpx2.Response:
        said = [(name.encode(), value.encode()) for name, value in headers.items()]
        if (session := self._contained.session) is not None:
            said.append((SESSION_HEADER.encode(), session.encode()))
        request = httpx2.Request(
            verb,
            url or self._url,
            headers=[*own, *said],
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
        """Keep the cookies of a response which can be sent back, in the bounds that RFC 6265 (section 6.1) names."""
        values = response.headers.get_list("set-cookie")
        if not all(value.isascii() and len(value) <= _LONGEST_COOKIE for value in values):
            return
        jar = self._client.cookies.jar
        self._client.cookies.extract_cookies(response)
        for cookie in list(jar)[_MOST_COOKIES:]:
            jar.clear(cookie.domain, cookie.path, cookie.name)

    def _whole(self, response: httpx2.Response) -> Outcome:
        """Return the answer that a whole body is."""
        return self._answer(response.extensions.get(MESSAGE) or {}, response.status_code)

    def _answer(self, message: dict[str, Any], status: int) -> Outcome:
        if isinstance(message.get("error"), dict):
            try:
                return ErrorData.model_validate(message["error"])
            except ValidationError:
                return self._fault("protocol", "a malformed error")
        if 200 <= status < 300:
            result: dict[str, Any] = message["result"]
            return result
        return _NOTHING if status == HTTPStatus.NOT_FOUND else _UNSERVED

    async def _from_stream(
        self, response: httpx2.Response, number: RequestId, mark: _Mark, take: Take
    ) -> Outcome | None:
        """Return the answer that comes on a stream, None if it ends before that."""
        return await self._from_chunks(response.aiter_raw(), number, mark, take)

    async def _from_chunks(
        self, chunks: AsyncIterator[bytes], number: RequestId, mark: _Mark, take: Take
    ) -> Outcome | None:
        reader = EventReader(self._max_event)
        async for chunk in chunks:
            for event in reader.feed(chunk):
                if isinstance(event, TooLong):
                    return self._fault("too_large", f"{event.size:,} bytes")
                mark.note(event)
                if event.kind != b"message" or not event.text:
                    continue
                if (outcome := await self._outcome(event.text, number, take)) is not None:
                    await _read_out(chunks)
                    return outcome
        return None

    async def _outcome(self, text: bytes, number: RequestId, take: Take) -> Outcome | None:
        item = said(text, self._link)
        if item is None:
            return self._fault("protocol", "an event that is not a message")
        match item.message:
            case JSONRPCResponse(id=id, result=result):
                return result if id == number else self._fault("protocol", "the response to another request")
            case JSONRPCError(id=id, error=error):
                return error if id in {number, None} else self._fault("protocol", "the response to another request")
            case _:
                await take(item)
                return None

    async def _resumed(self, number: RequestId, headers: Mapping[str, str], mark: _Mark, take: Take) -> Outcome:
        """Go on with an answer whose stream broke off, from the last event that came of it; nothing is sent again."""
        failed = 0
        while mark.id is not None and not is_modern(headers.get(MCP_PROTOCOL_VERSION_HEADER)) and failed < _ATTEMPTS:
            await anyio.sleep(mark.pause)
            there = {**headers, "last-event-id": mark.id.decode("utf-8", "replace")}
            response = await self._sent("GET", number, self._streamed, there)
            failed += 1
            try:
                if _is_stream(response):
                    failed = 0
                    if (outcome := await self._from_stream(response, number, mark, take)) is not None:
                        return outcome
            finally:
                await response.aclose()
        return self._fault("lost", "its stream ended without a response")

    def _fault(self, kind: str, detail: str) -> ErrorData:
        return ErrorData(code=-32000, message=detail, data=transport_fault(self._link.secret, kind, detail))


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


def _credentials(url: httpx2.URL) -> dict[str, str]:
    """Return the header for credentials that stand in the address itself."""
    if not url.userinfo:
        return {}
    said = f"{url.username}:{url.password}".encode()
    return {"authorization": f"Basic {b64encode(said).decode()}"}

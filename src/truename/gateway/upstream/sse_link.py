"""An upstream server over HTTP with SSE, the transport of MCP 2024-11-05: one stream of answers, messages sent beside.

All answers come on one stream, so nothing but its end takes more than one exchange with it: an event that is too long
or is no message is dropped, and a message that could not be sent is answered with an error.
"""

from __future__ import annotations

import math
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import anyio
import httpx2
from mcp.shared._httpx_utils import stream_within_origin
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCNotification, JSONRPCRequest

from truename.gateway.background import background
from truename.gateway.faults import UpstreamError, printable
from truename.gateway.protocol.event_stream import EventReader, SentEvent
from truename.gateway.protocol.lines import TooLong
from truename.gateway.upstream.explained import explained
from truename.gateway.upstream.link import Link
from truename.gateway.upstream.messages import fault, report_noise, said, too_long
from truename.gateway.upstream.web import (
    CONNECT,
    FAILURES,
    failure,
    headers_for,
    misleading,
    unframed,
)

if TYPE_CHECKING:
    from anyio.abc import TaskGroup
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp_types import JSONRPCMessage

    from truename.config import ServerConfig, Settings
    from truename.gateway.rate_limited_log import RateLimitedLog
    from truename.gateway.upstream.outside import Outside

__all__ = ["open_sse"]

_LONGEST_ADDRESS: Final = 8 * 1024
# What stands in the answer to a message does not matter; read to its end, the connection can be used again.
_SPARE: Final = 8 * 1024
_SPARE_SECONDS: Final = 5.0
# Messages of ours that a server has not taken yet.
_MOST_UNTAKEN: Final = 1_000
_GONE: Final = (anyio.ClosedResourceError, anyio.BrokenResourceError)
_STREAM: Final = {"accept": "text/event-stream", "cache-control": "no-store"}
_POSTED: Final = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
_NO_STREAM: Final = "Check that its address is the one of its SSE stream, and the credentials under headers."
_UNUSABLE: Final = "Report it to the server's authors."

_Events = AsyncIterator[SentEvent | TooLong]


@asynccontextmanager
async def open_sse(
    server: ServerConfig, settings: Settings, news: RateLimitedLog, outside: Outside, *, within: float = math.inf
) -> AsyncIterator[Link]:
    """Open the server's stream and wait until it says where messages are sent to.

    Raises `UpstreamError`: no stream of events at the address, or none that says that within ``startup_timeout``, or
    within these seconds.
    """
    longest = max((server.timeout or settings.call_timeout, *server.tool_timeouts.values()))
    longest += settings.answer_timeout + 60
    inner = outside.transport(server)
    to_session, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_server, from_session = anyio.create_memory_object_stream[SessionMessage](0)
    link = Link(streams=(from_server, to_server), secret=os.urandom(8).hex(), is_old=True)
    async with (
        httpx2.AsyncClient(
            transport=_Bodiless(inner),
            timeout=httpx2.Timeout(CONNECT, read=longest),
            headers=headers_for(server.headers),
        ) as client,
        AsyncExitStack() as stack,
        background() as tasks,
        to_session,
        from_server,
        to_server,
        from_session,
    ):
        address, events = await _opened(server, settings, min(within, settings.startup_timeout), client, stack)
        wire = _Wire(server.key, link, to_session, news)
        tasks.start_soon(wire.read, events)
        tasks.start_soon(_Outgoing(wire, client, address, tasks).write, from_session)
        yield link


async def _opened(
    server: ServerConfig, settings: Settings, limit: float, client: httpx2.AsyncClient, stack: AsyncExitStack
) -> tuple[str, _Events]:
    """Return the address that messages are sent to, and the events that follow it."""
    try:
        with anyio.fail_after(limit):
            # Between two events may lie any time.
            timeout = httpx2.Timeout(CONNECT, read=None)
            streaming = stream_within_origin(client, "GET", server.url or "", headers=_STREAM, timeout=timeout)
            response = await stack.enter_async_context(streaming)
            if (wrong := _no_stream(response)) is not None:
                raise _problem(server, "refused", f"did not open an event stream ({wrong})", _NO_STREAM)
            events = _events(response, EventReader(settings.max_result))
            async for event in events:
                if isinstance(event, SentEvent) and event.kind == b"endpoint":
                    return _address(server, response.request.url, event.text or b""), events
    except TimeoutError as error:
        wrong = f"did not send within {limit:g} seconds its message endpoint"
        raise _problem(server, "timeout", wrong, _NO_STREAM) from error
    except (*FAILURES, httpx2.HTTPError, httpx2.InvalidURL) as error:
        kind, detail = failure(error)
        raise explained(server.key, "unreachable" if kind == "lost" else kind, detail) from error
    wrong = "ended its event stream before it sent its message endpoint"
    raise _problem(server, "protocol", wrong, _NO_STREAM)


def _no_stream(response: httpx2.Response) -> str | None:
    if (wrong := misleading(response)) is not None:
        return wrong[1]
    if response.status_code != HTTPStatus.OK:
        return f"HTTP {response.status_code} {response.reason_phrase}".strip()
    kind = _kind(response)
    return None if kind == "text/event-stream" else f"content of type {printable(kind, 80) or 'nothing'}"


def _kind(response: httpx2.Response) -> str:
    kind: str = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind


async def _events(response: httpx2.Response, reader: EventReader) -> AsyncIterator[SentEvent | TooLong]:
    async for chunk in response.aiter_raw():
        for event in reader.feed(chunk):
            yield event


def _address(server: ServerConfig, stream: httpx2.URL, told: bytes) -> str:
    """Return the address that a server tells. Whatever goes there was meant for the server's own origin alone."""
    try:
        address = stream.join(told[:_LONGEST_ADDRESS].decode())
        own = (stream.scheme, stream.host, stream.port, stream.userinfo)
        is_own = (address.scheme, address.host, address.port, address.userinfo or stream.userinfo) == own
    except (httpx2.InvalidURL, ValueError):
        is_own = False
    if not is_own or len(told) > _LONGEST_ADDRESS:
        shown = printable(told[:200].decode("utf-8", "replace"), 200)
        wrong = f"sent a message endpoint of another origin ({shown!r})"
        raise _problem(server, "protocol", wrong, _UNUSABLE)
    return str(address)


def _problem(server: ServerConfig, kind: str, problem: str, remedy: str) -> UpstreamError:
    return UpstreamError(server=server.key, kind=kind, problem=problem, remedy=remedy)


class _Bodiless(httpx2.AsyncBaseTransport):
    """Gives of all responses but streams of events the head alone: nothing in their bodies counts here."""

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._inner.handle_async_request(request)
        if request.method == "GET" and response.is_success and _kind(response) == "text/event-stream":
            return response
        try:
            if request.method == "POST":
                await _read_out(response)
        finally:
            await response.aclose()
        headers = unframed(response)
        return httpx2.Response(response.status_code, headers=headers, content=b"", extensions=response.extensions)

    async def aclose(self) -> None:
        await self._inner.aclose()


async def _read_out(response: httpx2.Response) -> None:
    with suppress(httpx2.TransportError), anyio.move_on_after(_SPARE_SECONDS):
        size = 0
        async for chunk in response.aiter_raw():
            if (size := size + len(chunk)) > _SPARE:
                return


@dataclass(frozen=True)
class _Wire:
    """What the server sends, on its way to the session."""

    key: str
    link: Link
    to_session: MemoryObjectSendStream[SessionMessage | Exception]
    log: RateLimitedLog

    async def read(self, events: _Events) -> None:
        """Pass messages on until the stream ends; that closes the link."""
        with suppress(httpx2.TransportError, *_GONE):
            async for event in events:
                if (message := self._message(event)) is not None:
                    await self.to_session.send(message)
        self.link.closed.set()
        self.to_session.close()

    def _message(self, event: SentEvent | TooLong) -> SessionMessage | None:
        if isinstance(event, TooLong):
            return too_long(self.key, event, self.link, self.log)
        if event.kind != b"message" or not event.text:
            return None
        message = said(event.text, self.link)
        if message is None:
            report_noise(self.key, event.text, "sent an event that is not a message", self.log)
        return message

    async def answer(self, message: SessionMessage) -> None:
        """Answer a request in place of the server."""
        with suppress(*_GONE):
            await self.to_session.send(message)


@dataclass(frozen=True)
class _Outgoing:
    """What the session sends, each message by a request of its own."""

    wire: _Wire
    client: httpx2.AsyncClient
    address: str
    tasks: TaskGroup
    places: anyio.Semaphore = field(default_factory=lambda: anyio.Semaphore(_MOST_UNTAKEN))

    async def write(self, from_session: MemoryObjectReceiveStream[SessionMessage]) -> None:
        """Send messages until there are no more. None waits for another, but for the one that opens the session."""
        with suppress(*_GONE):
            async for item in from_session:
                await self.places.acquire()
                if isinstance(item.message, JSONRPCNotification) and item.message.method == "notifications/initialized":
                    with anyio.move_on_after(CONNECT):
                        await self._send(item.message)
                else:
                    self.tasks.start_soon(self._send, item.message)

    async def _send(self, message: JSONRPCMessage) -> None:
        try:
            wrong = await self._posted(message)
        finally:
            self.places.release()
        if wrong is not None and isinstance(message, JSONRPCRequest):
            await self.wire.answer(fault(self.wire.link, message.id, *wrong))

    async def _posted(self, message: JSONRPCMessage) -> tuple[str, str] | None:
        """Send a message; return what went wrong, if something did."""
        body = message.model_dump_json(by_alias=True, exclude_unset=True).encode("utf-8", "replace")
        try:
            async with stream_within_origin(
                self.client, "POST", self.address, content=body, headers=_POSTED
            ) as response:
                if response.is_success:
                    return None
                if response.status_code == HTTPStatus.NOT_FOUND:
                    return "forgotten", ""
                status = f"HTTP {response.status_code} {response.reason_phrase}".strip()
                return misleading(response) or ("refused", status)
        except (*FAILURES, httpx2.HTTPError, httpx2.InvalidURL) as error:
            return failure(error)

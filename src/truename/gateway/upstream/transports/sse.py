"""An upstream server over HTTP with SSE, the transport of MCP 2024-11-05: one stream of answers, messages sent beside.

All answers come on one stream, so nothing but its end takes more than one request with it: an event that is too long
or is no message is dropped, and a request that could not be sent is answered with a fault.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import anyio

from truename.gateway.background import background
from truename.gateway.http_connections import CONNECT, HttpFailure, HttpResponse, Sender, fields_of
from truename.gateway.protocol.event_stream import EventReader, SentEvent
from truename.gateway.protocol.lines import TooLong
from truename.gateway.upstream.addresses import ServerUrl
from truename.gateway.upstream.explained import explained
from truename.gateway.upstream.messages import receive
from truename.gateway.upstream.transport import Receiver, Transport, TransportError
from truename.gateway.upstream.transports.http_requests import EVENTS, USER_AGENT, pieces
from truename.gateway.upstream.web import FAILURES, failure, headers_for, media_type, misleading
from truename.gateway.upstream_errors import UpstreamError, printable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from anyio.abc import TaskGroup

    from truename.config import ServerConfig, Settings
    from truename.gateway.rate_limited_log import RateLimitedLog
    from truename.gateway.upstream.outside import Outside

__all__ = ["open_sse"]

_LONGEST_ADDRESS: Final = 8 * 1024
# What stands in the answer to a message does not matter; read to its end, the connection can be used again.
_SPARE: Final = 8 * 1024
_SPARE_SECONDS: Final = 5.0
# Messages of ours that a server has not taken yet, and how long it may take for one.
_MOST_UNTAKEN: Final = 1_000
_MOST_MOVES: Final = 5
_STREAMED: Final = {"accept": "text/event-stream", "cache-control": "no-store"}
_POSTED: Final = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
_NO_STREAM: Final = "Check that its address is the one of its SSE stream, and the credentials under headers."
_UNUSABLE: Final = "Report it to the server's authors."

_Events = AsyncIterator[SentEvent | TooLong]


@asynccontextmanager
async def open_sse(
    server: ServerConfig, settings: Settings, log: RateLimitedLog, outside: Outside, *, within: float = math.inf
) -> AsyncIterator[Transport]:
    """Open the server's stream and wait until it says where messages are sent to.

    Raises `UpstreamError`: no stream of events at the address, or none that says that within ``startup_timeout``, or
    within these seconds.
    """
    sender = outside.sender(server)
    try:
        way = _Way(sender, headers_for(server.headers))
        async with (
            _opened(server, settings, min(within, settings.startup_timeout), way) as (address, events),
            background() as tasks,
        ):
            transport = _SseTransport(server.key, way, address, tasks)
            tasks.start_soon(transport.read, events, log)
            yield transport
    finally:
        with anyio.CancelScope(shield=True):
            await sender.aclose()


class _Way:
    """Requests to one server, followed within its origin."""

    def __init__(self, sender: Sender, headers: Mapping[str, str]) -> None:
        self._sender = sender
        self._own = {**USER_AGENT, **{name.lower(): value for name, value in headers.items()}}

    async def send(
        self, verb: bytes, url: ServerUrl, headers: Mapping[str, str], body: bytes
    ) -> tuple[HttpResponse, ServerUrl]:
        """Send a request; return the response and from where it came. Raises `TransportError`."""
        for _ in range(_MOST_MOVES + 1):
            own = {**self._own, **({"authorization": url.basic().decode()} if url.user else {}), **headers}
            try:
                fields = fields_of([(b"host", url.host), *((key.encode(), one.encode()) for key, one in own.items())])
                response = await self._sender.send(verb, url.origin, url.target, fields, body)
            except FAILURES as error:
                raise failure(error) from error
            found = misleading(response, url, verb.decode())
            if found is None:
                return response, url
            response.close()
            if isinstance(found, TransportError):
                raise found
            url = found
        raise TransportError("redirected", f"more than {_MOST_MOVES} redirects")


@asynccontextmanager
async def _opened(
    server: ServerConfig, settings: Settings, limit: float, way: _Way
) -> AsyncIterator[tuple[ServerUrl, _Events]]:
    """Give the address that messages are sent to, and the events that follow it."""
    response: HttpResponse | None = None
    try:
        try:
            with anyio.fail_after(limit):
                response, url = await way.send(b"GET", ServerUrl.of(server.url or ""), _STREAMED, b"")
                if (wrong := _no_stream(response)) is not None:
                    raise _problem(server, "refused", f"did not open an event stream ({wrong})", _NO_STREAM)
                events = _events(response, EventReader(settings.max_result))
                address = await _endpoint(server, url, events)
        except TimeoutError as error:
            wrong = f"did not send within {limit:g} seconds its message endpoint"
            raise _problem(server, "timeout", wrong, _NO_STREAM) from error
        except TransportError as error:
            if error.kind == "refused":
                raise _problem(
                    server, "refused", f"did not open an event stream ({error.detail})", _NO_STREAM
                ) from error
            raise explained(server.key, "unreachable" if error.kind == "lost" else error.kind, error.detail) from error
        except HttpFailure as error:
            raise explained(server.key, "unreachable", str(error)) from error
        yield address, events
    finally:
        if response is not None:
            response.close()


async def _endpoint(server: ServerConfig, url: ServerUrl, events: _Events) -> ServerUrl:
    async for event in events:
        if isinstance(event, SentEvent) and event.kind == b"endpoint":
            return _address(server, url, event.text or b"")
    wrong = "ended its event stream before it sent its message endpoint"
    raise _problem(server, "protocol", wrong, _NO_STREAM)


def _no_stream(response: HttpResponse) -> str | None:
    if response.status != HTTPStatus.OK:
        return f"HTTP {response.status} {response.reason.decode('latin-1')}".strip()
    kind = media_type(response)
    return None if kind == EVENTS else f"content of type {printable(kind.decode('latin-1'), 80) or 'nothing'}"


async def _events(response: HttpResponse, reader: EventReader) -> _Events:
    async for chunk in pieces(response):
        for event in reader.feed(chunk):
            yield event


def _address(server: ServerConfig, stream: ServerUrl, told: bytes) -> ServerUrl:
    """Return the address that a server tells. Whatever goes there was meant for the server's own origin alone."""
    found = stream.joined(told[:_LONGEST_ADDRESS].decode("utf-8", "replace"))
    if found is None or found.origin != stream.origin or found.user not in {"", stream.user}:
        found = None
    if found is None or len(told) > _LONGEST_ADDRESS:
        shown = printable(told[:200].decode("utf-8", "replace"), 200)
        wrong = f"sent a message endpoint of another web origin ({shown!r})"
        raise _problem(server, "protocol", wrong, _UNUSABLE)
    return found._replace(user=stream.user)


def _problem(server: ServerConfig, kind: str, problem: str, remedy: str) -> UpstreamError:
    return UpstreamError(server=server.key, kind=kind, problem=problem, remedy=remedy)


class _SseTransport(Transport):
    is_old = True

    def __init__(self, key: str, way: _Way, address: ServerUrl, tasks: TaskGroup) -> None:
        super().__init__()
        self._key = key
        self._way = way
        self._address = address
        self._tasks = tasks
        self._untaken = anyio.Semaphore(_MOST_UNTAKEN)
        self._begun = anyio.Event()
        self._receiver: Receiver

    def begin(self, receiver: Receiver) -> None:
        """Give to this receiver what comes."""
        self._receiver = receiver
        self._begun.set()

    async def read(self, events: _Events, log: RateLimitedLog) -> None:
        """Pass messages on until the stream ends; that closes the transport."""
        await self._begun.wait()
        async for event in events:
            if isinstance(event, SentEvent) and (event.kind != b"message" or not event.text):
                continue
            text = event.text if isinstance(event, SentEvent) else event
            receive(text or b"", self._receiver, self._key, log, "sent an event that is not a message")
        self.closed.set()

    async def greeted(self, message: bytes, headers: bytes) -> None:  # noqa: ARG002 - a `Transport`
        """Send ``notifications/initialized``, which no other message may overtake."""
        with anyio.move_on_after(CONNECT):
            await self._post(message)

    async def request(self, number: int, message: bytes, headers: bytes) -> None:  # noqa: ARG002 - a `Transport`
        """Send a request; its response comes on the stream, maybe before the server has taken the request."""
        await self._untaken.acquire()
        self._tasks.start_soon(self._send, number, message)

    async def notify(self, message: bytes, headers: bytes) -> None:  # noqa: ARG002 - a `Transport`
        """Send a message that is not answered."""
        await self._untaken.acquire()
        self._tasks.start_soon(self._send, None, message)

    async def _send(self, number: int | None, message: bytes) -> None:
        try:
            wrong = await self._post(message)
        finally:
            self._untaken.release()
        if wrong is not None and number is not None:
            self._receiver.fail(number, wrong)

    async def _post(self, message: bytes) -> TransportError | None:
        """Send a message; return what went wrong, if something did."""
        try:
            response, _ = await self._way.send(b"POST", self._address, _POSTED, message)
        except TransportError as fault:
            return fault
        try:
            with anyio.move_on_after(_SPARE_SECONDS):
                size = 0
                async for chunk in pieces(response):
                    if (size := size + len(chunk)) > _SPARE:
                        break
        finally:
            response.close()
        if 200 <= response.status < 300:
            return None
        if response.status == HTTPStatus.NOT_FOUND:
            return TransportError("forgotten")
        status = f"HTTP {response.status} {response.reason.decode('latin-1')}".strip()
        return TransportError("refused", status)

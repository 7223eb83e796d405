"""An upstream server over HTTP with SSE, the transport of MCP 2024-11-05: one stream of answers, messages sent beside.

All answers come on one stream, so nothing but its end takes more than one exchange with it: an event that is too long
or is no message is dropped, and a message that could not be sent is answered with an error.
"""

from __future__ import annotations

import math
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import anyio
import httpx2
from mcp.shared._httpx_utils import stream_within_origin

from truename.gateway.background import background
from truename.gateway.faults import UpstreamError, printable
from truename.gateway.protocol.event_stream import EventReader, SentEvent
from truename.gateway.protocol.lines import TooLong
from truename.gateway.upstream.explained import explained
from truename.gateway.upstream.messages import fault, read_message, report_noise, too_long
from truename.gateway.upstream.transport import Transport
from truename.gateway.upstream.web import (
    CONNECT,
    FAILURES,
    failure,
    headers_for,
    misleading,
    unframed,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.config import ServerConfig, Settings
    from truename.gateway.mcp.requests import RequestId
    from truename.gateway.rate_limited_log import RateLimitedLog
    from truename.gateway.upstream.outside import Outside
    from truename.gateway.upstream.transport import Hearer, Message, Take

__all__ = ["open_sse"]

_LONGEST_ADDRESS: Final = 8 * 1024
# What stands in the answer to a message does not matter; read to its end, the connection can be used again.
_SPARE: Final = 8 * 1024
_SPARE_SECONDS: Final = 5.0
# Messages of ours that a server has not taken yet.
_MOST_UNTAKEN: Final = 1_000
_STREAM: Final = {"accept": "text/event-stream", "cache-control": "no-store"}
_POSTED: Final = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
_NO_STREAM: Final = "Check that its address is the one of its SSE stream, and the credentials under headers."
_UNUSABLE: Final = "Report it to the server's authors."

_Events = AsyncIterator[SentEvent | TooLong]


@asynccontextmanager
async def open_sse(
    server: ServerConfig, settings: Settings, news: RateLimitedLog, outside: Outside, *, within: float = math.inf
) -> AsyncIterator[Transport]:
    """Open the server's stream and wait until it says where messages are sent to.

    Raises `UpstreamError`: no stream of events at the address, or none that says that within ``startup_timeout``, or
    within these seconds.
    """
    longest = max((server.timeout or settings.call_timeout, *server.tool_timeouts.values()))
    longest += settings.answer_timeout + 60
    inner = outside.transport(server)
    async with (
        httpx2.AsyncClient(
            transport=_Bodiless(inner),
            timeout=httpx2.Timeout(CONNECT, read=longest),
            headers=headers_for(server.headers),
        ) as client,
        AsyncExitStack() as stack,
        background() as tasks,
    ):
        address, events = await _opened(server, settings, min(within, settings.startup_timeout), client, stack)
        secret = os.urandom(8).hex()
        requests = _SseRequests(server.key, secret, client, address, news)
        transport = Transport(requests=requests, secret=secret, is_old=True)
        tasks.start_soon(requests.read, events, transport.closed)
        yield transport


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


class _SseRequests:
    """A `RequestTransport`: each message is sent by a request of its own, and all answers come on the one stream."""

    def __init__(self, key: str, secret: str, client: httpx2.AsyncClient, address: str, news: RateLimitedLog) -> None:
        self._key = key
        self._secret = secret
        self._client = client
        self._address = address
        self._log = news
        self._hearer: Hearer | None = None
        self._begun = anyio.Event()
        self._untaken = anyio.Semaphore(_MOST_UNTAKEN)

    def begin(self, hearer: Hearer) -> None:
        """Learn to whom the messages of the stream are given."""
        self._hearer = hearer
        self._begun.set()

    async def read(self, events: _Events, closed: anyio.Event) -> None:
        """Pass messages on until the stream ends; that closes the transport."""
        await self._begun.wait()
        assert self._hearer is not None  # noqa: S101 - it was set before
        with suppress(httpx2.TransportError):
            async for event in events:
                if (message := self._message(event)) is not None:
                    await self._hearer.hear(message)
        closed.set()
        self._hearer.lost()

    def _message(self, event: SentEvent | TooLong) -> Message | None:
        if isinstance(event, TooLong):
            return too_long(self._key, event, self._secret, self._log)
        if event.kind != b"message" or not event.text:
            return None
        message = read_message(event.text, self._secret)
        if message is None:
            report_noise(self._key, event.text, "sent an event that is not a message", self._log)
        return message

    async def request(self, number: RequestId, message: bytes, _: Mapping[str, str], __: Take) -> Message | None:
        """Send a request; an error answers it if it could not be sent."""
        wrong = await self._posted(message)
        return None if wrong is None else fault(self._secret, number, *wrong)

    async def post(self, message: bytes, _: Mapping[str, str]) -> None:
        """Send a message that is not answered."""
        await self._posted(message)

    async def _posted(self, body: bytes) -> tuple[str, str] | None:
        """Send a message; return what went wrong, if something did."""
        try:
            async with (
                self._untaken,
                stream_within_origin(self._client, "POST", self._address, content=body, headers=_POSTED) as response,
            ):
                if response.is_success:
                    return None
                if response.status_code == HTTPStatus.NOT_FOUND:
                    return "forgotten", ""
                status = f"HTTP {response.status_code} {response.reason_phrase}".strip()
                return misleading(response) or ("refused", status)
        except (*FAILURES, httpx2.HTTPError, httpx2.InvalidURL) as error:
            return failure(error)

"""HTTP/1.1 connections to servers, kept between requests: llhttp on asyncio's transports.

httpx2's own pool looks at all its connections for each request, and goes through several layers for each piece of it:
that is most of what a forwarded call costs.
"""

from __future__ import annotations

import asyncio
import re
import select
import socket
import time
from collections import deque
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple, cast

import anyio
import httptools
import httpx2
from aiohappyeyeballs import start_connection

from truename.auth.network.addresses import HostResolver

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Iterable
    from ipaddress import IPv4Address, IPv6Address

    from truename.auth.network.addresses import ResolvedHost

__all__ = ["Connections", "HttpOrigin", "RawResponse", "head_of"]

_MOST_UNREAD: Final = 256 * 1024
_LONGEST_HEAD: Final = 100 * 1024
MAX_IDLE: Final = 20
# Seconds after which the next address is tried beside the one before (RFC 8305).
_HEAD_START: Final = 0.25
# Less than the five seconds after which many servers close connections: none is to be taken as it is closed.
IDLE_SECONDS: Final = 4.0

# RFC 9110, sections 5.1 and 5.5; nothing in a request line or a header can end it.
_TARGET: Final = re.compile(rb"[!-~]+")
_FIELD: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+: [^\x00\r\n]*")


class HttpOrigin(NamedTuple):
    """Where a connection leads: scheme, host and port."""

    scheme: str
    host: str
    port: int

    @classmethod
    def of(cls, url: httpx2.URL) -> HttpOrigin:
        """Return the origin of an address. Raises `httpx2.UnsupportedProtocol`."""
        if url.scheme not in {"http", "https"}:
            message = f"{url.scheme!r} is not a supported URL scheme."
            raise httpx2.UnsupportedProtocol(message)
        return cls(url.scheme, url.raw_host.decode("ascii"), url.port or (443 if url.scheme == "https" else 80))


def head_of(method: str, target: bytes, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    r"""Write the head of a request. Raises `httpx2.LocalProtocolError` for a target or a header that is none.

    >>> head_of("GET", b"/", [(b"host", b"x"), (b"x-evil", b"a\r\nb: c")])
    Traceback (most recent call last):
    httpx2.LocalProtocolError: A header of the request is not valid.
    """
    fields = [b"%s: %s" % pair for pair in headers]
    if not _TARGET.fullmatch(target) or not all(map(_FIELD.fullmatch, fields)):
        message = "A header of the request is not valid."
        raise httpx2.LocalProtocolError(message)
    return b"\r\n".join((b"%s %s HTTP/1.1" % (method.encode("ascii"), target), *fields, b"", b""))


def fields_of(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Write headers of a request, a line each. Raises `httpx2.LocalProtocolError` for one that is none."""
    fields = [b"%s: %s" % pair for pair in headers]
    if not all(map(_FIELD.fullmatch, fields)):
        message = "A header of the request is not valid."
        raise httpx2.LocalProtocolError(message)
    return b"\r\n".join((*fields, b""))


class Connections(httpx2.AsyncBaseTransport):
    """Sends each request on a connection that is free, or on a new one. A broken one takes no other with it.

    Addresses are judged as they are connected to, and to none other. Raises `AddressRefused`.
    """

    def __init__(self, resolver: ResolvedHost | None = None) -> None:
        self._resolver: ResolvedHost = resolver or HostResolver()
        self._idle: deque[_Connection] = deque()
        self._all: set[_Connection] = set()

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        context = httpx2.create_ssl_context()
        context.set_alpn_protocols(["http/1.1"])
        return context

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request; its connection is free again when the response was read to its end."""
        limits = request.extensions.get("timeout") or {}
        head = head_of(request.method, request.url.raw_path, request.headers.raw)
        found = await self.exchange(
            HttpOrigin.of(request.url), head, request.content, connect=limits.get("connect"), read=limits.get("read")
        )
        return httpx2.Response(
            found.status,
            headers=found.headers,
            stream=_BodyStream(found),
            extensions={"http_version": b"HTTP/1.1", "reason_phrase": found.reason},
        )

    async def exchange(
        self, origin: HttpOrigin, head: bytes, content: bytes, *, connect: float | None, read: float | None
    ) -> RawResponse:
        """Send a request whole, and return its response when its head has come. Raises `httpx2.TransportError`.

        ``connect`` and ``read`` are seconds, for the connection and between two pieces of the response.
        """
        connection = self._free(origin) or await self._opened(origin, connect)
        try:
            await connection.exchange(head + content, read)
        except BaseException:
            self._forget(connection)
            raise
        return RawResponse(self, connection, read)

    def _free(self, origin: HttpOrigin) -> _Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.origin == origin and connection.is_fit:
                return connection
            self._forget(connection)
        return None

    async def _opened(self, origin: HttpOrigin, limit: float | None) -> _Connection:
        scheme, host, port = origin
        tls = self._tls if scheme == "https" else None
        try:
            with anyio.fail_after(limit):
                # The event loop's own happy eyeballs would look the host up again, after its addresses were judged.
                addresses = [_address_info(one, port) for one in await self._resolver.addresses(host, port)]
                connected = await start_connection(addresses, happy_eyeballs_delay=_HEAD_START)
                _, connection = await asyncio.get_running_loop().create_connection(
                    lambda: _Connection(origin), sock=connected, ssl=tls, server_hostname=host if tls else None
                )
        except TimeoutError as error:
            raise httpx2.ConnectTimeout(str(error)) from error
        except (OSError, UnicodeError) as error:
            raise httpx2.ConnectError(str(error)) from error
        self._all.add(connection)
        return connection

    def release(self, connection: _Connection) -> None:
        """Keep a connection for the next request, if it can bear one."""
        if connection not in self._all or not connection.begun_anew():
            self._forget(connection)
            return
        self._idle.append(connection)
        while self._idle and (len(self._idle) > MAX_IDLE or self._idle[0].is_stale):
            self._forget(self._idle.popleft())

    def _forget(self, connection: _Connection) -> None:
        self._all.discard(connection)
        connection.close()

    async def aclose(self) -> None:
        """Close all, also those on which an answer is awaited."""
        while self._all:
            self._forget(self._all.pop())
        self._idle.clear()


def _address_info(
    address: IPv4Address | IPv6Address, port: int
) -> tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[str, int]]:
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    return family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (str(address), port)


class _Connection(asyncio.Protocol):
    """One connection, for one request at a time."""

    def __init__(self, origin: HttpOrigin) -> None:
        self.origin = origin
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpResponseParser(self)
        self._since = time.monotonic()
        self._arrived: asyncio.Future[None] | None = None
        self._has_ended = False
        self._failure: Exception | None = None
        self._is_busy = False
        self._begin()

    def _begin(self) -> None:
        """Forget the response before."""
        self.status = 0
        self.reason = b""
        self.headers: list[tuple[bytes, bytes]] = []
        self._chunks: deque[bytes] = deque()
        self._unread = 0
        # Bytes that came since the parser last gave a head or a part of a body.
        self._unparsed = 0
        self._has_parsed = False
        self._has_head = self._is_whole = self._has_more = False
        self._is_framed = self._is_kept = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: asyncio.Transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if not self._is_busy or self._is_whole:
            # Nobody asked for it: the connection bears no other request.
            self._has_more = True
            return
        self._has_parsed = False
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._fail("The server switched protocols.")
        except httptools.HttpParserError as error:
            self._fail(f"Invalid HTTP: {error}")
        # A header that is not whole yet is in the parser, which has no bound; so is a trailer.
        self._unparsed = 0 if self._has_parsed else self._unparsed + len(data)
        if self._unparsed > _LONGEST_HEAD:
            self._fail("The head of the response is too large.")
        if self._unread > _MOST_UNREAD:
            self._transport.pause_reading()
        self._wake()

    def _fail(self, text: str) -> None:
        self._failure = self._failure or httpx2.RemoteProtocolError(text)
        self._transport.abort()

    def on_message_begin(self) -> None:
        if self._is_whole:
            self._has_more = True

    def on_status(self, status: bytes) -> None:
        self.reason += status

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._has_head:
            # A trailer: what it says is not part of the response's head (RFC 9110, section 6.5.1).
            return
        name = name.lower()
        self._is_framed |= name in {b"content-length", b"transfer-encoding"}
        if not self._has_more:
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        if self._has_more:
            return
        status = self._parser.get_status_code()
        if status < 200:
            # What comes before the response says nothing of it.
            self.headers, self.reason, self._is_framed = [], b"", False
            return
        self.status, self._has_head, self._has_parsed = status, True, True
        self._is_kept = self._parser.should_keep_alive()

    def on_body(self, body: bytes) -> None:
        self._has_parsed = True
        if not self._has_more:
            self._chunks.append(body)
            self._unread += len(body)

    def on_message_complete(self) -> None:
        if self._has_head:
            self._is_whole = True

    def connection_lost(self, exc: Exception | None) -> None:
        self._has_ended = True
        if self._has_head and not self._is_framed:
            # Such a body lasts until the connection ends.
            self._is_whole = True
        elif exc is not None:
            self._failure = self._failure or exc
        self._wake()

    def _wake(self) -> None:
        if self._arrived is not None and not self._arrived.done():
            self._arrived.set_result(None)

    @property
    def is_stale(self) -> bool:
        """Whether it was left alone for so long that its server may close it."""
        return time.monotonic() > self._since + IDLE_SECONDS

    @property
    def is_fit(self) -> bool:
        """Whether a request can be sent: what was closed meanwhile, or speaks unasked, is not used."""
        return not (self.is_stale or self._has_ended or self._has_more or _has_something(self._transport))

    async def exchange(self, request: bytes, limit: float | None) -> None:
        """Send a request and wait for the head of its response. Raises `httpx2.TransportError`."""
        self._begin()
        self._is_busy = True
        # Not waited for: what a server does not take, it can refuse meanwhile.
        self._transport.write(request)
        while not self._has_head:
            await self._more(limit, "Server disconnected without sending a response.")

    async def chunk(self, limit: float | None) -> bytes | None:
        """Return more of the response's body, None at its end. Raises `httpx2.TransportError`."""
        while not self._chunks:
            if self._is_whole:
                return None
            await self._more(limit, "Server disconnected in the middle of its response.")
        chunk = self._chunks.popleft()
        self._unread -= len(chunk)
        return chunk

    async def _more(self, limit: float | None, ended: str) -> None:
        """Wait until more of the response has come."""
        if self._failure is not None:
            raise _named(self._failure)
        if self._has_ended:
            raise httpx2.RemoteProtocolError(ended)
        self._transport.resume_reading()
        self._arrived = self._loop.create_future()
        timer = None if limit is None else self._loop.call_later(limit, _expire, self._arrived)
        try:
            await self._arrived
        except TimeoutError as error:
            raise httpx2.ReadTimeout(str(error)) from error
        finally:
            if timer is not None:
                timer.cancel()

    def begun_anew(self) -> bool:
        """Tell whether there can be another request, after one that is over."""
        is_fit = self._is_whole and self._is_kept and not (self._has_more or self._has_ended or self._chunks)
        self._is_busy = False
        self._since = time.monotonic()
        return is_fit

    def close(self) -> None:
        """Close it, without waiting for the other side."""
        self._transport.abort()


def _expire(arrived: asyncio.Future[None]) -> None:
    if not arrived.done():
        arrived.set_exception(TimeoutError())


def _named(error: Exception) -> httpx2.TransportError:
    """Return what went wrong under the name that httpx2 has for it."""
    return error if isinstance(error, httpx2.TransportError) else httpx2.ReadError(str(error))


class RawResponse:
    """A response whose head has come; reading or closing its body frees the connection."""

    def __init__(self, connections: Connections, connection: _Connection, limit: float | None) -> None:
        self.status, self.reason, self.headers = connection.status, connection.reason, connection.headers
        self._connections = connections
        self._connection: _Connection | None = connection
        self._limit = limit

    def header(self, name: bytes) -> bytes:
        """Return the first header with this name (in lower case), b"" if there is none."""
        return next((value for key, value in self.headers if key == name), b"")

    async def chunk(self) -> bytes | None:
        """Return more of the body, None at its end. Raises `httpx2.TransportError`."""
        return None if self._connection is None else await self._connection.chunk(self._limit)

    def close(self) -> None:
        """Free the connection: for another request if the response was read to its end."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            self._connections.release(connection)


class _BodyStream(httpx2.AsyncByteStream):
    """The body of a response, as httpx2 reads it."""

    def __init__(self, response: RawResponse) -> None:
        self._response = response

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        more = await self._response.chunk()
        if more is None:
            raise StopAsyncIteration
        return more

    async def aclose(self) -> None:
        self._response.close()


def _has_something(transport: asyncio.Transport) -> bool:
    """Tell whether a socket can be read, which the loop may not have seen yet: so does one that was closed."""
    if not hasattr(select, "poll"):
        return False
    found = select.poll()
    found.register(transport.get_extra_info("socket"), select.POLLIN)
    return bool(found.poll(0))

"""HTTP/1.1 connections to servers, kept between requests: llhttp on asyncio's transports.

Pools of libraries look at all their connections for each request, and go through several layers for each piece of it:
that would be most of what a forwarded call costs.
"""

from __future__ import annotations

import asyncio
import platform
import re
import select
import socket
import ssl
import time
from collections import deque
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, cast

import anyio
import httptools
from aiohappyeyeballs import start_connection

from truename.auth.network.addresses import HostResolver

if TYPE_CHECKING:
    from collections.abc import Iterable
    from ipaddress import IPv4Address, IPv6Address

    from truename.auth.network.addresses import ResolvedHost

__all__ = ["CONNECT", "Connections", "HttpFailure", "HttpOrigin", "HttpResponse", "Sender", "fields_of"]

# Seconds until a connection must be there.
CONNECT: Final = 15.0
_MOST_UNREAD: Final = 256 * 1024
_LONGEST_HEAD: Final = 100 * 1024
# As many as calls may run at a time at most servers: one that was closed costs more than one that is kept.
MAX_IDLE: Final = 256
# Seconds after which the next address is tried beside the one before (RFC 8305).
_HEAD_START: Final = 0.25
# Less than the five seconds after which many servers close connections: none is to be taken as it is closed.
IDLE_SECONDS: Final = 4.0

# RFC 9110, sections 5.1 and 5.5; nothing in a request line or a header can end it.
_TARGET: Final = re.compile(rb"[!-~]+")
_FIELD: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+: [^\x00\r\n]*")


class HttpFailure(Exception):
    """A request that got no whole response: ``name`` says how it failed, in the words of HTTP libraries.

    One that ``was_sent`` may have been run.
    """

    def __init__(self, name: str, text: str, *, was_sent: bool = True) -> None:
        super().__init__(text)
        self.name = name
        self.was_sent = was_sent


class HttpOrigin(NamedTuple):
    """Where a connection leads: scheme (http or https), host and port."""

    scheme: str
    host: str
    port: int


class HttpResponse(Protocol):
    """A response whose head has come. Closing it frees its connection."""

    status: int
    reason: bytes
    headers: list[tuple[bytes, bytes]]

    def header(self, name: bytes) -> bytes:
        """Return the first header with this name (in lower case), b"" if there is none."""
        ...

    def whole(self) -> bytes | None:
        """Return what is left of the body, None if it has not come whole yet."""
        ...

    async def chunk(self) -> bytes | None:
        """Return more of the body, None at its end. Raises `HttpFailure`."""
        ...

    def close(self) -> None:
        """Free the connection: for another request if the response was read to its end."""
        ...


class Sender(Protocol):
    """A way to servers over HTTP."""

    async def send(self, verb: bytes, origin: HttpOrigin, target: bytes, fields: bytes, body: bytes) -> HttpResponse:
        """Send a request, and return its response when its head has come.

        ``fields`` are the header lines (`fields_of`), without what says how long the body is. Raises `HttpFailure`,
        and what a credential or an address is refused with.
        """
        ...

    async def aclose(self) -> None:
        """Close all connections."""
        ...


def fields_of(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    r"""Write the lines of a head. Raises `HttpFailure` for a header that is none.

    >>> fields_of([(b"host", b"x"), (b"x-evil", b"a\r\nb: c")])
    Traceback (most recent call last):
    truename.gateway.http_connections.HttpFailure: A header of the request is not valid.
    """
    fields = [b"%s: %s" % pair for pair in headers]
    if not all(map(_FIELD.fullmatch, fields)):
        raise HttpFailure("LocalProtocolError", "A header of the request is not valid.", was_sent=False)
    return b"".join(field + b"\r\n" for field in fields)


class Connections:
    """A `Sender` that sends each request on a connection that is free, or on a new one. A broken one harms no other.

    Addresses are judged as they are connected to, and to none other. Raises `AddressRefused`.
    """

    def __init__(self, resolver: ResolvedHost | None = None) -> None:
        self._resolver: ResolvedHost = resolver or HostResolver()
        self._idle: deque[_Connection] = deque()
        self._all: set[_Connection] = set()
        # The last target that was looked at: nearly all requests have the same.
        self._checked: bytes | None = None

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return _trusting()

    async def send(
        self,
        verb: bytes,
        origin: HttpOrigin,
        target: bytes,
        fields: bytes,
        body: bytes,
        *,
        connect: float | None = CONNECT,
        read: float | None = None,
    ) -> HttpResponse:
        """Send a request whole. See `Sender`.

        ``connect`` and ``read`` are seconds, for the connection and between two pieces of the response.
        """
        if target is not self._checked and not _TARGET.fullmatch(target):
            raise HttpFailure("LocalProtocolError", "The address of the request is not valid.", was_sent=False)
        self._checked = target
        if body or verb != b"GET":
            request = b"%b %b HTTP/1.1\r\n%bcontent-length: %d\r\n\r\n%b" % (verb, target, fields, len(body), body)
        else:
            request = b"%b %b HTTP/1.1\r\n%b\r\n" % (verb, target, fields)
        connection = self._free(origin) or await self._opened(origin, connect)
        try:
            connection.write(request)
            while not connection.has_head:
                await connection.more(read, "Server disconnected without sending a response.")
        except BaseException:
            self._forget(connection)
            raise
        return _Response(self, connection, read)

    def _free(self, origin: HttpOrigin) -> _Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if (connection.origin is origin or connection.origin == origin) and connection.is_fit:
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
            raise HttpFailure("ConnectTimeout", str(error), was_sent=False) from error
        except (OSError, UnicodeError) as error:
            raise HttpFailure("ConnectError", str(error), was_sent=False) from error
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


def _trusting() -> ssl.SSLContext:
    """Return a context that trusts the authorities of this system, or of SSL_CERT_FILE or SSL_CERT_DIR."""
    context = ssl.create_default_context()
    paths = ssl.get_default_verify_paths()
    if platform.system() in {"Darwin", "Windows"} or not (paths.cafile or paths.capath):
        # The system keeps them in another way, or where this interpreter was not built to look.
        import httpx2  # noqa: PLC0415 - it knows the certificate stores of macOS and Windows

        context = httpx2.create_ssl_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


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
        self._has_more: bool = False
        self._poll: select.poll | None = None
        self._begin()

    def _begin(self) -> None:
        """Forget the response before."""
        self.status = 0
        self.reason = b""
        self.headers: list[tuple[bytes, bytes]] = []
        self.first: dict[bytes, bytes] = {}
        self._chunks: deque[bytes] = deque()
        self._unread = 0
        # Bytes that came since the parser last gave a head or a part of a body.
        self._unparsed = 0
        self._has_parsed = False
        self.has_head = self._is_whole = False
        self._is_framed = self._is_kept = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: asyncio.Transport = cast("asyncio.Transport", transport)
        connected = transport.get_extra_info("socket")
        if connected is None:
            return
        _keep_alive(connected)
        if hasattr(select, "poll"):
            self._poll = select.poll()
            self._poll.register(connected, select.POLLIN)

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
        self._failure = self._failure or HttpFailure("RemoteProtocolError", text)
        self._transport.abort()

    def on_message_begin(self) -> None:
        if self._is_whole:
            self._has_more = True

    def on_status(self, status: bytes) -> None:
        self.reason += status

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.has_head or self._has_more:
            # A trailer: what it says is not part of the response's head (RFC 9110, section 6.5.1).
            return
        name = name.lower()
        self.headers.append((name, value))
        self.first.setdefault(name, value)

    def on_headers_complete(self) -> None:
        if self._has_more:
            return
        status = self._parser.get_status_code()
        if status < 200:
            # What comes before the response says nothing of it.
            self.headers, self.first, self.reason = [], {}, b""
            return
        self.status, self.has_head, self._has_parsed = status, True, True
        self._is_framed = b"content-length" in self.first or b"transfer-encoding" in self.first
        self._is_kept = self._parser.should_keep_alive()

    def on_body(self, body: bytes) -> None:
        self._has_parsed = True
        if not self._has_more:
            self._chunks.append(body)
            self._unread += len(body)

    def on_message_complete(self) -> None:
        if self.has_head:
            self._is_whole = True

    def connection_lost(self, exc: Exception | None) -> None:
        self._has_ended = True
        if self.has_head and not self._is_framed:
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
        """Whether a request can be sent: what was closed meanwhile, or speaks unasked, is not used.

        A socket that can be read is one of these, which the loop may not have seen yet.
        """
        return not (
            self._has_ended or self._has_more or self.is_stale or (self._poll is not None and self._poll.poll(0))
        )

    def write(self, request: bytes) -> None:
        """Send a request. Raises `HttpFailure`."""
        if self._has_more:
            raise HttpFailure("RemoteProtocolError", "The server answered before it was asked.", was_sent=False)
        self._begin()
        self._is_busy = True
        # Not waited for: what a server does not take, it can refuse meanwhile.
        self._transport.write(request)

    def whole(self) -> bytes | None:
        """Return what is left of the response's body, None if it has not come whole yet."""
        if not self._is_whole:
            return None
        chunks, self._chunks, self._unread = self._chunks, deque(), 0
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    async def chunk(self, limit: float | None) -> bytes | None:
        """Return more of the response's body, None at its end. Raises `HttpFailure`."""
        while not self._chunks:
            if self._is_whole:
                return None
            await self.more(limit, "Server disconnected in the middle of its response.")
        chunk = self._chunks.popleft()
        self._unread -= len(chunk)
        return chunk

    async def more(self, limit: float | None, ended: str) -> None:
        """Wait until more of the response has come. Raises `HttpFailure`, with the text ``ended`` if none will."""
        if self._failure is not None:
            raise _named(self._failure)
        if self._has_ended:
            raise HttpFailure("RemoteProtocolError", ended)
        self._transport.resume_reading()
        self._arrived = self._loop.create_future()
        timer = None if limit is None else self._loop.call_later(limit, _expire, self._arrived)
        try:
            await self._arrived
        except TimeoutError as error:
            raise HttpFailure("ReadTimeout", str(error)) from error
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


def _named(error: Exception) -> HttpFailure:
    """Return what went wrong under the name that libraries have for it."""
    return error if isinstance(error, HttpFailure) else HttpFailure("ReadError", str(error))


def _keep_alive(connected: socket.socket) -> None:
    """Have the system find out about a server that is no more: some responses last for days and say nothing."""
    if connected.family not in {socket.AF_INET, socket.AF_INET6}:
        return
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 20), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):
            connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


class _Response:
    """A response on one of the connections."""

    def __init__(self, connections: Connections, connection: _Connection, limit: float | None) -> None:
        self.status, self.reason, self.headers = connection.status, connection.reason, connection.headers
        self._first = connection.first
        self._connections = connections
        self._connection: _Connection | None = connection
        self._limit = limit

    def header(self, name: bytes) -> bytes:
        """Return the first header with this name (in lower case), b"" if there is none."""
        return self._first.get(name, b"")

    def whole(self) -> bytes | None:
        """Return what is left of the body, None if it has not come whole yet."""
        return None if self._connection is None else self._connection.whole()

    async def chunk(self) -> bytes | None:
        """Return more of the body, None at its end. Raises `HttpFailure`."""
        return None if self._connection is None else await self._connection.chunk(self._limit)

    def close(self) -> None:
        """Free the connection: for another request if the response was read to its end."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            self._connections.release(connection)

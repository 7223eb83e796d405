"""HTTP/1.1 connections to servers, kept between requests: h11 on asyncio's transports, as a transport of httpx2.

httpx2's own pool looks at all its connections for each request, and goes through several layers for each piece of it:
that is most of what a forwarded call costs.
"""

from __future__ import annotations

import asyncio
import select
import socket
import time
from collections import deque
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, cast

import anyio
import h11
import httpx2
from aiohappyeyeballs import start_connection

from truename.auth.network.addresses import HostResolver

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Iterator
    from ipaddress import IPv4Address, IPv6Address

    from truename.auth.network.addresses import ResolvedHost

__all__ = ["Connections"]

_CHUNK: Final = 64 * 1024
_MOST_UNREAD: Final = 256 * 1024
_LONGEST_HEAD: Final = 100 * 1024
MAX_IDLE: Final = 20
# Seconds after which the next address is tried beside the one before (RFC 8305).
_HEAD_START: Final = 0.25
# Less than the five seconds after which many servers close connections: none is to be taken as it is closed.
IDLE_SECONDS: Final = 4.0

_Origin = tuple[str, str, int]


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
        url, limits = request.url, request.extensions.get("timeout") or {}
        if url.scheme not in {"http", "https"}:
            message = f"{url.scheme!r} is not a supported URL scheme."
            raise httpx2.UnsupportedProtocol(message)
        origin = (url.scheme, url.raw_host.decode("ascii"), url.port or (443 if url.scheme == "https" else 80))
        connection = self._free(origin) or await self._opened(origin, limits.get("connect"))
        try:
            head = await connection.exchange(request, limits.get("read"))
        except BaseException:
            self._forget(connection)
            raise
        return httpx2.Response(
            head.status_code,
            headers=list(head.headers.raw_items()),
            stream=_Body(self, connection, limits.get("read")),
            extensions={"http_version": b"HTTP/" + head.http_version, "reason_phrase": head.reason},
        )

    def _free(self, origin: _Origin) -> _Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.origin == origin and connection.is_fit:
                return connection
            self._forget(connection)
        return None

    async def _opened(self, origin: _Origin, limit: float | None) -> _Connection:
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


class _Connection(asyncio.BufferedProtocol):
    """One connection, for one request at a time."""

    def __init__(self, origin: _Origin) -> None:
        self.origin = origin
        self._state = h11.Connection(h11.CLIENT, max_incomplete_event_size=_LONGEST_HEAD)
        self._since = time.monotonic()
        self._buffer = bytearray(_CHUNK)
        self._received = bytearray()
        self._arrived: asyncio.Future[None] | None = None
        self._has_ended = False
        self._failure: Exception | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: asyncio.Transport = cast("asyncio.Transport", transport)

    def get_buffer(self, sizehint: int) -> bytearray:  # noqa: ARG002 - as asyncio calls it
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._received += memoryview(self._buffer)[:nbytes]
        if len(self._received) > _MOST_UNREAD:
            self._transport.pause_reading()
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self._has_ended, self._failure = True, exc
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
        return not (self.is_stale or self._has_ended or self._received or _has_something(self._transport))

    async def exchange(self, request: httpx2.Request, limit: float | None) -> h11.Response:
        """Send a request whole and return the head of its response. Raises `httpx2.TransportError`."""
        with _named():
            head = h11.Request(method=request.method, target=request.url.raw_path, headers=request.headers.raw)
            parts = [
                self._state.send(head),
                self._state.send(h11.Data(data=request.content)) if request.content else None,
                self._state.send(h11.EndOfMessage()),
            ]
            # Not waited for: what a server does not take, it can refuse meanwhile.
            self._transport.write(b"".join(part for part in parts if part))
            while True:
                event = await self._event(limit)
                if isinstance(event, h11.Response):
                    return event
                if isinstance(event, h11.ConnectionClosed):
                    message = "Server disconnected without sending a response."
                    raise httpx2.RemoteProtocolError(message)

    async def more(self, limit: float | None) -> bytes | None:
        """Return more of the response's body, None at its end. Raises `httpx2.TransportError`."""
        with _named():
            event = await self._event(limit)
        return bytes(event.data) if isinstance(event, h11.Data) else None

    async def _event(self, limit: float | None) -> Any:
        while (event := self._state.next_event()) is h11.NEED_DATA:
            if not self._received and not self._has_ended:
                self._transport.resume_reading()
                self._arrived = asyncio.get_running_loop().create_future()
                with anyio.fail_after(limit):
                    await self._arrived
            if not self._received and self._failure is not None:
                raise self._failure
            chunk = bytes(self._received)
            self._received.clear()
            self._state.receive_data(chunk)
        return event

    def begun_anew(self) -> bool:
        """Tell whether there can be another request, after one that is over."""
        state = self._state
        if state.our_state is not h11.DONE or state.their_state is not h11.DONE or state.trailing_data[0]:
            return False
        state.start_next_cycle()
        self._since = time.monotonic()
        return True

    def close(self) -> None:
        """Close it, without waiting for the other side."""
        self._transport.abort()


class _Body(httpx2.AsyncByteStream):
    """The body of a response; closing it frees the connection."""

    def __init__(self, connections: Connections, connection: _Connection, limit: float | None) -> None:
        self._connections = connections
        self._connection: _Connection | None = connection
        self._limit = limit

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        more = None if self._connection is None else await self._connection.more(self._limit)
        if more is None:
            raise StopAsyncIteration
        return more

    async def aclose(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            self._connections.release(connection)


@contextmanager
def _named() -> Iterator[None]:
    """Raise what goes wrong under the names that httpx2 has for it."""
    try:
        yield
    except TimeoutError as error:
        raise httpx2.ReadTimeout(str(error)) from error
    except OSError as error:
        raise httpx2.ReadError(str(error)) from error
    except h11.RemoteProtocolError as error:
        raise httpx2.RemoteProtocolError(str(error)) from error
    except h11.LocalProtocolError as error:
        raise httpx2.LocalProtocolError(str(error)) from error


def _has_something(transport: asyncio.Transport) -> bool:
    """Tell whether a socket can be read, which the loop may not have seen yet: so does one that was closed."""
    if not hasattr(select, "poll"):
        return False
    found = select.poll()
    found.register(transport.get_extra_info("socket"), select.POLLIN)
    return bool(found.poll(0))

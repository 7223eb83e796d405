"""Ways to servers that go through httpx2: a proxy, and redirects to other hosts. Only who needs them imports this."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import httpx2

from truename.gateway.background import begin
from truename.gateway.http_connections import CONNECT, HttpFailure, HttpOrigin, HttpResponse, fields_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from truename.auth.network.addresses import ResolvedHost
    from truename.gateway.http_connections import Sender

__all__ = ["LibrarySender", "SenderTransport", "through_proxy"]

# What says how long a body is belongs to one connection.
_FRAMING: Final = frozenset({b"content-length", b"transfer-encoding"})
_NEVER_SENT: Final = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
    httpx2.UnsupportedProtocol,
)
_PORTS: Final = {"http": 80, "https": 443}


def through_proxy(proxy: str, resolver: ResolvedHost) -> LibrarySender:
    """Return the way through a proxy, which looks names up by itself."""
    return LibrarySender(Proxied(proxy, resolver))


class Proxied(httpx2.AsyncBaseTransport):
    """The way through a proxy: an address that is written down is judged here."""

    def __init__(self, proxy: str, resolver: ResolvedHost) -> None:
        self._inner = httpx2.AsyncHTTPTransport(proxy=proxy)
        self._resolver = resolver

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request."""
        self._resolver.check_written(request.url.host)
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()


class LibrarySender:
    """A transport of httpx2 as a `Sender`."""

    def __init__(self, transport: httpx2.AsyncBaseTransport) -> None:
        self._transport = transport

    async def send(self, verb: bytes, origin: HttpOrigin, target: bytes, fields: bytes, body: bytes) -> HttpResponse:
        """Send a request. See `Sender`."""
        pairs = [line.partition(b": ")[::2] for line in fields.split(b"\r\n") if line]
        host = f"[{origin.host}]" if ":" in origin.host else origin.host
        url = httpx2.URL(f"{origin.scheme}://{host}:{origin.port}").copy_with(raw_path=target)
        content = body if body or verb != b"GET" else None
        timeout = {"connect": CONNECT, "pool": CONNECT, "write": CONNECT, "read": None}
        request = httpx2.Request(verb.decode(), url, headers=pairs, content=content, extensions={"timeout": timeout})
        try:
            return _LibraryResponse(await self._transport.handle_async_request(request))
        except httpx2.TransportError as error:
            raise _failed(error) from error

    async def aclose(self) -> None:
        """Close the connections."""
        await self._transport.aclose()


def _failed(error: httpx2.TransportError) -> HttpFailure:
    return HttpFailure(type(error).__name__, str(error), was_sent=not isinstance(error, _NEVER_SENT))


class _LibraryResponse:
    def __init__(self, response: httpx2.Response) -> None:
        self.status = response.status_code
        self.reason = response.reason_phrase.encode("latin-1", "replace")
        self.headers = [(name.lower(), value) for name, value in response.headers.raw]
        self._response = response
        self._chunks = response.aiter_raw()

    def header(self, name: bytes) -> bytes:
        return next((value for key, value in self.headers if key == name), b"")

    def whole(self) -> bytes | None:
        return None

    async def chunk(self) -> bytes | None:
        try:
            async for chunk in self._chunks:
                return chunk
        except httpx2.TransportError as error:
            raise _failed(error) from error
        return None

    def close(self) -> None:
        begin(self._response.aclose())


class SenderTransport(httpx2.AsyncBaseTransport):
    """A `Sender` as a transport of httpx2."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request. Raises `httpx2.TransportError`."""
        url = request.url
        if url.scheme not in _PORTS:
            message = f"{url.scheme!r} is not a supported URL scheme."
            raise httpx2.UnsupportedProtocol(message)
        origin = HttpOrigin(url.scheme, url.raw_host.decode("ascii"), url.port or _PORTS[url.scheme])
        fields = [(name, value) for name, value in request.headers.raw if name.lower() not in _FRAMING]
        try:
            found = await self._sender.send(
                request.method.encode(), origin, url.raw_path, fields_of(fields), request.content
            )
        except HttpFailure as failure:
            raise _named(failure) from failure
        return httpx2.Response(
            found.status,
            headers=found.headers,
            stream=_Body(found),
            extensions={"http_version": b"HTTP/1.1", "reason_phrase": found.reason},
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._sender.aclose()


def _named(failure: HttpFailure) -> httpx2.TransportError:
    kind = getattr(httpx2, failure.name, httpx2.ReadError)
    found: httpx2.TransportError = kind(str(failure))
    return found


class _Body(httpx2.AsyncByteStream):
    """The body of a response, as httpx2 reads it."""

    def __init__(self, response: HttpResponse) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            while (chunk := await self._response.chunk()) is not None:
                yield chunk
        except HttpFailure as failure:
            raise _named(failure) from failure

    async def aclose(self) -> None:
        self._response.close()

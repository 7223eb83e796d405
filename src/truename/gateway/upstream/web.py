"""What all connections to servers over HTTP have in common: how they are reached, and which answers are none."""

from __future__ import annotations

import urllib.request
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import httpx2
from mcp.shared._httpx_utils import next_request_within_origin

from truename.auth.network.addresses import AddressRefused
from truename.auth.outbound.tokens import NoCredential
from truename.gateway.faults import printable
from truename.gateway.upstream.connections import Connections

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.auth.network.addresses import ResolvedHost

__all__ = [
    "ALLOW",
    "ASKED",
    "CONNECT",
    "FAILURES",
    "KEEPING",
    "MESSAGE",
    "NEVER_SENT",
    "SESSION_HEADER",
    "RedirectRefused",
    "failure",
    "headers_for",
    "misleading",
    "moved",
    "proxy_for",
    "reason",
    "transport_to",
    "unframed",
]

CONNECT: Final = 15.0
ALLOW: Final = "If it is meant, add its network to allow_addresses."
SESSION_HEADER: Final = "mcp-session-id"
# Extensions of requests and responses: the number of what is asked, and the message that a body holds.
ASKED: Final = "truename.asked"
MESSAGE: Final = "truename.message"
_FRAMING: Final = frozenset({b"transfer-encoding", b"content-length"})
NEVER_SENT: Final = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
    httpx2.UnsupportedProtocol,
)
# Redirects that keep method and body (RFC 9110 sections 15.4.8 and 15.4.9).
KEEPING: Final = frozenset({307, 308})


class RedirectRefused(Exception):
    """A request is led on to where it is not sent."""


# What can become of a request that is not answered.
FAILURES: Final = (httpx2.TransportError, AddressRefused, NoCredential, RedirectRefused)
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


def unframed(response: httpx2.Response) -> list[tuple[bytes, bytes]]:
    """Return the headers of a response, to the byte, without those that are about how its body came."""
    return [(name, value) for name, value in response.headers.raw if name.lower() not in _FRAMING]


def proxy_for(url: str) -> str | None:
    """Return the proxy that the environment says for an address; none leads to this machine itself."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if host in _LOOPBACK or urllib.request.proxy_bypass(host):
        return None
    return urllib.request.getproxies().get(parts.scheme)


def transport_to(url: str, resolver: ResolvedHost) -> httpx2.AsyncBaseTransport:
    """Return how a server is reached: straight, at addresses that are judged, or by this machine's proxy."""
    proxy = proxy_for(url)
    if proxy is None:
        return Connections(resolver)
    return _Proxied(httpx2.AsyncHTTPTransport(proxy=proxy), resolver)


class _Proxied(httpx2.AsyncBaseTransport):
    """The way through a proxy, which looks names up by itself: an address that is written down is judged here."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, resolver: ResolvedHost) -> None:
        self._inner = inner
        self._resolver = resolver

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self._resolver.check_written(request.url.host)
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        await self._inner.aclose()


def headers_for(configured: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of each request. A compressed answer could unfold to any size."""
    return {**configured, "accept-encoding": "identity"}


def misleading(response: httpx2.Response) -> tuple[str, str] | None:
    """Say what is wrong with a response that comes compressed, or leads elsewhere.

    Within its origin a redirect that keeps the request is followed; then it never ends here.
    """
    status = response.status_code
    if response.headers.get("content-encoding", "identity") != "identity":
        return "refused", "a compressed response, although none was requested"
    if response.has_redirect_location and next_request_within_origin(response) is None:
        place = printable(response.headers.get("location", ""), 200)
        return "redirected", f"HTTP {status}: redirect to {place}"
    if 300 <= status < 400 and not response.has_redirect_location:
        return "protocol", f"HTTP {status} instead of a response"
    return None


def moved(request: httpx2.Request, response: httpx2.Response) -> httpx2.URL | None:
    """Return where a request is to be sent instead; None if nowhere, or not within the server's own origin.

    >>> asked = httpx2.Request("POST", "https://a.example/mcp")
    >>> for place in ("/mcp/", "https://b.example/mcp", "https://me:word@a.example/mcp"):
    ...     print(moved(asked, httpx2.Response(307, headers={"location": place})))
    https://a.example/mcp/
    None
    None
    """
    # Other redirects make a GET of a POST, which loses the message.
    if not response.has_redirect_location or not (response.status_code in KEEPING or request.method == "GET"):
        return None
    try:
        there = request.url.join(response.headers["location"])
    except (httpx2.InvalidURL, ValueError):
        return None
    before, now = ((url.scheme, url.host, url.port) for url in (request.url, there))
    is_upgrade = before == ("http", there.host, None) and now == ("https", there.host, None)
    return there if (before == now or is_upgrade) and there.userinfo in {b"", request.url.userinfo} else None


def failure(error: Exception) -> tuple[str, str]:
    """Return which kind of fault an exception of the network is, and the reason in a few words."""
    if isinstance(error, AddressRefused):
        return "address", reason(error)
    if isinstance(error, RedirectRefused):
        return "redirected", printable(str(error), 300)
    if isinstance(error, NoCredential):
        return error.kind, printable(str(error), 200)
    return "unreachable" if isinstance(error, NEVER_SENT) else "lost", reason(error)


def reason(error: Exception) -> str:
    """Return an exception of the network in a few words."""
    if isinstance(error, AddressRefused):
        return printable(f"{error.host} {error.problem}", 200)
    said = printable(str(error), 200)
    return f"{type(error).__name__}: {said}" if said else type(error).__name__

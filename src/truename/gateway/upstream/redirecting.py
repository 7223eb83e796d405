"""Redirects of servers: to other hosts only where the operator listed them, and then as a stranger.

What is followed there says nothing of who asks: no token, no cookie, no session, none of the configured headers. What
comes back cannot set any either.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

import httpx2

from truename.auth.network.addresses import AddressRefused, host_of
from truename.gateway.upstream.library import LibrarySender, SenderTransport
from truename.gateway.upstream.web import RedirectRefused, sender_to
from truename.gateway.upstream_errors import printable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from truename.auth.network.addresses import ResolvedHost
    from truename.config import ServerConfig
    from truename.gateway.http_connections import Sender

__all__ = ["Redirecting", "followed"]

_MOST: Final = 5
# Redirects that keep method and body (RFC 9110, sections 15.4.8 and 15.4.9).
_KEEPING: Final = frozenset({307, 308})
_FOLLOWED: Final = frozenset({"GET", "POST"})
# What a request says of itself, and not of who sends it.
_PLAIN: Final = frozenset(
    {"accept", "accept-encoding", "content-type", "mcp-protocol-version", "mcp-method", "mcp-name"}
)
# What only the server itself may say to whoever it knows.
_OWN: Final = frozenset({"set-cookie", "mcp-session-id", "www-authenticate"})
_PORTS: Final = {"http": 80, "https": 443}


def transport_to(url: str, where: ResolvedHost) -> httpx2.AsyncBaseTransport:
    """Return how a host is reached that a server leads to."""
    return SenderTransport(sender_to(url, where))


def followed(own: Sender, server: ServerConfig, where: ResolvedHost) -> Sender:
    """Return a way to a server that goes where it leads, as far as its entry allows."""
    return LibrarySender(Redirecting(SenderTransport(own), server, where))


class Redirecting(httpx2.AsyncBaseTransport):
    """Sends requests by ``own``, and by connections of its own (``where``) to the hosts that may be led to.

    At most five redirects are followed for one request; only GET is sent again for those that may change the method
    (RFC 9110 section 15.4). Raises `RedirectRefused` for one that leads on from another host to one that is not listed.
    """

    def __init__(self, own: httpx2.AsyncBaseTransport, server: ServerConfig, where: ResolvedHost) -> None:
        self._own = own
        self._where = where
        self._listed = frozenset(server.allow_redirects)
        self._configured = frozenset(name.lower() for name in server.headers)
        self._others: dict[tuple[str, str, int], httpx2.AsyncBaseTransport] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request, and again where its answer leads."""
        response = await self._own.handle_async_request(request)
        is_away = False
        for _ in range(_MOST):
            if not is_away and (there := _moved(request, response)) is not None:
                await response.aclose()
                request = _again(request, there, request.headers)
                response = await self._own.handle_async_request(request)
            elif (there := self._other(request, response, is_away=is_away)) is not None:
                await response.aclose()
                is_away = True
                request = _again(request, there, self._stripped(request.headers))
                response = _stripped(await self._to(there).handle_async_request(request))
            else:
                return response
        if response.has_redirect_location:
            await response.aclose()
            message = f"more than {_MOST} redirects"
            raise RedirectRefused(message)
        return response

    def _other(self, request: httpx2.Request, response: httpx2.Response, *, is_away: bool) -> httpx2.URL | None:
        """Return where a request is to be sent instead, if that host may be led to."""
        if not response.has_redirect_location:
            return None
        keeps = response.status_code in _KEEPING or request.method == "GET"
        there = _joined(request.url, response.headers["location"])
        if keeps and request.method in _FOLLOWED and there is not None and self._may(request.url, there):
            return there
        if not is_away:
            return None
        # Whoever is led to may not lead to the server itself, whose answer it would seem to be.
        place = printable(response.headers["location"], 200)
        message = f"HTTP {response.status_code}: redirect of {request.url.host} to {place}"
        raise RedirectRefused(message)

    def _may(self, here: httpx2.URL, there: httpx2.URL) -> bool:
        try:
            scheme, host, port = host_of(str(there))
        except AddressRefused:
            return False
        # Two readers of one address: what one takes for the host is what the other connects to, or nobody goes there.
        if (there.scheme, there.raw_host.decode("ascii").strip("[]").rstrip("."), _port(there)) != (scheme, host, port):
            return False
        if scheme == "http" and (here.scheme == "https" or not _is_here(host)):
            return False
        shown = f"[{host}]" if ":" in host else host
        return bool({f"{shown}:{port}", shown if port == _PORTS[scheme] else None} & self._listed)

    def _stripped(self, headers: httpx2.Headers) -> dict[str, str]:
        return {name: value for name, value in headers.items() if _is_plain(name) and name not in self._configured}

    def _to(self, there: httpx2.URL) -> httpx2.AsyncBaseTransport:
        place = there.scheme, there.host, _port(there)
        if place not in self._others:
            self._others[place] = transport_to(str(there), self._where)
        return self._others[place]

    async def aclose(self) -> None:
        """Close what is below."""
        for one in (self._own, *self._others.values()):
            await one.aclose()


def _moved(request: httpx2.Request, response: httpx2.Response) -> httpx2.URL | None:
    """Return where a request is to be sent within the server's own origin, or with TLS on the same host."""
    if not response.has_redirect_location or not (response.status_code in _KEEPING or request.method == "GET"):
        return None
    if (there := _joined(request.url, response.headers["location"])) is None:
        return None
    before, now = ((url.scheme, url.host, url.port) for url in (request.url, there))
    is_upgrade = before == ("http", there.host, None) and now == ("https", there.host, None)
    return there if (before == now or is_upgrade) and there.userinfo in {b"", request.url.userinfo} else None


def _port(url: httpx2.URL) -> int:
    return url.port or _PORTS.get(url.scheme, 0)


def _is_plain(name: str) -> bool:
    # Arguments in headers (MCP 2026-07-28) say no more than the body does.
    return name in _PLAIN or name.startswith("mcp-param-")


def _is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _joined(here: httpx2.URL, location: str) -> httpx2.URL | None:
    try:
        return here.join(location)
    except (httpx2.InvalidURL, ValueError):
        return None


def _again(request: httpx2.Request, there: httpx2.URL, headers: httpx2.Headers | dict[str, str]) -> httpx2.Request:
    content = request.content if request.method == "POST" else None
    return httpx2.Request(request.method, there, headers=headers, content=content, extensions=request.extensions)


def _stripped(response: httpx2.Response) -> httpx2.Response:
    headers: Iterable[tuple[str, str]] = response.headers.multi_items()
    return httpx2.Response(
        response.status_code,
        headers=[(name, value) for name, value in headers if name.lower() not in _OWN],
        stream=response.stream,
        extensions=response.extensions,
    )

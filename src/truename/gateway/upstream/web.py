"""What all connections to servers over HTTP have in common: how they are reached, and which answers are none."""

from __future__ import annotations

import urllib.request
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit

import httpx2
import msgspec
from mcp.shared._httpx_utils import next_request_within_origin

from truename.auth.network.addresses import AddressRefused
from truename.auth.outbound.tokens import NoCredential
from truename.gateway.faults import printable
from truename.gateway.protocol.lines import lenient, repaired
from truename.gateway.upstream.connections import Connections

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.auth.network.addresses import ResolvedHost

__all__ = [
    "ALLOW",
    "ASKED",
    "CONNECT",
    "EMPTY",
    "FAILURES",
    "KEEPING",
    "MESSAGE",
    "NEVER_SENT",
    "SESSION_HEADER",
    "STATUS",
    "RedirectRefused",
    "WholeBody",
    "failure",
    "headers_for",
    "judged",
    "misleading",
    "moved",
    "object_in",
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
# The status of a response in whose place a fault answers.
STATUS: Final = "truename.status"
# These the SDK understands itself: an unknown session or method, a method that is not served.
_MEANINGFUL: Final = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED})
EMPTY: Final = frozenset({HTTPStatus.ACCEPTED, HTTPStatus.NO_CONTENT, HTTPStatus.RESET_CONTENT})
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


class WholeBody(NamedTuple):
    """The whole body of a response, and the message in it; empty where it holds none."""

    body: bytes
    message: dict[str, Any]


def judged(
    body: bytes, status: int, reason: str, kind: str, asked: str | int | None, *, has_session: bool
) -> WholeBody | tuple[str, str]:
    """Return a body that says what the server means, or which kind of fault it is, and why.

    ``asked`` is the id of the request; None for what is not answered.
    """
    if b"\\ud" in body or b"\\uD" in body:
        body = repaired(body) or body
    message = object_in(body) or {}
    # Only who knows the session answers this very request.
    if status == HTTPStatus.NOT_FOUND and has_session and (asked is None or message.get("id") != asked):
        return "forgotten", ""
    if status >= 400 and status not in _MEANINGFUL and not (kind == "application/json" and "jsonrpc" in message):
        return "refused", f"HTTP {status} {reason}".strip()
    if asked is not None and 200 <= status < 300 and (wrong := _no_answer(message, kind, asked)):
        return "protocol", wrong
    return WholeBody(body, message)


def _no_answer(message: Mapping[str, Any], kind: str, asked: str | int) -> str | None:
    """Say why a whole body is no answer to this request."""
    if kind != "application/json":
        return f"content of type {printable(kind, 80) or 'nothing'}"
    if message.get("jsonrpc") != "2.0":
        return "a body that is not a JSON-RPC object"
    if isinstance(message.get("error"), dict) and message.get("id") in {asked, None}:
        return None
    if message.get("id") != asked:
        return "the response to another request"
    return None if isinstance(message.get("result"), dict) else "a result that is not an object"


def object_in(text: bytes) -> dict[str, Any] | None:
    """Return the JSON object that a text is; None for any other text."""
    try:
        content = msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        content = lenient(text)
    return content if isinstance(content, dict) else None

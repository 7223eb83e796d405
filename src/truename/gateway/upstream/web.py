"""What all connections to servers over HTTP have in common: how they are reached, and which answers are none."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from truename.auth.network.addresses import AddressRefused
from truename.auth.outbound.refused import NoCredential
from truename.gateway.http_connections import Connections, HttpFailure, HttpOrigin, HttpResponse, Sender
from truename.gateway.protocol.envelopes import ABSENT, Envelope, read_envelope, read_object
from truename.gateway.protocol.errors import MCPError
from truename.gateway.protocol.specification import INTERNAL_ERROR, METHOD_NOT_FOUND
from truename.gateway.upstream.addresses import REDIRECTS, ServerUrl, moved
from truename.gateway.upstream.transport import TransportError
from truename.gateway.upstream_errors import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.auth.network.addresses import ResolvedHost
    from truename.auth.outbound.tokens import ServerCredential

__all__ = [
    "EMPTY",
    "FAILURES",
    "Bearing",
    "NoMessage",
    "RedirectRefused",
    "answer_in",
    "failure",
    "headers_for",
    "media_type",
    "misleading",
    "proxy_for",
    "reason",
    "sender_to",
]

# These mean something of their own: an unknown session or method, a method that is not served.
_MEANINGFUL: Final = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED})
EMPTY: Final = frozenset({HTTPStatus.ACCEPTED, HTTPStatus.NO_CONTENT, HTTPStatus.RESET_CONTENT})
_KINDS: Final = frozenset({b"application/json", b"text/event-stream"})
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


class RedirectRefused(Exception):
    """A request is led on to where it is not sent."""


class NoMessage(MCPError):
    """What a response means that has no message: its status says it."""


# What can become of a request that is not answered.
FAILURES: Final = (HttpFailure, AddressRefused, NoCredential, RedirectRefused)


def proxy_for(url: str) -> str | None:
    """Return the proxy that the environment says for an address; none leads to this machine itself."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if host in _LOOPBACK:
        return None
    import urllib.request  # noqa: PLC0415 - costs 10 ms with http.client, and no server on this machine has a proxy

    if urllib.request.proxy_bypass(host):
        return None
    return urllib.request.getproxies().get(parts.scheme)


def sender_to(url: str, resolver: ResolvedHost) -> Sender:
    """Return how a server is reached: straight, at addresses that are judged, or by this machine's proxy."""
    proxy = proxy_for(url)
    if proxy is None:
        return Connections(resolver)
    from truename.gateway.upstream.library import through_proxy  # noqa: PLC0415 - only for who has a proxy

    return through_proxy(proxy, resolver)


class Bearing:
    """Adds the gateway's own access token to each request; where the server refuses it, asks for another, once.

    No server is shown what a client of the gateway showed. A request that is answered with 401 was not run, so it can
    be sent again. Raises `NoCredential`.
    """

    def __init__(self, inner: Sender, credential: ServerCredential) -> None:
        self._inner = inner
        self._credential = credential

    async def send(self, verb: bytes, origin: HttpOrigin, target: bytes, fields: bytes, body: bytes) -> HttpResponse:
        """Send one request. See `Sender`."""
        token = await self._credential.token()
        response = await self._inner.send(verb, origin, target, _borne(fields, token), body)
        if response.status != HTTPStatus.UNAUTHORIZED:
            return response
        self._credential.refused(token)
        response.close()
        token = await self._credential.token()
        return await self._inner.send(verb, origin, target, _borne(fields, token), body)

    async def aclose(self) -> None:
        """Close what is below."""
        await self._inner.aclose()


def _borne(fields: bytes, token: str) -> bytes:
    kept = [line for line in fields.splitlines(keepends=True) if not line.lower().startswith(b"authorization:")]
    return b"".join(kept) + b"authorization: Bearer %b\r\n" % token.encode("ascii")


def headers_for(configured: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of each request. A compressed answer could unfold to any size."""
    return {**configured, "accept-encoding": "identity"}


def media_type(response: HttpResponse) -> bytes:
    """Return what kind of content a response says that it has."""
    kind = response.header(b"content-type")
    return kind if kind in _KINDS else kind.partition(b";")[0].strip().lower()


def misleading(response: HttpResponse, url: ServerUrl, verb: str) -> ServerUrl | TransportError | None:
    """Return where a response leads within its origin, or what is wrong with one that leads elsewhere.

    A compressed response is wrong too; most responses are neither.
    """
    status = response.status
    if (encoding := response.header(b"content-encoding")) and encoding.lower() != b"identity":
        return TransportError("refused", "a compressed response, although none was requested")
    if not 300 <= status < 400:
        return None
    place = response.header(b"location").decode("latin-1")
    if status not in REDIRECTS or not place:
        return TransportError("protocol", f"HTTP {status} instead of a response")
    there = moved(url, verb, status, place)
    return there or TransportError("redirected", f"HTTP {status}: redirect to {printable(place, 200)}")


def failure(error: Exception) -> TransportError:
    """Return the fault that an exception of the network is, with the reason in a few words."""
    if isinstance(error, AddressRefused):
        return TransportError("address", reason(error))
    if isinstance(error, RedirectRefused):
        return TransportError("redirected", printable(str(error), 300))
    if isinstance(error, NoCredential):
        return TransportError(error.kind, printable(str(error), 200))
    was_sent = not isinstance(error, HttpFailure) or error.was_sent
    return TransportError("lost" if was_sent else "unreachable", reason(error))


def reason(error: Exception) -> str:
    """Return an exception of the network in a few words."""
    if isinstance(error, AddressRefused):
        return printable(f"{error.host} {error.problem}", 200)
    name = error.name if isinstance(error, HttpFailure) else type(error).__name__
    said = printable(str(error), 200)
    return f"{name}: {said}" if said else name


def answer_in(
    body: bytes, status: int, phrase: bytes, kind: bytes, number: int | str, *, has_session: bool
) -> Envelope:
    """Return the response that a whole body is. Raises `TransportError`, `MCPError` and `NoMessage`."""
    found = read_envelope(body) if body else None
    is_own = found is not None and found.is_response and found.id == number
    # Only who knows the session answers this very request.
    if status == HTTPStatus.NOT_FOUND and has_session and not is_own:
        raise TransportError("forgotten")
    is_ok = 200 <= status < 300
    if found is None or not found.is_response or kind != b"application/json":
        raise _no_answer(body, status, phrase, kind, number)
    if found.id != number and (found.result is not ABSENT or found.id is not None):
        if is_ok or found.error is not ABSENT:
            raise TransportError("protocol", "the response to another request")
        raise _meant(status)
    if is_ok or found.error is not ABSENT:
        return found
    raise _meant(status)


def _no_answer(body: bytes, status: int, phrase: bytes, kind: bytes, number: int | str) -> Exception:
    """Say what a body is that is no response."""
    content: Mapping[str, Any] = read_object(body) or {}
    is_message = kind == b"application/json" and "jsonrpc" in content
    if status >= 400 and status not in _MEANINGFUL and not is_message:
        return TransportError("refused", f"HTTP {status} {phrase.decode('latin-1')}".strip())
    if is_message and isinstance(content.get("error"), dict):
        return TransportError("protocol", "a malformed error")
    if not 200 <= status < 300:
        return _meant(status)
    if kind != b"application/json":
        return TransportError("protocol", f"content of type {printable(kind.decode('latin-1'), 80) or 'nothing'}")
    if content.get("jsonrpc") != "2.0":
        return TransportError("protocol", "a body that is not a JSON-RPC object")
    is_own = content.get("id") == number
    return TransportError("protocol", "a result that is not an object" if is_own else "the response to another request")


def _meant(status: int) -> NoMessage:
    if status == HTTPStatus.NOT_FOUND:
        return NoMessage(METHOD_NOT_FOUND, "Not Found")
    return NoMessage(INTERNAL_ERROR, "Server returned an error response")

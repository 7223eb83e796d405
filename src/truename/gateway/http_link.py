"""An upstream server over streamable HTTP, such that one broken exchange never takes another with it.

Inside the SDK an exception of one request ends the task group that all requests of the connection share. So this
transport never lets one out: whatever goes wrong becomes a JSON-RPC error that answers that one request.
"""

from __future__ import annotations

import json
import os
import urllib.request
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import next_request_within_origin

from truename.gateway.faults import printable
from truename.gateway.lines import repaired
from truename.gateway.link import Link
from truename.gateway.origins import Origins
from truename.gateway.sdk import transport_fault

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from truename.config import ServerConfig

__all__ = ["open_http"]

_CONNECT: Final = 15.0
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
# These the SDK understands itself: an unknown session or method, a method that is not served.
_MEANINGFUL: Final = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED})


_EMPTY: Final = frozenset({HTTPStatus.ACCEPTED, HTTPStatus.NO_CONTENT, HTTPStatus.RESET_CONTENT})
_FRAMING: Final = frozenset({"transfer-encoding", "content-length"})
_NEVER_SENT: Final = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
    httpx2.UnsupportedProtocol,
)


@asynccontextmanager
async def open_http(server: ServerConfig, max_body: int, call_timeout: float) -> AsyncIterator[Link]:
    """Open a channel to the server's address; nothing is sent yet."""
    secret, url, origins = os.urandom(8).hex(), server.url or "", Origins()
    # Longer than a call may take: the SDK goes on reading an answer that nobody waits for any more.
    timeout = httpx2.Timeout(_CONNECT, read=call_timeout + 60)
    inner = httpx2.AsyncHTTPTransport(proxy=_proxy(url), limits=httpx2.Limits(max_keepalive_connections=20))
    async with (
        httpx2.AsyncClient(
            transport=_Contained(inner, secret, max_body, origins),
            timeout=timeout,
            # A compressed answer could unfold to any size.
            headers={**server.headers, "accept-encoding": "identity"},
        ) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=max_body) as streams,
    ):
        yield Link(streams=streams, secret=secret, origins=origins)


def _proxy(url: str) -> str | None:
    parts = urlsplit(url)
    host = parts.hostname or ""
    if host in _LOOPBACK or urllib.request.proxy_bypass(host):
        return None
    return urllib.request.getproxies().get(parts.scheme)


class _TooLarge(Exception):
    pass


class _Contained(httpx2.AsyncBaseTransport):
    """Turns failures of the network, of HTTP, and bodies beyond the limit into JSON-RPC errors."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, secret: str, max_body: int, origins: Origins) -> None:
        self._origins = origins
        self._inner = inner
        self._secret = secret
        self._max_body = max_body

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            response = await self._inner.handle_async_request(request)
        except _NEVER_SENT as error:
            return self._fault("unreachable", _reason(error))
        except httpx2.TransportError as error:
            return self._fault("lost", _reason(error))
        if request.method != "POST":
            return _streamed(response)
        asked = _request_id(request)
        if asked is not None and (fault := _unanswered(response)) is not None:
            await response.aclose()
            return self._fault(*fault)
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == "text/event-stream" and response.is_success:
            return _streamed(response, None if asked is None else self._origins.watch(asked))
        return await self._whole(response, kind, asked)

    async def _whole(self, response: httpx2.Response, kind: str, asked: str | int | None) -> httpx2.Response:
        """Read the body here, where its end or its size can still become an answer."""
        try:
            body = await self._body(response)
        except _TooLarge:
            return self._fault("too_large", f"more than {self._max_body:,} bytes")
        except httpx2.TransportError as error:
            return self._fault("lost", _reason(error))
        finally:
            await response.aclose()
        if b"\\ud" in body:
            body = repaired(body) or body
        status = response.status_code
        if status >= 400 and status not in _MEANINGFUL and not (kind == "application/json" and _is_rpc(body)):
            return self._fault("refused", f"HTTP {status} {response.reason_phrase}".strip())
        if asked is not None and response.is_success and (wrong := _no_answer(body, kind, asked)):
            return self._fault("protocol", wrong)
        headers = [(name, value) for name, value in response.headers.multi_items() if name not in _FRAMING]
        return httpx2.Response(status, headers=headers, content=body, extensions=response.extensions)

    async def _body(self, response: httpx2.Response) -> bytes:
        body = bytearray()
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) > self._max_body:
                raise _TooLarge
        return bytes(body)

    def _fault(self, kind: str, detail: str) -> httpx2.Response:
        error = {"code": -32000, "message": detail, "data": transport_fault(self._secret, kind, detail)}
        return httpx2.Response(HTTPStatus.BAD_GATEWAY, json={"jsonrpc": "2.0", "id": None, "error": error})

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Quiet(httpx2.AsyncByteStream):
    """A stream that just ends when the connection breaks; the SDK then answers the one request that it carried."""

    def __init__(self, response: httpx2.Response, watch: Callable[[bytes], None] | None) -> None:
        self._response = response
        self._watch = watch

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._response.aiter_raw():
                if self._watch is not None:
                    self._watch(chunk)
                yield chunk
        except httpx2.TransportError:
            return

    async def aclose(self) -> None:
        await self._response.aclose()


def _streamed(response: httpx2.Response, watch: Callable[[bytes], None] | None = None) -> httpx2.Response:
    return httpx2.Response(
        response.status_code,
        headers=response.headers,
        stream=_Quiet(response, watch),
        extensions=response.extensions,
    )


def _is_rpc(body: bytes) -> bool:
    return "jsonrpc" in (_object(body) or {})


def _request_id(request: httpx2.Request) -> str | int | None:
    """Return the id of the request that is sent; None for notifications and answers, which are not answered."""
    message = _object(request.content)
    return message["id"] if message and "id" in message and "method" in message else None


def _unanswered(response: httpx2.Response) -> tuple[str, str] | None:
    """Say what is wrong with a response whose head shows that it answers nothing."""
    status = response.status_code
    if response.headers.get("content-encoding", "identity") != "identity":
        return "refused", "a compressed answer that was not asked for"
    if status in _EMPTY:
        return "protocol", f"HTTP {status} instead of an answer"
    # Within its origin the SDK follows a redirect that keeps the request; then it never ends here.
    if response.has_redirect_location and next_request_within_origin(response) is None:
        place = printable(response.headers.get("location", ""), 200)
        return "redirected", f"HTTP {status}: redirect to {place}"
    if 300 <= status < 400 and not response.has_redirect_location:
        return "protocol", f"HTTP {status} instead of an answer"
    return None


def _no_answer(body: bytes, kind: str, asked: str | int) -> str | None:
    """Say why a whole body is no answer to this request."""
    if kind != "application/json":
        return f"content of type {printable(kind, 80) or 'nothing'}"
    message = _object(body)
    if message is None or message.get("jsonrpc") != "2.0":
        return "a body that is no JSON-RPC object"
    if isinstance(message.get("error"), dict):
        return None
    if message.get("id") != asked:
        return "the answer to another request"
    return None if isinstance(message.get("result"), dict) else "a result that is no object"


def _object(text: bytes) -> dict[str, Any] | None:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def _reason(error: Exception) -> str:
    said = printable(str(error), 200)
    return f"{type(error).__name__}: {said}" if said else type(error).__name__

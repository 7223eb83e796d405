"""Requests to a server through a library client: for proxies, redirects and credentials that are asked for.

Whatever goes wrong becomes a JSON-RPC error that answers that one request.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import httpx2

from truename.gateway.protocol.marking import transport_fault
from truename.gateway.upstream.connections import Connections
from truename.gateway.upstream.web import (
    ASKED,
    EMPTY,
    FAILURES,
    MESSAGE,
    SESSION_HEADER,
    STATUS,
    WholeBody,
    failure,
    judged,
    misleading,
    moved,
    object_in,
    reason,
    unframed,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from truename.gateway.questions.origins import RequestOrigins


__all__ = ["Contained"]

_MOST_MOVES: Final = 5


class _TooLarge(Exception):
    pass


class Contained(httpx2.AsyncBaseTransport):
    """Turns failures of the network, of HTTP, and bodies beyond the limit into JSON-RPC errors."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, secret: str, max_body: int, origins: RequestOrigins) -> None:
        self._origins = origins
        self._inner = inner
        self._secret = secret
        self._max_body = max_body
        # The connections themselves, where nothing has to be added to requests.
        self.connections = inner if isinstance(inner, Connections) else None

    def watch(self, number: str | int) -> Callable[[bytes], None]:
        """Return what has to see the stream of a request's response."""
        return self._origins.watch(number)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request and return what answers it, in any case."""
        try:
            response = await self._sent(request)
        except FAILURES as error:
            return self._fault(*failure(error))
        asked = _request_id(request)
        if request.method != "POST":
            return _streamed(response, None if asked is None else self._origins.watch(asked))
        if asked is not None and (fault := _unanswered(response)) is not None:
            await response.aclose()
            return self._fault(*fault)
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == "text/event-stream" and response.is_success:
            return _streamed(response, None if asked is None else self._origins.watch(asked))
        return await self._whole(response, kind, asked, request.headers.get(SESSION_HEADER))

    async def _whole(
        self, response: httpx2.Response, kind: str, asked: str | int | None, session: str | None
    ) -> httpx2.Response:
        """Read the body here, where its end or its size can still become an answer."""
        try:
            body = await self._body(response)
        except _TooLarge:
            return self._fault("too_large", f"more than {self._max_body:,} bytes")
        except httpx2.TransportError as error:
            return self._fault("lost", reason(error))
        finally:
            await response.aclose()
        status = response.status_code
        found = judged(body, status, response.reason_phrase, kind, asked, has_session=session is not None)
        if not isinstance(found, WholeBody):
            return self._fault(*found, status=status)
        told = {**response.extensions, MESSAGE: found.message}
        return httpx2.Response(status, headers=unframed(response), content=found.body, extensions=told)

    async def _sent(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request, to another place of its origin if the server says so."""
        for _ in range(_MOST_MOVES):
            response = await self._inner.handle_async_request(request)
            if (there := moved(request, response)) is None:
                return response
            await response.aclose()
            content = request.content if request.method == "POST" else None
            request = httpx2.Request(
                request.method, there, headers=request.headers, content=content, extensions=request.extensions
            )
        return await self._inner.handle_async_request(request)

    async def _body(self, response: httpx2.Response) -> bytes:
        body = bytearray()
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) > self._max_body:
                raise _TooLarge
        return bytes(body)

    def _fault(self, kind: str, detail: str, *, status: int = HTTPStatus.BAD_GATEWAY) -> httpx2.Response:
        error = {"code": -32000, "message": detail, "data": transport_fault(self._secret, kind, detail)}
        message = {"jsonrpc": "2.0", "id": None, "error": error}
        return httpx2.Response(HTTPStatus.BAD_GATEWAY, json=message, extensions={MESSAGE: message, STATUS: status})

    async def aclose(self) -> None:
        """Close the connections."""
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


def _request_id(request: httpx2.Request) -> str | int | None:
    """Return the id of the request that is sent; None for notifications and answers, which are not answered."""
    if (asked := request.extensions.get(ASKED)) is not None:
        return asked  # type: ignore[no-any-return]
    message = object_in(request.content) if request.method == "POST" else None
    return message["id"] if message and "id" in message and "method" in message else None


def _unanswered(response: httpx2.Response) -> tuple[str, str] | None:
    """Say what is wrong with a response whose head shows that it answers nothing."""
    if response.status_code in EMPTY and response.headers.get("content-encoding", "identity") == "identity":
        return "protocol", f"HTTP {response.status_code} instead of a response"
    return misleading(response)

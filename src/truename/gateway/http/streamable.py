"""Streamable HTTP: one request of a client, in the version that its header names.

Source: MCP 2025-11-25 and 2026-07-28, basic/transports; SEP-2243 (headers that repeat the body).
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from starlette.requests import HTTPConnection

from truename.gateway.cancellation import Cancellation
from truename.gateway.http.disconnecting import Disconnecting
from truename.gateway.http.response_stream import PING_SECONDS, ResponseStream, send_json, send_nothing
from truename.gateway.http.sessions import accepts
from truename.gateway.mcp.connection import Channel, ClientConnection
from truename.gateway.mcp.messages import encode, error, failed, parse, response
from truename.gateway.mcp.requests import Request, progress_token
from truename.gateway.mcp.stateless import envelope_of, unsupported_version
from truename.gateway.protocol.callers import headers_of
from truename.gateway.protocol.entries import has_more_entries, too_many_entries
from truename.gateway.protocol.errors import MCPError
from truename.gateway.protocol.lines import id_at_ends
from truename.gateway.protocol.specification import (
    HANDSHAKE_VERSIONS,
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_HEADER,
    METHOD_NOT_FOUND,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    NAME_HEADER,
    PARSE_ERROR,
    UNSUPPORTED_PROTOCOL_VERSION,
    VERSION_HEADER,
)

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from truename.gateway.http.session_forwarding import SessionForwarder
    from truename.gateway.http.session_owners import SessionOwners
    from truename.gateway.http.sessions import Answer, Sessions
    from truename.gateway.mcp.messages import Kind, Message
    from truename.gateway.mcp.stateless import RequestEnvelope
    from truename.policy.principal import Principal

__all__ = ["StreamableHttp"]

_VERSION: Final = VERSION_HEADER.encode()
_ROUTING: Final = (VERSION_HEADER, METHOD_HEADER, NAME_HEADER)
# The HTTP status of a response with an error (MCP 2026-07-28, basic/transports); that of the others is 200.
_STATUS: Final = {
    **dict.fromkeys((PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS, HEADER_MISMATCH), HTTPStatus.BAD_REQUEST),
    **dict.fromkeys((MISSING_REQUIRED_CLIENT_CAPABILITY, UNSUPPORTED_PROTOCOL_VERSION), HTTPStatus.BAD_REQUEST),
    METHOD_NOT_FOUND: HTTPStatus.NOT_FOUND,
}
_TOO_LARGE: Final = b"Request body too large"
_NO_JSON: Final = b"Invalid Content-Type header"
_NOT_ACCEPTABLE: Final = "Not Acceptable: Client must accept both application/json and text/event-stream"
_ONE_MESSAGE: Final = "Body must be a single JSON-RPC request or notification object"
_ALLOWED: Final = (b"allow", b"POST")
_MEDIA_TYPE: Final = b"application/json"
_TEXT: Final = (b"content-type", b"text/plain; charset=utf-8")
_OF_MCP: Final = b"mcp-"


class StreamableHttp:
    """Answers the requests to one address.

    ``answer`` answers requests of MCP. A body may have ``max_body`` bytes, and ``max_entries`` keys and items.
    ``forwarder`` passes requests on to replicas; None for a gateway that has none.
    """

    def __init__(
        self,
        answer: Answer,
        sessions: Sessions,
        *,
        max_body: int,
        max_entries: int,
        forwarder: SessionForwarder | None = None,
    ) -> None:
        self._answer = answer
        self.sessions = sessions
        self._forwarder = forwarder
        self._max_body = max_body
        self._max_entries = max_entries

    def share(self, owners: SessionOwners, forwarder: SessionForwarder) -> None:
        """Share the sessions with replicas from now on."""
        self.sessions.share(owners)
        self._forwarder = forwarder

    async def handle(self, principal: Principal, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""
        body = await self._body(scope, receive, send)
        if body is None:
            return
        if await has_more_entries(body, self._max_entries):
            refused = error(id_at_ends(body), INVALID_REQUEST, too_many_entries(self._max_entries))
            await send_json(send, encode(refused), [], HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            return
        headers, method = headers_of(scope), scope["method"]
        said = headers.get(_VERSION)
        version = None if said is None else said.decode("latin-1")
        kind = headers.get(b"content-type", b"").lower().partition(b";")[0].strip()
        if method == "POST" and kind != _MEDIA_TYPE:
            await _send_text(send, HTTPStatus.BAD_REQUEST, _NO_JSON)
        elif version is not None and version not in HANDSHAKE_VERSIONS:
            if (stateless := await self._stateless(version, body, scope, send)) is not None:
                await self._exchange(*stateless, receive, send)
        elif self._forwarder is None or not await self._forwarder.passed_on(
            self.sessions, principal, scope, receive, send, body=body
        ):
            await self._of_session(principal, body, scope, receive, send)

    async def _of_session(self, principal: Principal, body: bytes, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request of the handshake versions."""
        method = scope["method"]
        if method == "POST":
            if (posted := await _posted(body, scope, send)) is not None:
                await self.sessions.post(principal, *posted, HTTPConnection(scope), send)
        elif method == "GET":
            await self.sessions.get(principal, scope, receive, send)
        elif method == "DELETE":
            await self.sessions.delete(principal, scope, send)
        else:
            await self.sessions.other(principal, scope, send)

    async def _body(self, scope: Scope, receive: Receive, send: Send) -> bytes | None:
        """Return the whole body; None for one that is too large, which is answered, or whose client has gone."""
        declared = headers_of(scope).get(b"content-length")
        parts, size = list[bytes](), 0
        is_too_large = declared is not None and declared.isdigit() and int(declared[:20]) > self._max_body
        while not is_too_large:
            message = await receive()
            if message["type"] != "http.request":
                return None
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            is_too_large = size > self._max_body
            if not message.get("more_body", False) and not is_too_large:
                return parts[0] if len(parts) == 1 else b"".join(parts)
        await _send_text(send, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, _TOO_LARGE)
        return None

    async def _stateless(
        self, version: str, body: bytes, scope: Scope, send: Send
    ) -> tuple[RequestEnvelope, dict[str, Any], HTTPConnection] | None:
        """Return a request of 2026-07-28, which needs no session; None for anything else, which is answered."""
        if scope["method"] != "POST":
            await send_nothing(send, HTTPStatus.METHOD_NOT_ALLOWED, [_ALLOWED])
            return None
        if not all(accepts(scope)):
            await send_nothing(send, HTTPStatus.NOT_ACCEPTABLE, [])
            return None
        message = await _one_message(body, send)
        if message is None:
            return None
        if "id" not in message:
            await _acknowledge(version, send)
            return None
        http = HTTPConnection(scope)
        try:
            return self._envelope(message, http), message, http
        except MCPError as problem:
            await _reject(problem, message["id"], send)
            return None

    def _envelope(self, message: dict[str, Any], http: HTTPConnection) -> RequestEnvelope:
        """Return what a request says of itself. Raises `MCPError`, also where its headers contradict its body."""
        own = [pair for pair in http.scope["headers"] if pair[0].startswith(_OF_MCP)]
        pairs = [(key.decode("latin-1"), value.decode("latin-1")) for key, value in own]
        headers = dict(pairs)
        if len(headers) != len(pairs):
            names = [name for name, _ in pairs if name in _ROUTING]
            if twice := next((name for name in names if names.count(name) > 1), None):
                raise MCPError(HEADER_MISMATCH, f"The header {twice} stands more than once. Send it once.")
        method, params = message["method"], message.get("params") or {}
        return envelope_of(method, params, headers)

    async def _exchange(
        self, envelope: RequestEnvelope, message: dict[str, Any], http: HTTPConnection, receive: Receive, send: Send
    ) -> None:
        """Answer one request; the client cancels it by disconnecting."""
        id, params = message["id"], message.get("params")
        connection = ClientConnection.of_request(envelope.version)
        stream = ResponseStream(send, [])
        channel = Channel(stream.write, progress_token=progress_token(params))
        request = Request(message["method"], params, id, connection, channel, http)
        stream.stream_after(PING_SECONDS)
        try:
            with Cancellation() as cancellation:
                async with Disconnecting(http.scope, receive, cancellation):
                    try:
                        answer = response(id, await self._answer(request))
                    except Exception as problem:  # noqa: BLE001 - any failure is this request's alone
                        answer = failed(id, problem)
                    channel.close()
                    status = _STATUS.get(answer["error"]["code"], 200) if "error" in answer else 200
                    await stream.answer(answer, status)
        finally:
            channel.close()
            stream.close()
            await connection.close()


async def _posted(body: bytes, scope: Scope, send: Send) -> tuple[Kind, Message] | None:
    """Return a message of a session, and its kind; None for anything else, which is answered."""
    if not all(accepts(scope)):
        refused = error(None, INVALID_REQUEST, _NOT_ACCEPTABLE)
        await send_json(send, encode(refused), [], HTTPStatus.NOT_ACCEPTABLE)
        return None
    try:
        return parse(body)
    except MCPError as problem:
        refused = error(None, problem.code, problem.message)
        await send_json(send, encode(refused), [], HTTPStatus.BAD_REQUEST)
        return None


async def _one_message(body: bytes, send: Send) -> dict[str, Any] | None:
    """Return the request or notification in a body; None for anything else, which is answered."""
    try:
        kind, message = parse(body)
    except MCPError as problem:
        text = "Parse error" if problem.code == PARSE_ERROR else _ONE_MESSAGE
        await send_json(send, encode(error(None, problem.code, text)), [], HTTPStatus.BAD_REQUEST)
        return None
    if kind != "response":
        return message
    await send_json(send, encode(error(None, INVALID_REQUEST, _ONE_MESSAGE)), [], HTTPStatus.BAD_REQUEST)
    return None


async def _acknowledge(version: str, send: Send) -> None:
    """Accept a notification and drop it: a client of 2026-07-28 has none that would mean anything over HTTP."""
    if (refusal := unsupported_version(version)) is not None:
        await _reject(refusal, None, send)
        return
    await send_nothing(send, HTTPStatus.ACCEPTED, [])


async def _reject(rejection: MCPError, id: Any, send: Send) -> None:
    status = _STATUS.get(rejection.code, HTTPStatus.BAD_REQUEST)
    await send_json(send, encode(error(id, rejection.code, rejection.message, rejection.data)), [], status)


async def _send_text(send: Send, status: HTTPStatus, text: bytes) -> None:
    head = [_TEXT, (b"content-length", b"%d" % len(text))]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": text})

"""Pass requests of handshake sessions on to the replica that has the session, and answer those that others pass on.

A response goes on as it comes: each event, its end, and the end of either connection. A request that may have reached
the owner is not sent again, except GET and DELETE, which can be repeated (RFC 9110, section 9.2.2).
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from truename.errors import StoreError
from truename.gateway.cancellation import Cancellation
from truename.gateway.drain import count_on
from truename.gateway.http.disconnecting import ON_DISCONNECT, Disconnecting
from truename.gateway.http.response_stream import ABORT, send_json
from truename.gateway.http.session import SESSION_HEADER
from truename.gateway.mcp.messages import encode, error, is_id, parse
from truename.gateway.protocol.callers import header_of
from truename.gateway.protocol.errors import MCPError
from truename.gateway.protocol.specification import INTERNAL_ERROR, VERSION_HEADER
from truename.gateway.replicas.client import PeerFailure
from truename.gateway.replicas.liveness import EXPIRY

if TYPE_CHECKING:
    from collections.abc import Callable, MutableMapping

    from starlette.types import Receive, Scope, Send

    from truename.gateway.http.session_owners import SessionOwners
    from truename.gateway.http.sessions import Sessions
    from truename.gateway.replicas.liveness import Replica
    from truename.gateway.replicas.receiving import PeerReply, PeerRequest
    from truename.gateway.replicas.replicas import Replicas
    from truename.policy.principal import Principal

__all__ = ["KIND", "SessionForwarder", "forwarded"]

KIND: Final = "http"
"""The kind of requests between replicas that carry a client's request over HTTP."""

_REPLY: Final = "truename.peer-reply"
# Seconds for which a client waits while its session is taken over.
_PATIENCE: Final = 5.0
_PAUSE: Final = 0.05
# A replica whose heartbeat is late may have stopped: what is sent to it now could not be sent to another any more.
_LATE: Final = 0.9
_RESUMABLE: Final = b"2025-11-25"
_VERSION: Final = VERSION_HEADER.encode()
_CONNECTION: Final = frozenset(
    {
        *(b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"te", b"trailer", b"upgrade"),
        *(b"expect", b"content-length"),
    }
)
_REPEATABLE: Final = frozenset({"GET", "DELETE"})
_EVENTS: Final = b"text/event-stream"
_LOST: Final = (
    "The replica of the gateway that has this session did not answer the request to the end. Whether it took effect is "
    "unknown; check before you repeat it."
)
_REFUSED: Final = (
    "The replica of the gateway that has this session did not take the request; nothing was run. Repeat the request."
)
_UNREACHABLE: Final = (
    "The replica of the gateway that has this session cannot be reached; nothing was run. Repeat the request. If this "
    "goes on, set replica_address on each replica to an address that the others reach."
)
_UNKNOWN: Final = (
    "The state database does not say which replica of the gateway has this session; nothing was run. Repeat the "
    "request."
)


class SessionForwarder:
    """Passes on what is for other replicas. ``is_ending`` tells whether this process answers no more calls."""

    def __init__(self, replicas: Replicas, owners: SessionOwners, is_ending: Callable[[], bool]) -> None:
        self._replicas = replicas
        self._owners = owners
        self._is_ending = is_ending

    async def passed_on(
        self, sessions: Sessions, principal: Principal, scope: Scope, receive: Receive, send: Send, *, body: bytes
    ) -> bool:
        """Answer a request for a session that another replica has; return False for any other request."""
        exchange: _Exchange | None = None
        try:
            while (holder := await sessions.holder(principal, scope)) is not None:
                if (reply := scope.get(_REPLY)) is not None:
                    # Whoever sent it knows the owner no better: it asks the database now.
                    await reply.refuse("its session is another replica's")
                    return True
                exchange = exchange or _Exchange(self._replicas, scope, body)
                if await self._answered(exchange, holder, receive, send):
                    return True
            return self._is_ending() and await _handed_over(sessions, scope)
        except StoreError:
            await _refuse(send, body, _UNKNOWN)
            return True

    async def _answered(self, exchange: _Exchange, holder: Replica, receive: Receive, send: Send) -> bool:
        """Have a replica answer; return False if it did nothing with the request, and another one may have to."""
        registry = self._replicas.registry
        if registry.observed.silence(holder.id) > _LATE and not exchange.is_late:
            await registry.settled(holder, EXPIRY)
            if registry.find(holder.id) != holder or registry.observed.is_expired(holder.id):
                return False
        try:
            await exchange.run(holder, receive, send)
        except PeerFailure as failure:
            if await self._may_try_again(failure, holder, exchange):
                return False
            await exchange.fail(send, failure)
        return True

    async def _may_try_again(self, failure: PeerFailure, holder: Replica, exchange: _Exchange) -> bool:
        """Return whether a request can be sent again, because nothing was run, to whoever has its session then."""
        is_harmless = failure.is_certain or exchange.scope["method"] in _REPEATABLE
        if exchange.has_begun or not is_harmless or exchange.is_late:
            return False
        registry = self._replicas.registry
        id = (header_of(exchange.scope, SESSION_HEADER) or b"").decode("latin-1")
        if failure.given_up is not None:
            await self._owners.take_over(id, holder, failure.given_up)
            return True
        self._owners.doubt(id)
        if failure.has_ended:
            registry.observed.note_end(holder.id)
            return True
        if failure.was_refused:
            await asyncio.sleep(_PAUSE)
            await registry.looked()
            return True
        before = registry.observed[holder.id]
        await registry.settled(holder, 2 * EXPIRY)
        now = registry.observed[holder.id]
        # One that lives on and cannot be reached keeps its sessions.
        return before is None or now is None or registry.observed.is_expired(holder.id)


async def _handed_over(sessions: Sessions, scope: Scope) -> bool:
    """Hand a session over to the replica that passed a request for it on; return False if it stays here."""
    reply = scope.get(_REPLY)
    fence = None if reply is None else sessions.give_up(scope)
    if reply is None or fence is None:
        return False
    await reply.refuse("its session is given up, because this gateway ends", given_up=fence)
    return True


class _Exchange:
    """One request that is passed on."""

    def __init__(self, replicas: Replicas, scope: Scope, body: bytes) -> None:
        self._replicas = replicas
        self.scope = scope
        self._body = body
        self._is_stream = False
        self._until = asyncio.get_running_loop().time() + _PATIENCE
        self.has_begun = False
        if scope["method"] == "POST":
            # This process ends when the answer has left, as the owner does.
            count_on(scope)

    @property
    def is_late(self) -> bool:
        """Whether its client has waited long enough."""
        return asyncio.get_running_loop().time() > self._until

    async def run(self, holder: Replica, receive: Receive, send: Send) -> None:
        """Send the request and pass the response on. Raises `PeerFailure`."""
        with Cancellation() as cancellation:
            async with Disconnecting(self.scope, receive, cancellation):
                response = await self._replicas.client.send(holder, KIND, _about(self.scope), self._body)
                try:
                    status, headers = _head_in(response.about)
                    self._is_stream = (b"content-type", _EVENTS) in headers
                    self.has_begun = True
                    await send({"type": "http.response.start", "status": status, "headers": headers})
                    async for piece in response.body():
                        await send({"type": "http.response.body", "body": piece, "more_body": True})
                    await send({"type": "http.response.body", "body": b""})
                finally:
                    response.close()

    async def fail(self, send: Send, failure: PeerFailure) -> None:
        """Answer a request that got no whole response."""
        text = _REFUSED if failure.was_refused else _UNREACHABLE if failure.is_certain else _LOST
        if not self.has_begun:
            await _refuse(send, self._body, text)
            return
        version = header_of(self.scope, _VERSION) or b""
        if self._is_stream and self.scope["method"] == "POST" and version < _RESUMABLE:
            # Its client would not come back for the answer.
            event = b"event: message\r\ndata: %s\r\n\r\n" % encode(error(_id_in(self._body), INTERNAL_ERROR, text))
            await send({"type": "http.response.body", "body": event})
        elif ABORT in self.scope:
            self.scope[ABORT]()


def _head_in(about: dict[str, Any]) -> tuple[int, list[tuple[bytes, bytes]]]:
    """Return status and headers of a response. Raises `PeerFailure` for one that another version writes otherwise."""
    try:
        headers = [(name.encode("latin-1"), text.encode("latin-1")) for name, text in about["headers"]]
        return int(about["status"]), headers
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        text = "the response is not one of a session"
        raise PeerFailure(text, is_certain=False) from problem


def _about(scope: Scope) -> dict[str, Any]:
    """Return what the owner has to know of a client's request besides its body."""
    return {
        "method": scope["method"],
        "path": scope["path"],
        "query": scope["query_string"].decode("latin-1"),
        "headers": [
            (name.decode("latin-1"), text.decode("latin-1"))
            for name, text in scope["headers"]
            if name not in _CONNECTION
        ],
        "client": scope.get("client"),
    }


async def _refuse(send: Send, body: bytes, text: str) -> None:
    """Answer with an error: to a request as its response, to anything else by the status."""
    id = _id_in(body)
    status = HTTPStatus.OK if id is not None else HTTPStatus.SERVICE_UNAVAILABLE
    await send_json(send, encode(error(id, INTERNAL_ERROR, text)), [], status)


def _id_in(body: bytes) -> Any:
    """Return the id of the request in a body; None if there is none."""
    try:
        kind, message = parse(body)
    except MCPError:
        return None
    return message["id"] if kind == "request" and is_id(message["id"]) else None


def forwarded(request: PeerRequest, reply: PeerReply) -> tuple[Scope, Receive, Send]:
    """Return a client's request that another replica passed on, as the ASGI application takes it.

    Nothing in it says who sends it: the sender is authenticated again, by the headers that they sent. Raises
    `ValueError` for a request that no replica would pass on.
    """
    try:
        about = request.about
        headers = [(name.encode("latin-1"), text.encode("latin-1")) for name, text in about["headers"]]
        client = about["client"]
        scope: MutableMapping[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "scheme": "http",
            "method": str(about["method"]),
            "path": str(about["path"]),
            "raw_path": str(about["path"]).encode(),
            "query_string": str(about["query"]).encode("latin-1"),
            "root_path": "",
            "headers": [*headers, (b"content-length", b"%d" % len(request.body))],
            "client": None if client is None else tuple(client),
            "server": request.scope.get("server"),
            _REPLY: reply,
        }
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        message = "the request of a replica is not one of a client"
        raise ValueError(message) from problem
    for key in (ABORT, ON_DISCONNECT):
        if key in request.scope:
            scope[key] = request.scope[key]
    return scope, _receiving(request), _sending(reply)


def _receiving(request: PeerRequest) -> Receive:
    pending = [request.body]

    async def receive() -> MutableMapping[str, Any]:
        if pending:
            return {"type": "http.request", "body": pending.pop(), "more_body": False}
        return await request.receive()

    return receive


def _sending(reply: PeerReply) -> Send:
    async def send(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            headers = [(name.decode("latin-1"), text.decode("latin-1")) for name, text in message.get("headers", ())]
            await reply.begin({"status": int(message["status"]), "headers": headers})
        elif message.get("more_body", False):
            await reply.write(message.get("body", b""))
        else:
            await reply.end(message.get("body", b""))

    return send

"""The handshake sessions of one endpoint over HTTP: begun, gone on with after a restart, and ended for good."""

from __future__ import annotations

import json
import logging
import secrets
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, cast

import anyio
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser, authorization_context
from mcp.server.connection import Connection
from mcp.server.runner import serve_connection
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp_types import INTERNAL_ERROR, INVALID_REQUEST
from starlette.responses import JSONResponse, Response

from truename.gateway.protocol.entries import has_more_entries, too_many_entries
from truename.gateway.protocol.lines import id_at_ends
from truename.gateway.protocol.resumable import ResumableTransport
from truename.gateway.protocol.session_ids import handshake_in

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable

    from anyio.abc import TaskGroup, TaskStatus
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from truename.gateway.protocol.replay import Replay
    from truename.gateway.protocol.session_ids import Handshake
    from truename.gateway.protocol.session_record import SessionRecord
    from truename.gateway.room import Share

__all__ = ["Sessions"]

log: Final = logging.getLogger("truename.gateway")

_HEADER: Final = MCP_SESSION_ID_HEADER.encode()
_BITS: Final = 40
_NOT_FOUND: Final = "Session not found"
_FULL: Final = "Too many open sessions"


class Sessions(StreamableHTTPSessionManager):
    """The SDK's sessions of one endpoint, bounded over all endpoints: ``beside`` are those of the others and these.

    ``record`` issues their ids, and tells which of those that are not served now go on: one that was issued for the
    same principal at the same ``address`` is opened anew, as it was agreed on. For every other id the answer is 404.
    ``replay`` keeps what was sent for clients that come back. A message of more than ``max_entries`` keys and items is
    refused before it is parsed. ``joined`` is told of a session that goes on, ``told`` when its client listens again.
    """

    beside: Iterable[Sessions] = ()
    address: str
    record: SessionRecord
    replay: Replay
    max_entries: int
    share: Share
    joined: Callable[[Connection], None]
    told: Callable[[Connection], Coroutine[Any, Any, None]]

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._resuming = anyio.Lock()

    @property
    def open_sessions(self) -> int:
        """How many sessions are open here."""
        return len(self._server_instances)

    def sessions_of(self, requestor: Any) -> int:
        """Return how many sessions of a principal are open here, whatever OAuth client began them."""
        who = _person(requestor)
        return sum(_person(owner) == who for owner in self._session_owners.values())

    def note_use(self) -> None:
        """Note which sessions have a request or a stream open now."""
        for id, transport in self._server_instances.items():
            if isinstance(transport, ResumableTransport) and transport.is_in_use:
                self.record.use(id)

    async def _handle_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        # What comes here was read before, in one piece unless its client went away: who would be answered? The SDK
        # reports an exception, and whoever begins requests and leaves could fill a log.
        read = await receive()
        if read["type"] != "http.request" or read.get("more_body", False):
            return
        if await has_more_entries(read["body"], self.max_entries):
            await _refused(read["body"], self.max_entries)(scope, receive, send)
            return
        await super()._handle_request(scope, _again(read, receive), send)

    async def _handle_stateful_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        user = scope.get("user")
        requestor = authorization_context(user) if isinstance(user, AuthenticatedUser) else None
        id = next((value.decode("latin-1") for key, value in scope["headers"] if key == _HEADER), None)
        if id is None:
            await self._begun(requestor, scope, receive, send)
        elif id in self._server_instances and requestor == self._session_owners.get(id):
            await self._gone_on(requestor, id, scope, receive, send)
        elif self.record.issued(self._place(requestor), id) is None:
            await _answer(_NOT_FOUND, HTTPStatus.NOT_FOUND)(scope, receive, send)
        elif (refusal := await self._resumed(id, requestor, ends=scope["method"] == "DELETE")) is not None:
            await refusal(scope, receive, send)
        else:
            await self._gone_on(requestor, id, scope, receive, send)

    async def _begun(self, requestor: Any, scope: Scope, receive: Receive, send: Send) -> None:
        read = await receive()
        async with self._session_creation_lock:
            transport: ResumableTransport | None = None
            if self._has_room(requestor):
                transport = self._transport(self.record.issue(self._place(requestor), handshake_in(read["body"])))
                self._register(transport, requestor)
        if transport is None:
            await _answer(_FULL, HTTPStatus.SERVICE_UNAVAILABLE, INTERNAL_ERROR)(scope, receive, send)
            return
        await self._serve_opening_request(transport, scope, _again(read, receive), send)
        if (id := str(transport.mcp_session_id)) in self._server_instances:
            self.record.use(id)

    async def _gone_on(self, requestor: Any, id: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Have a session that is open answer a request."""
        transport = self._server_instances[id]
        self.record.use(id)
        if scope["method"] == "DELETE":
            # Written down before it is said to be ended.
            await self.record.end(self._place(requestor), id)
        try:
            await transport.handle_request(scope, receive, send)
        finally:
            if transport.is_terminated:
                await self._discard_session(id, transport)
            else:
                self.record.use(id)

    async def _resumed(self, id: str, requestor: Any, *, ends: bool) -> ASGIApp | None:
        """Open a session anew that was issued here before, or end it; return what to answer if it is not open then."""
        place = self._place(requestor)
        async with self._resuming:
            if id in self._server_instances:
                # Of the requests that come first after a restart, another one was quicker.
                return None
            if (handshake := await self.record.good(place, id)) is None:
                return _answer(_NOT_FOUND, HTTPStatus.NOT_FOUND)
            if ends:
                await self.record.end(place, id)
                return Response()
            async with self._session_creation_lock:
                if not self._has_room(requestor):
                    return _answer(_FULL, HTTPStatus.SERVICE_UNAVAILABLE, INTERNAL_ERROR)
                transport = self._transport(id, is_resumed=True)
                await self._tasks.start(self._serve_resumed, transport, handshake)
                # Requests find it when it is ready for them.
                self._register(transport, requestor)
        return None

    async def _serve_resumed(
        self, transport: ResumableTransport, handshake: Handshake, *, task_status: TaskStatus[None]
    ) -> None:
        """Serve a session without its handshake; the SDK has a way for those only that begin."""
        id = str(transport.mcp_session_id)
        try:
            async with transport.connect() as (read, write):
                inline = frozenset({"initialize"})
                dispatcher: JSONRPCDispatcher[Any] = JSONRPCDispatcher(read, write, inline_methods=inline)
                # An answer to what the process before asked is for no question of this one.
                dispatcher._next_id = secrets.randbits(_BITS)  # noqa: SLF001 - it begins at 1 by itself
                connection = Connection.for_loop(dispatcher, session_id=id)
                connection.client_params, connection.protocol_version = handshake.client, handshake.version
                connection.initialized.set()
                self.joined(connection)
                transport.on_listening = partial(self._tell, connection)
                task_status.started()
                with transport.idle_scope or anyio.CancelScope():
                    await serve_connection(
                        self.app, dispatcher, connection=connection, lifespan_state=self._lifespan_state
                    )
        except Exception:
            log.exception("a resumed session failed")
        finally:
            await self._discard_session(id, transport)

    def _place(self, requestor: Any) -> str:
        """Return whose a session is, and where."""
        return json.dumps([requestor, self.address], sort_keys=True)

    def _tell(self, connection: Connection) -> None:
        self._tasks.start_soon(self.told, connection)

    @property
    def _tasks(self) -> TaskGroup:
        # There is one while requests are answered, which the SDK does not say in types.
        tasks: Any = self._task_group
        return cast("TaskGroup", tasks)

    def _transport(self, id: str, *, is_resumed: bool = False) -> ResumableTransport:
        return ResumableTransport(
            self.replay,
            id,
            is_resumed=is_resumed,
            is_json_response_enabled=self.json_response,
            security_settings=self.security_settings,
            idle_timeout=self.session_idle_timeout,
        )

    def _register(self, transport: ResumableTransport, requestor: Any) -> None:
        id = str(transport.mcp_session_id)
        self._server_instances[id] = transport
        if requestor is not None:
            self._session_owners[id] = requestor

    def _has_room(self, requestor: Any) -> bool:
        here = (self, *(one for one in self.beside if one is not self))
        held = sum(one.sessions_of(requestor) for one in here)
        taken = sum(one.open_sessions for one in here)
        return self.share.fits(held, taken, is_alone=requestor is None)


def _person(requestor: Any) -> tuple[object, object] | None:
    return None if requestor is None else (requestor["issuer"], requestor["subject"])


def _again(read: Message, receive: Receive) -> Receive:
    """Return what gives a message that was read once more, and then what comes."""
    given = [read]

    async def again() -> Message:
        return given.pop() if given else await receive()

    return again


def _answer(text: str, status: HTTPStatus, code: int = INVALID_REQUEST) -> JSONResponse:
    return JSONResponse({"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": text}}, status)


def _refused(body: bytes, most: int) -> JSONResponse:
    error = {"code": INVALID_REQUEST, "message": too_many_entries(most)}
    answer = {"jsonrpc": "2.0", "id": id_at_ends(body), "error": error}
    return JSONResponse(answer, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)

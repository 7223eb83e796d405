"""The sessions of one address over HTTP (the handshake versions): begun, resumed after a restart, ended for good.

Source: MCP 2025-11-25, basic/transports, streamable HTTP.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from collections import OrderedDict
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import anyio

from truename.errors import StoreError
from truename.gateway.background import begin
from truename.gateway.cancellation import Cancellation
from truename.gateway.drain import count_on
from truename.gateway.http.replay import STANDALONE, StoredEvent
from truename.gateway.http.response_stream import (
    ABORT,
    RETRY_LATER,
    EventWriter,
    ResponseStream,
    send_events,
    send_json,
    send_nothing,
)
from truename.gateway.http.session import SESSION_HEADER, Session
from truename.gateway.http.session_ids import handshake_of
from truename.gateway.mcp.connection import Channel, ClientConnection
from truename.gateway.mcp.messages import IN_USE, encode, error, failed, response
from truename.gateway.mcp.requests import Request, progress_token
from truename.gateway.protocol.callers import header_of
from truename.gateway.protocol.specification import CONNECTION_CLOSED, INTERNAL_ERROR, INVALID_REQUEST
from truename.gateway.quota import whose

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping

    from starlette.requests import HTTPConnection
    from starlette.types import Receive, Scope, Send

    from truename.gateway.http.replay import Position, Replay
    from truename.gateway.http.session_ids import Handshake, Opened
    from truename.gateway.http.session_owners import SessionOwners
    from truename.gateway.http.session_record import SessionRecord
    from truename.gateway.mcp.requests import RequestId
    from truename.gateway.quota import Share
    from truename.gateway.replicas.liveness import Replica
    from truename.policy.principal import Principal

    Answer = Callable[[Request], Awaitable[Mapping[str, Any]]]
    Message = dict[str, Any]

__all__ = ["Sessions", "accepts", "header"]

log: Final = logging.getLogger("truename.gateway")

_LAST_EVENT: Final = b"last-event-id"
_VERSION: Final = b"mcp-protocol-version"
# Until then an answer can be one JSON body; afterwards its client has a stream that it can come back for.
PATIENCE: Final = 0.1
# Clients of this version and later know where a stream begins, and come back for it.
_RESUMABLE: Final = "2025-11-25"
_USUAL: Final = "application/json, text/event-stream"
_JSON: Final = ("application/json", "application/*")
_EVENTS: Final = ("text/event-stream", "text/*")
_BITS: Final = 40
# The code of the SDKs for a request that its client cancelled (MCP has none).
_REQUEST_CANCELLED: Final = -32800
_MOST_LOST: Final = 1_000
_MOST_FOREIGN: Final = 1_000
_ALLOWED: Final = (b"allow", b"GET, POST, DELETE")
_NOT_FOUND: Final = "Session not found"
_MOVED: Final = "This session is another replica's now; nothing was run. Repeat the request."
_UNSURE: Final = (
    "The state cannot be read, so whether this session was ended is not known; nothing was run. Repeat the request."
)
_FULL: Final = "Too many open sessions"
_MISSING: Final = "Bad Request: Missing session ID"
_NOT_ALLOWED: Final = "Method Not Allowed"
_NO_STREAM: Final = "Not Acceptable: Client must accept text/event-stream"
_ONE_STREAM: Final = "Conflict: Only one SSE stream is allowed per session"
_GONE: Final = (
    "The events after this Last-Event-ID belong to another session or are no longer stored: go on without it. A call "
    "without a result may have been run."
)
_DONE: Final = "This stream has ended: its request was answered."
_LOST: Final = (
    "The gateway was restarted while this request was being answered. Whether it took effect is unknown; check before "
    "you repeat it."
)


def header(scope: Scope, name: bytes) -> str | None:
    """Return the first header with this name (in lower case)."""
    value = header_of(scope, name)
    return None if value is None else value.decode("latin-1")


def accepts(scope: Scope) -> tuple[bool, bool]:
    """Return whether a client accepts JSON, and streams of events (RFC 9110, section 12.5.1, without weights).

    >>> accepts({"headers": [(b"accept", b"text/*, application/json;q=0.9")]}), accepts({"headers": []})
    ((True, True), (False, False))
    """
    said = header(scope, b"accept") or ""
    if said == _USUAL:
        return True, True
    kinds = {kind.partition(";")[0].strip().lower() for kind in said.split(",")}
    has_json, has_events = (bool(kinds & {"*/*", *one}) for one in (_JSON, _EVENTS))
    return has_json, has_events


class _Used:
    """Has a session be in use while the block lasts. Every request enters one, so it is no generator."""

    __slots__ = ("_record", "_session")

    def __init__(self, session: Session, record: SessionRecord) -> None:
        self._session = session
        self._record = record

    def __enter__(self) -> None:
        self._session.open_requests += 1
        self._record.use(self._session.id)

    def __exit__(self, *_: object) -> None:
        self._session.open_requests -= 1
        self._session.last_use = asyncio.get_running_loop().time()
        if not self._session.is_over:
            self._record.use(self._session.id)


class Sessions:
    """The sessions of one address, bounded over all addresses: ``beside`` are those of the others and these.

    ``answer`` answers requests. ``record`` issues the ids, and tells which of those that are not served now go on: one
    that was issued for the same principal at the same ``address`` is opened anew, as it was agreed on. For every other
    id the answer is 404. ``replay`` keeps what was sent for clients that come back. ``joined`` is told of a session
    that goes on, ``told`` when its client listens again. ``lasts`` is how many seconds a session lasts without a
    request or an open stream. ``owners`` knows which sessions are of other replicas; None for a gateway without any.
    """

    def __init__(
        self,
        answer: Answer,
        *,
        beside: Iterable[Sessions],
        address: str,
        record: SessionRecord,
        replay: Replay,
        share: Share,
        lasts: float,
        joined: Callable[[ClientConnection], None],
        told: Callable[[ClientConnection], Coroutine[Any, Any, None]],
        owners: SessionOwners | None = None,
    ) -> None:
        self._answer = answer
        self._owners = owners
        self._beside = beside
        self._address = address
        self._record = record
        self._replay = replay
        self._share = share
        self._lasts = lasts
        self._joined = joined
        self._told = told
        self._sessions: dict[str, Session] = {}
        # What ids of sessions say that other replicas have.
        self._foreign: OrderedDict[tuple[str, str], Opened] = OrderedDict()
        self._resuming = anyio.Lock()

    @property
    def open_sessions(self) -> int:
        """How many sessions are open here."""
        return len(self._sessions)

    def sessions_of(self, principal: Principal) -> int:
        """Return how many sessions of a principal are open here, whatever OAuth client began them."""
        who = _person(principal)
        return sum(_person(session.principal) == who for session in self._sessions.values())

    def note_use(self) -> None:
        """Note which sessions have a request or a stream open now."""
        for session in self._sessions.values():
            if session.open_requests:
                self._record.use(session.id)

    def share(self, owners: SessionOwners) -> None:
        """Share the sessions from now on. Those that began before are in no other replica's reach."""
        self._owners = owners

    def discard_lost(self) -> None:
        """End all sessions here that another replica may have taken over."""
        if self._owners is not None:
            own = self._owners.own
            for session in [one for one in self._sessions.values() if one.own is not None and one.own is not own]:
                self._discard(session)

    async def holder(self, principal: Principal, scope: Scope) -> Replica | None:
        """Return the other replica that has the session which a request names; None if no other has it.

        A session whose owner is dead is this process's from then on, unless another one was quicker. Raises
        `StoreError` if that cannot be found out.
        """
        id = header(scope, SESSION_HEADER)
        if self._owners is None or id is None:
            return None
        session = self._sessions.get(id)
        if session is not None and not session.is_over and _owner(session.principal) == _owner(principal):
            if await self._is_held(session):
                return None
            self._discard(session)
        place = self._place(principal)
        opened = self._opened(place, id)
        if opened is None:
            return None
        holder = self._owners.known(id, opened.owner)
        if holder is None and await self._record.good(place, id) is not None:
            # Nothing is taken for the id of a session that is over.
            holder = await self._owners.holder(id, opened.owner)
        return None if holder is self._owners.own else holder

    def _opened(self, place: str, id: str) -> Opened | None:
        """Return what an id says; each request of a session that another replica has asks for it."""
        known = self._foreign.get((place, id))
        if known is None and (known := self._record.issued(place, id)) is not None:
            self._foreign[place, id] = known
            if len(self._foreign) > _MOST_FOREIGN:
                self._foreign.popitem(last=False)
        return known

    def give_up(self, scope: Scope) -> int | None:
        """Give up the session that a request names, and return the token that it was held with.

        None, and nothing is given up, while an answer of the session is under way.
        """
        id = header(scope, SESSION_HEADER)
        if self._owners is None or id is None:
            return None
        session = self._sessions.get(id)
        if session is not None and (session.running or session.followers):
            return None
        fence = self._owners.give_up(id)
        if session is not None:
            self._discard(session)
        return fence

    async def _is_held(self, session: Session) -> bool:
        """Return whether no other replica can have taken a session over."""
        owners, own = self._owners, session.own
        return owners is None or own is None or owners.is_current(own) or await owners.check(own)

    def _guarded(self, session: Session, scope: Scope, send: Send) -> Send:
        """Return what sends a response of a session: nothing once another replica may have taken the session over."""
        owners, own = self._owners, session.own
        if owners is None or own is None:
            return send

        async def guarded(message: Any) -> None:
            if owners.is_current(own) or await owners.check(own):
                await send(message)
                return
            self._discard(session)
            if ABORT in scope:
                scope[ABORT]()

        return guarded

    def end(self) -> None:
        """End all sessions here, without ending them for good: they go on when their clients come back."""
        for session in list(self._sessions.values()):
            self._discard(session)

    async def closed(self) -> None:
        """End all sessions here, and wait until what they had to do at their end is done."""
        sessions = list(self._sessions.values())
        self._sessions.clear()
        for session in sessions:
            session.end()
        for session in sessions:
            await session.connection.close()

    async def post(self, principal: Principal, kind: str, message: Message, http: HTTPConnection, send: Send) -> None:
        """Answer a message that was posted."""
        if kind == "request" and message["method"] == "initialize" and header(http.scope, SESSION_HEADER) is None:
            await self._begun(principal, message, http, send)
            return
        session = await self._session(principal, http.scope, send)
        if session is None:
            return
        send = self._guarded(session, http.scope, send)
        with _Used(session, self._record):
            if kind == "request":
                await self._respond(session, message, http, send)
                return
            await send_nothing(send, HTTPStatus.ACCEPTED, session.headers)
            if kind == "response":
                session.requests.answered(message)
            else:
                await _notified(session, message["method"], message.get("params") or {})

    async def get(self, principal: Principal, scope: Scope, receive: Receive, send: Send) -> None:
        """Send a client what belongs to no request, or what it missed of a stream that broke off."""
        session = await self._session(principal, scope, send)
        if session is None:
            return
        send = self._guarded(session, scope, send)
        with _Used(session, self._record):
            if not accepts(scope)[1]:
                await _refuse(send, _NO_STREAM, HTTPStatus.NOT_ACCEPTABLE, session)
            elif last := header(scope, _LAST_EVENT):
                await self._replayed(session, last, scope, receive, send)
            else:
                await self._listen(session, scope, receive, send)

    async def delete(self, principal: Principal, scope: Scope, send: Send) -> None:
        """End a session for good."""
        session = await self._session(principal, scope, send, ends=True)
        if session is None:
            return
        # Written down before it is said to be ended.
        await self._record.end(self._place(principal), session.id)
        self._discard(session)
        await send_nothing(send, HTTPStatus.OK, session.headers)

    async def other(self, principal: Principal, scope: Scope, send: Send) -> None:
        """Refuse a method of HTTP that sessions do not have."""
        if header(scope, SESSION_HEADER) is None:
            await _refuse(send, _NOT_ALLOWED, HTTPStatus.METHOD_NOT_ALLOWED, None, _ALLOWED)
            return
        session = await self._session(principal, scope, send)
        if session is not None:
            await _refuse(send, _NOT_ALLOWED, HTTPStatus.METHOD_NOT_ALLOWED, session, _ALLOWED)

    async def _session(self, principal: Principal, scope: Scope, send: Send, *, ends: bool = False) -> Session | None:
        """Return the session that a request names; None if there is none for this principal, which is answered."""
        id = header(scope, SESSION_HEADER)
        if id is None:
            await _refuse(send, _MISSING, HTTPStatus.BAD_REQUEST)
            return None
        session = self._sessions.get(id)
        if session is not None and not session.is_over:
            own = session.principal
            if own is principal or _owner(own) == _owner(principal):
                return session
        opened = self._record.issued(self._place(principal), id)
        if opened is None:
            await _refuse(send, _NOT_FOUND, HTTPStatus.NOT_FOUND)
            return None
        return await self._resumed(id, principal, send, opened.owner, ends=ends)

    async def _may_have(self, id: str, issuer: str | None) -> bool:
        """Return whether a session is this process's: it may have been taken over just now."""
        if self._owners is None:
            return True
        try:
            return await self._owners.holder(id, issuer) is self._owners.own
        except StoreError:
            return False

    async def _resumed(
        self, id: str, principal: Principal, send: Send, issuer: str | None, *, ends: bool
    ) -> Session | None:
        """Open a session anew that was issued here before, or end it."""
        place = self._place(principal)
        async with self._resuming:
            if (session := self._sessions.get(id)) is not None and not session.is_over:
                # Of the requests that come first after a restart, another one was quicker.
                return session
            if (handshake := await self._agreed(place, id, send)) is None:
                return None
            if not await self._may_have(id, issuer):
                await _refuse(send, _MOVED, HTTPStatus.SERVICE_UNAVAILABLE, code=INTERNAL_ERROR)
                return None
            if ends:
                await self._record.end(place, id)
                if self._owners is not None:
                    self._owners.release(id)
                await send_nothing(send, HTTPStatus.OK, [])
                return None
            if not self._has_room(principal):
                await _refuse(send, _FULL, HTTPStatus.SERVICE_UNAVAILABLE, code=INTERNAL_ERROR)
                return None
            return self._open_anew(id, principal, handshake)

    async def _agreed(self, place: str, id: str, send: Send) -> Handshake | None:
        """Return what was agreed on in a session that may go on; None for every other, which is answered."""
        try:
            handshake = await self._record.good(place, id)
        except StoreError as error:
            log.warning("Cannot check whether a session was ended, so it is not resumed. %s", error)
            await _refuse(send, _UNSURE, HTTPStatus.SERVICE_UNAVAILABLE, code=INTERNAL_ERROR)
            return None
        if handshake is None:
            await _refuse(send, _NOT_FOUND, HTTPStatus.NOT_FOUND)
        return handshake

    def _open_anew(self, id: str, principal: Principal, handshake: Handshake) -> Session:
        # An answer to what the process before asked is for no question of this one.
        first = secrets.randbits(_BITS)
        session = Session(id, principal, self._replay, first=first, is_resumed=True, own=self._own)
        session.connection.agree(handshake.version, handshake.client)
        session.connection.is_initialized = True
        self._joined(session.connection)
        session.on_listening = lambda: begin(self._told(session.connection))
        self._register(session)
        return session

    @property
    def _own(self) -> Replica | None:
        return None if self._owners is None else self._owners.own

    def _register(self, session: Session) -> None:
        self._sessions[session.id] = session
        self._watch(session)

    def _watch(self, session: Session) -> None:
        """End a session when it was not used for long."""
        loop = asyncio.get_running_loop()
        session.last_use = loop.time()

        def look() -> None:
            if session.is_over:
                return
            left = session.last_use + self._lasts - loop.time()
            if session.open_requests or left > 0:
                session.expiry = loop.call_later(max(left, self._lasts / 10 if session.open_requests else 0.0), look)
            else:
                self._discard(session)

        session.expiry = loop.call_later(self._lasts, look)

    def _discard(self, session: Session) -> None:
        if self._sessions.get(session.id) is session:
            del self._sessions[session.id]
        if not session.is_over:
            session.end()
            begin(session.connection.close())
            if self._owners is not None:
                self._owners.release(session.id)

    def _has_room(self, principal: Principal) -> bool:
        here = (self, *(one for one in self._beside if one is not self))
        held = sum(one.sessions_of(principal) for one in here)
        taken = sum(one.open_sessions for one in here)
        return self._share.fits(held, taken, is_alone=whose(principal) is None)

    def _place(self, principal: Principal) -> str:
        """Return whose a session is, and where."""
        return json.dumps([_owner(principal), self._address])

    async def _begun(self, principal: Principal, message: Message, http: HTTPConnection, send: Send) -> None:
        if not self._has_room(principal):
            await _refuse(send, _FULL, HTTPStatus.SERVICE_UNAVAILABLE, code=INTERNAL_ERROR)
            return
        own = self._own
        id = self._record.issue(self._place(principal), handshake_of(message), None if own is None else own.id)
        session = Session(id, principal, self._replay, own=own)
        self._register(session)
        is_begun = False
        try:
            with _Used(session, self._record):
                is_begun = await self._respond(session, message, http, send)
        finally:
            if not is_begun:
                self._discard(session)

    async def _respond(self, session: Session, message: Message, http: HTTPConnection, send: Send) -> bool:
        """Answer a request; return whether the answer was a result."""
        id, params = message["id"], message.get("params")
        if id in session.running:
            # Under this id the client waits for another answer.
            await _refuse(send, IN_USE, HTTPStatus.BAD_REQUEST, session)
            return False
        version = header(http.scope, _VERSION) or session.connection.protocol_version
        stream = ResponseStream(
            send,
            session.headers,
            events=session.events,
            key=id,
            tells_place=version >= _RESUMABLE,
            on_begin=partial(session.streams.__setitem__, id),
            abort=http.scope.get(ABORT),
        )
        channel = Channel(stream.write, session.requests, progress_token=progress_token(params))
        request = Request(message["method"], params, id, session.connection, channel, http)
        stream.stream_after(PATIENCE)
        try:
            with Cancellation() as cancellation:
                session.running[id] = cancellation
                try:
                    answer = response(id, await self._answer(request))
                except Exception as problem:  # noqa: BLE001 - any failure is this request's alone
                    answer = failed(id, problem)
            if cancellation.has_ended_block:
                code, text = (
                    (CONNECTION_CLOSED, "Connection closed")
                    if session.is_over
                    else (_REQUEST_CANCELLED, "Request cancelled")
                )
                answer = error(id, code, text)
            channel.close()
            await stream.answer(answer, waits=not session.is_over)
        finally:
            channel.close()
            stream.close()
            del session.running[id]
            if session.streams.get(id) is stream:
                del session.streams[id]
        return "result" in answer

    async def _listen(self, session: Session, scope: Scope, receive: Receive, send: Send) -> None:
        if session.is_listening:
            await _refuse(send, _ONE_STREAM, HTTPStatus.CONFLICT, session)
            return
        writer = EventWriter(send, session.headers, abort=scope.get(ABORT))

        async def following() -> AsyncIterator[StoredEvent]:
            await anyio.sleep_forever()
            yield StoredEvent("", b"")

        await self._listened(session, writer, following(), receive)

    async def _listened(
        self, session: Session, writer: EventWriter, events: AsyncIterator[StoredEvent], receive: Receive
    ) -> None:
        with session.listening(writer):
            if session.on_listening is not None:
                tell, session.on_listening = session.on_listening, None
                tell()
            await send_events(events, receive, writer)
        await writer.leave(RETRY_LATER)

    async def _replayed(self, session: Session, last: str, scope: Scope, receive: Receive, send: Send) -> None:
        position = session.events.after(last)
        key = session.events.elsewhere(last) if position is None and session.is_resumed else None
        if key is STANDALONE:
            await self._listen(session, scope, receive, send)
        elif key is not None:
            await _resumed_stream(session, key, last, send)
        elif position is None:
            await _refuse(send, _GONE, HTTPStatus.BAD_REQUEST, session)
        elif session.events.is_done(position):
            # After an empty stream some clients would ask for the next one.
            await _refuse(send, _DONE, HTTPStatus.METHOD_NOT_ALLOWED, session, _ALLOWED)
        else:
            await self._followed(session, position, scope, receive, send)

    async def _followed(self, session: Session, position: Position, scope: Scope, receive: Receive, send: Send) -> None:
        if (live := session.events.live_key(position)) is not None:
            # The client has lost that connection, though it is not noticed here yet.
            await session.detach(live)
        writer = EventWriter(send, session.headers, abort=scope.get(ABORT))
        number, is_standalone = position.stream.number, position.stream.key is STANDALONE
        before, session.followers[number] = session.followers.get(number), writer
        if before is not None:
            await before.leave()
        if not is_standalone:
            count_on(scope)
        try:
            await send_events(session.events.following(position), receive, writer)
            if is_standalone or session.is_over:
                await writer.leave(RETRY_LATER if is_standalone else b"")
            else:
                await writer.end()
        finally:
            if session.followers.get(number) is writer:
                del session.followers[number]


async def _resumed_stream(session: Session, key: RequestId, last: str, send: Send) -> None:
    """Tell a client that resumes a stream of an earlier process that its messages are lost."""
    if key in session.lost:
        await _refuse(send, _DONE, HTTPStatus.METHOD_NOT_ALLOWED, session, _ALLOWED)
        return
    if len(session.lost) < _MOST_LOST:
        session.lost.add(key)
    writer = EventWriter(send, session.headers)
    await writer.write(encode(error(key, INTERNAL_ERROR, _LOST)), last)
    await writer.end()


async def _notified(session: Session, method: str, params: Mapping[str, Any]) -> None:
    if method == "notifications/initialized":
        session.connection.is_initialized = True
    elif method == "notifications/cancelled":
        session.cancel(params.get("requestId"))
    elif method == "notifications/progress":
        await session.requests.progressed(params)


async def _refuse(
    send: Send,
    text: str,
    status: HTTPStatus,
    session: Session | None = None,
    *more: tuple[bytes, bytes],
    code: int = INVALID_REQUEST,
) -> None:
    headers = [*([] if session is None else session.headers), *more]
    await send_json(send, encode(error(None, code, text)), headers, status)


def _person(principal: Principal) -> tuple[str, str] | None:
    return None if whose(principal) is None else (principal.issuer, principal.name)


def _owner(principal: Principal) -> tuple[str, str, str] | None:
    """Return to whom a session is bound: a person, by the OAuth client that acts for them."""
    return None if whose(principal) is None else (principal.client, principal.issuer, principal.name)

"""The web server under the gateway: uvicorn, with the bounds that it has not by itself, and told when to end."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio
import httptools
import uvicorn
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT, FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from truename.gateway.http.response_stream import ABORT
from truename.gateway.http.shared_listener import SharedListener

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator

    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

    from truename.gateway.http.connection_limits import ConnectionLimits
    from truename.gateway.http.shared_listener import ConnectionCounts
    from truename.gateway.http.tls_termination import TlsTermination

__all__ = ["WebServer"]

_SHUTDOWN_SECONDS: Final = 3
HALF_SENT_SECONDS: Final = 20.0
# A balancer must end an idle connection before this server does: a request that it sends at that moment is lost, and
# the client gets no response. Balancers keep them for 5 s (HAProxy) to 60 s (nginx, load balancers of cloud providers).
IDLE_SECONDS: Final = 75
_LONGEST_HEAD: Final = 64 * 1024
# Bytes in which hundreds of requests fit, and so many of these may wait: more would be made of what came in one piece.
_PIECE: Final = 16 * 1024
_MOST_WAITING: Final = 16
_OF_UPGRADES: Final = frozenset({b"connection", b"upgrade", b"http2-settings"})
_TOO_MANY: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\ncontent-type: text/plain\r\n"
    b"content-length: 21\r\n\r\nToo many connections."
)


class _Flow(FlowControl):
    """Uvicorn's, that reads no further while requests wait: each response would have another piece of them be read.

    One may wait, while it is small: who reads no more does not see that the client goes away.
    """

    def __init__(self, transport: asyncio.Transport, protocol: _BoundedProtocol) -> None:
        super().__init__(transport)
        self._protocol = protocol

    def resume_reading(self) -> None:
        """Read on, if there is room for what comes."""
        waiting = self._protocol.pipeline
        is_small = not waiting or (len(waiting) == 1 and len(waiting[0][0].body) <= HIGH_WATER_LIMIT)
        if is_small and not self._protocol.pieces:
            super().resume_reading()


class _BoundedProtocol(HttpToolsProtocol):
    """Uvicorn's protocol over llhttp, with bounds: on the head of a request, and on the time that a request may take.

    A connection is closed on which a request was begun and is not sent whole in time: head, or head and body. Bytes
    that are not HTTP end the requests before them too: uvicorn would go on with these, and begin a second response
    within the first. It knows the newest request alone, so those that are not answered are noted here.
    """

    _half_sent: asyncio.TimerHandle | None = None
    _is_reading = False
    # The head of a request has come.
    _has_begun = False
    _is_in_head = False
    # Bytes that came in pieces of which the parser gave neither a whole head nor a part of a body.
    _unparsed = 0
    _has_parsed = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn narrows it so too
        super().connection_made(transport)
        self.flow = _Flow(transport, self)
        # What came and was not looked at: requests enough wait already.
        self.pieces: deque[bytes] = deque()
        # In the order in which they came: the first is being answered.
        self._unanswered: deque[RequestResponseCycle] = deque()
        self._then: set[Callable[[], None]] = set()
        self._watch()
        self._limits.opened(self)
        self._count(1)

    @property
    def _own_config(self) -> _Config:
        assert isinstance(self.config, _Config)  # noqa: S101 - the server gives each protocol its own
        return self.config

    @property
    def _limits(self) -> ConnectionLimits:
        return self._own_config.limits

    def _count(self, change: int) -> None:
        if (counts := self._own_config.counts) is not None:
            counts.add(change)

    @property
    def peer(self) -> tuple[str, int] | None:
        """Address and port of the client."""
        return self.client

    @property
    def is_waiting(self) -> bool:
        """Whether nothing is being answered here, or what is to be answered is not sent whole."""
        return self._waiting() or not self._unanswered

    @property
    def unread(self) -> int:
        """How many bytes of answers wait here."""
        return self.transport.get_write_buffer_size()

    def on_disconnect(self, then: Callable[[], None]) -> Callable[[], None]:
        """Call `then` when the client disconnects. Returns a function that removes the callback."""
        if self.transport.is_closing():
            then()
        self._then.add(then)
        return partial(self._then.discard, then)

    def drop(self) -> None:
        """Close it at once; who has not sent the head of a request yet reads that there are too many."""
        if self._has_begun or self.transport.is_closing():
            self.abort()
        else:
            self.transport.write(_TOO_MANY)
            self.transport.close()

    def abort(self) -> None:
        """Close it at once: who answers here has been told, and writes no more."""
        self._give_up_answers()
        self.transport.abort()

    async def drained(self) -> bool:
        """Wait until answers before this one are read; tells whether the client is still there."""
        await self.flow.drain()
        return not self.transport.is_closing()

    def data_received(self, data: bytes) -> None:
        """Take what the client sends. Nothing of it is logged: whoever can connect could fill the log.

        An empty line is no request (RFC 9112, section 2.2), so the time until the next one goes on.
        """
        self.pieces.extend(data[begin : begin + _PIECE] for begin in range(0, len(data), _PIECE))
        self._read_on()

    def _read_on(self) -> None:
        while self.pieces and len(self.pipeline) < _MOST_WAITING and not self.transport.is_closing():
            piece = self.pieces.popleft()
            self._has_parsed = False
            try:
                self._feed(piece)
            except httptools.HttpParserError:
                self.send_400_response("Invalid HTTP request received.")
            # A header that is not whole yet is in the parser, which has no bound; so is a trailer.
            is_unparsed = self._is_reading and not self._has_parsed
            self._unparsed = self._unparsed + len(piece) if is_unparsed else 0
            if self._unparsed > _LONGEST_HEAD:
                self.send_400_response("The head of the request is too large.")
        self._watch()

    def on_message_begin(self) -> None:
        """Begin a request."""
        self._unset_keepalive_if_required()
        self._is_reading = self._is_in_head = True
        super().on_message_begin()
        self.scope[ABORT] = self.abort  # type: ignore[typeddict-unknown-key]

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header. Trailers come after the request was judged, so they are dropped (RFC 9110, section 6.5.1).

        Blanks behind a value are no part of it (section 5.5), and the parser leaves them there.
        """
        if self._is_in_head:
            super().on_header(name, value.rstrip(b" \t"))

    def on_body(self, body: bytes) -> None:
        """Take a part of the body, which has bounds of its own."""
        self._has_parsed = True
        super().on_body(body)

    def _feed(self, data: bytes) -> None:
        """Feed the parser, and again what comes behind the head of a request that offers an upgrade, which is declined.

        Raises `HttpParserError`.
        """
        # Many of them in one piece would each have the rest of it be copied.
        rest = memoryview(data)
        while rest:
            try:
                self.parser.feed_data(rest)
            except httptools.HttpParserUpgrade as upgrade:
                rest = rest[upgrade.args[0] :]
                head = self._without_upgrade()
                self.parser.feed_data(head)
            else:
                return

    def _without_upgrade(self) -> bytes:
        """Return the head of a request as if it offered no upgrade (RFC 9110, section 7.8).

        The parser passed over its body. Java's client offers an upgrade with each request.
        """
        method, version = self.parser.get_method(), self.parser.get_http_version()
        self.parser = httptools.HttpRequestParser(self)
        # As uvicorn's own: what comes behind the last request is not looked at.
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        kept = [b"%s: %s" % pair for pair in self.headers if pair[0] not in _OF_UPGRADES]
        if any(name == b"connection" and b"close" in value.lower() for name, value in self.headers):
            kept.append(b"connection: close")
        # A tunnel (CONNECT) would be one again.
        method = b"OPTIONS" if method == b"CONNECT" else method
        line = b"%s %s HTTP/%s" % (method, self.url, version.encode("ascii"))
        return b"\r\n".join((line, *kept, b"", b""))

    def on_headers_complete(self) -> None:
        """Begin to answer."""
        if self.parser.should_upgrade():
            return
        super().on_headers_complete()
        self._unanswered.append(self.cycle)
        self._is_in_head, self._has_begun, self._has_parsed = False, True, True

    def on_message_complete(self) -> None:
        """Note that the request came whole."""
        if self.parser.should_upgrade():
            return
        self._is_reading = False
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Go on with the next request."""
        self._unanswered.popleft()
        super().on_response_complete()
        if self._is_reading:
            # The rest of it, or of the one before, has a time of its own.
            self._unset_keepalive_if_required()
        self._read_on()

    def connection_lost(self, exc: Exception | None) -> None:
        self._limits.closed(self)
        self._count(-1)
        self._forget()
        self._give_up_answers()
        self.pipeline.clear()
        self.pieces.clear()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)
        for then in list(self._then):
            then()

    def send_400_response(self, msg: str) -> None:
        """Say that it is no HTTP, if no response is open, and have nobody wait for the rest of the request."""
        # In the middle of a body, the last response is the one to this request.
        is_body = self._is_reading and not self._is_in_head
        is_begun = is_body and (self.cycle.response_started or self.cycle.scope["method"] == "HEAD")
        is_unsaid = not is_begun and all(is_body and one is self.cycle for one in self._unanswered)
        self._give_up_answers()
        if is_unsaid:
            super().send_400_response(msg)
        else:
            self.transport.close()

    def _give_up_answers(self) -> None:
        """Have no answer be sent any more, and whoever answers hear that the client has gone."""
        for cycle in self._unanswered:
            cycle.disconnected = True
            cycle.message_event.set()

    def _watch(self) -> None:
        if not self._waiting():
            self._forget()
        elif self._half_sent is None:
            self._half_sent = self.loop.call_later(HALF_SENT_SECONDS, self._give_up)

    def _waiting(self) -> bool:
        """Tell whether the client owes us the rest of a request, or its first."""
        return (self._is_reading and not self.pieces) or not self._has_begun

    def _forget(self) -> None:
        if self._half_sent is not None:
            self._half_sent.cancel()
            self._half_sent = None

    def _give_up(self) -> None:
        self._half_sent = None
        if self._waiting():
            self._give_up_answers()
            if self.transport.get_write_buffer_size():
                # Closing would wait for a client that does not read.
                self.transport.abort()
            else:
                self.transport.close()


class _Config(uvicorn.Config):
    """Uvicorn's, with what its protocols tell of their connections."""

    limits: ConnectionLimits
    counts: ConnectionCounts | None


class WebServer(uvicorn.Server):
    """Says when it listens and when it has ended, and leaves signals to the caller. ``tls`` is None for plain HTTP.

    With ``counts`` other processes accept connections at the same sockets.
    """

    def __init__(
        self,
        app: Callable[..., Any],
        limits: ConnectionLimits,
        tls: TlsTermination | None = None,
        counts: ConnectionCounts | None = None,
    ) -> None:
        config = _Config(
            app,
            http=_BoundedProtocol,
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            server_header=False,
            # Whoever asks is who is connected: callers are told apart by it, and a header could say anything.
            proxy_headers=False,
            timeout_keep_alive=IDLE_SECONDS,
            timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        )
        config.limits, config.counts = limits, counts
        super().__init__(config)
        self._tls = tls
        self._counts = counts
        self._listeners: list[asyncio.Server | SharedListener] = []
        self.listens = anyio.Event()
        self._finishing = anyio.Event()
        self._ended = anyio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, then say so (uvicorn has the loop do TLS, whose connections are counted after the handshake)."""
        self._listeners = [await self._listen(one) for one in sockets or ()]
        self.started = True
        self.listens.set()

    async def _listen(self, bound: socket.socket) -> asyncio.Server | SharedListener:
        backlog, counts = self.config.backlog, self._counts
        if counts is not None:
            return SharedListener(bound, self._connection, counts, backlog)
        return await asyncio.get_running_loop().create_server(self._connection, sock=bound, backlog=backlog)

    def _connection(self) -> asyncio.Protocol:
        """Return the protocol of a new connection."""
        http = _BoundedProtocol(self.config, self.server_state, self.lifespan.state)
        return http if self._tls is None else self._tls.over(http)

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until `finish`, also when cancelled, so that streams end in order; then say that it is over."""
        try:
            with anyio.CancelScope(shield=True):
                await super().serve(sockets)
        finally:
            self._ended.set()

    async def main_loop(self) -> None:
        """Tick once a second, for the date in answers, and end when told to (uvicorn looks ten times a second)."""
        while not await self.on_tick(0):
            with anyio.move_on_after(1.0):
                await self._finishing.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more connections; let what is being answered end, for a moment (uvicorn sleeps before it looks)."""
        for listener in (*self._listeners, *(sockets or ())):
            listener.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        with anyio.move_on_after(_SHUTDOWN_SECONDS) as moment:
            await self._emptied()
        if moment.cancelled_caught:
            for task in self.server_state.tasks:
                task.cancel()

    async def _emptied(self) -> None:
        pause = 0.001
        while self.server_state.connections or self.server_state.tasks:
            await anyio.sleep(pause)
            pause = min(2 * pause, 0.1)
        for listener in self._listeners:
            await listener.wait_closed()

    async def finish(self) -> None:
        """Take no more requests and wait a moment for those that are being answered."""
        self.should_exit = True
        self._finishing.set()
        with anyio.CancelScope(shield=True):
            await self._ended.wait()

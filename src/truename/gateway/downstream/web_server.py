"""The web server under the gateway: uvicorn, with the bounds that it has not by itself, and told when to end."""

from __future__ import annotations

import errno
import socket
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio
import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from truename.errors import ConfigError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator

    from truename.gateway.downstream.connection_limits import ConnectionLimits

__all__ = ["WebServer", "bind"]

_SHUTDOWN_SECONDS: Final = 3
HALF_SENT_SECONDS: Final = 20.0
_TOO_MANY: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\ncontent-type: text/plain\r\n"
    b"content-length: 21\r\n\r\nToo many connections."
)


class _Impatient(H11Protocol):
    """Closes connections on which a request was begun and is not sent whole in time: head, or head and body.

    What is no HTTP behind the head of a request ends that request too: uvicorn would go on with it, begin a second
    answer within the first, and write what comes of that into the log, once for each connection of anybody.
    """

    _half_sent: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn narrows it so too
        super().connection_made(transport)
        self._then: set[Callable[[], None]] = set()
        self._watch()
        self._limits.opened(self)

    @property
    def _limits(self) -> ConnectionLimits:
        assert isinstance(self.config, _Config)  # noqa: S101 - the server gives each protocol its own
        return self.config.limits

    @property
    def peer(self) -> tuple[str, int] | None:
        """Address and port of the client."""
        return self.client

    @property
    def is_waiting(self) -> bool:
        """Whether nothing is being answered here, or what is to be answered is not sent whole."""
        return self._waiting() or not self._has_begun or self.cycle.response_complete

    @property
    def _has_begun(self) -> bool:
        """Whether the head of a request has come; uvicorn has no cycle before."""
        return self.scope is not None

    @property
    def unread(self) -> int:
        """How many bytes of answers wait here."""
        return self.transport.get_write_buffer_size()

    def on_disconnect(self, then: Callable[[], None]) -> Callable[[], None]:
        """Have this called when the client disconnects; what is returned takes that back."""
        if self.transport.is_closing():
            then()
        self._then.add(then)
        return partial(self._then.discard, then)

    def drop(self) -> None:
        """Close it at once; who has not sent the head of a request yet reads that there are too many."""
        if self._has_begun or self.transport.is_closing():
            self.transport.abort()
        else:
            self.transport.write(_TOO_MANY)
            self.transport.close()

    async def drained(self) -> bool:
        """Wait until answers before this one are read; tells whether the client is still there."""
        await self.flow.drain()
        return not self.transport.is_closing()

    def handle_events(self) -> None:
        # Called for whatever was received, and for what had to wait for the end of an answer.
        super().handle_events()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._limits.closed(self)
        self._forget()
        super().connection_lost(exc)
        for then in list(self._then):
            then()

    def send_400_response(self, msg: str) -> None:
        """Say that it is no HTTP, if nothing was said yet, and have nobody wait for the rest of the request."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        # The answer to HEAD has no body, and this one has.
        is_unsaid = self.conn.our_state is h11.SEND_RESPONSE and self.scope["method"] != "HEAD"
        if is_unsaid or self.conn.our_state is h11.IDLE:
            super().send_400_response(msg)
        else:
            self.transport.close()

    def _watch(self) -> None:
        if not self._waiting():
            self._forget()
        elif self._half_sent is None:
            self._half_sent = self.loop.call_later(HALF_SENT_SECONDS, self._give_up)

    def _waiting(self) -> bool:
        """Tell whether the client owes us the rest of a request, or its first."""
        state = self.conn.their_state
        return state is h11.SEND_BODY or (
            state is h11.IDLE and (self.cycle is None or bool(self.conn.trailing_data[0]))
        )

    def _forget(self) -> None:
        if self._half_sent is not None:
            self._half_sent.cancel()
            self._half_sent = None

    def _give_up(self) -> None:
        self._half_sent = None
        if self._waiting():
            self.transport.close()


class _Config(uvicorn.Config):
    """Uvicorn's, with what its protocols tell of their connections."""

    limits: ConnectionLimits


class WebServer(uvicorn.Server):
    """Says when it listens and when it has ended, and leaves signals to the caller."""

    def __init__(self, app: Callable[..., Any], limits: ConnectionLimits) -> None:
        config = _Config(
            app,
            http=_Impatient,
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            server_header=False,
            # Whoever asks is who is connected: callers are told apart by it, and a header could say anything.
            proxy_headers=False,
            timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        )
        config.limits = limits
        super().__init__(config)
        self.listens = anyio.Event()
        self._finishing = anyio.Event()
        self._ended = anyio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then say so."""
        await super().startup(sockets)
        self.listens.set()

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
        for listener in (*self.servers, *(sockets or ())):
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
        for server in self.servers:
            await server.wait_closed()

    async def finish(self) -> None:
        """Take no more requests and wait a moment for those that are being answered."""
        self.should_exit = True
        self._finishing.set()
        with anyio.CancelScope(shield=True):
            await self._ended.wait()


def bind(host: str, port: int) -> socket.socket:
    """Take an address without listening on it yet. Raises `ConfigError`."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind, protocol)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(address)
        except OSError:
            bound.close()
            raise
    except (OSError, UnicodeError) as error:
        raise ConfigError(
            file="--http",
            key=f"{host}:{port}",
            problem=f"cannot listen on this address: {_reason(error)}",
            remedy="Choose another port or host.",
        ) from error
    return bound


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        return "the port is in use"
    return getattr(error, "strerror", None) or str(error)

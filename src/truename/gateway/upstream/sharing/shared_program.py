"""A program that this process runs for all that share it, while it has the lease."""

from __future__ import annotations

import logging
from collections import deque
from contextlib import closing
from typing import TYPE_CHECKING, Final

import anyio
import msgspec

from truename.gateway.background import background, begin
from truename.gateway.protocol.envelopes import Envelope
from truename.gateway.upstream.awaited_response import own_number
from truename.gateway.upstream.multiplexer import Multiplexer
from truename.gateway.upstream.transport import Transport, TransportError
from truename.gateway.upstream.transports.gated_pipe import GatedPipe
from truename.gateway.upstream.transports.stdio import open_stdio
from truename.gateway.upstream_errors import UpstreamError, unusable

if TYPE_CHECKING:
    from collections.abc import Callable

    from truename.config import ServerConfig
    from truename.gateway.rate_limited_log import RateLimitedLog
    from truename.gateway.upstream.multiplexer import MultiplexedClient
    from truename.gateway.upstream.sharing.lease_gate import LeaseGate
    from truename.gateway.upstream_errors import Tail

__all__ = ["TAKEN_OVER", "SharedProgram"]

log: Final = logging.getLogger("truename.gateway")

_LOOK: Final = 0.05
_UNUSED: Final = 30.0
# Seconds for which a request or its answer waits at a closed gate.
_PATIENCE: Final = 3.0
_envelopes: Final = msgspec.json.Decoder(Envelope)
TAKEN_OVER: Final = "is run by another process of the gateway now, because this one had stopped; its program ended"


class SharedProgram:
    """One run of a program: `run` starts it and returns when it has ended.

    It ends by itself, when its last client leaves, and when the lease is lost. ``failed`` is why it could not be
    started. Messages of both directions pass ``gate``; somebody has to `look` at it also while there are none. While it
    is closed, a request that waited for three seconds fails and is not sent, and one whose answer did fails with an
    unknown outcome. Other messages wait on.
    """

    def __init__(self, gate: LeaseGate) -> None:
        self.gate = gate
        self.failed: UpstreamError | None = None
        self.started = anyio.Event()
        self.ended = anyio.Event()
        self._program: Transport = Transport()
        self._clients: dict[MultiplexedClient, Callable[[], None]] = {}
        self._multiplexer = Multiplexer(self._queue)
        # What goes to the program, and what came from it, in order, with the time since which it waits.
        self._outgoing: deque[tuple[float, bytes]] = deque()
        self._incoming: deque[tuple[float, Envelope | tuple[int, TransportError]]] = deque()
        # What is in the pipe, perhaps in part.
        self._writing: tuple[float, bytes] = (0.0, b"")
        self._news = anyio.Event()
        self._heard = anyio.Event()
        self._scope = anyio.CancelScope()
        self._is_over = False
        self._is_asking = False

    @property
    def is_usable(self) -> bool:
        """Whether clients may join."""
        return not (self._is_over or self.gate.is_lost or self._program.closed.is_set())

    @property
    def tail(self) -> Tail:
        """The last lines of its standard error."""
        return self._program.tail

    @property
    def id(self) -> str:
        """The random id of this run, once it has started."""
        return self._program.run

    def ending(self) -> str:
        """Say how it ended, as far as is known."""
        return TAKEN_OVER if self.gate.is_lost else self._program.ending()

    async def run(self, server: ServerConfig, max_line: int, news: RateLimitedLog) -> None:
        """Start the program and stay with it. Raises nothing: what went wrong is ``failed``."""
        try:
            with self._scope, closing(GatedPipe(self.gate.passed)) as pipe:
                async with open_stdio(server, max_line, news, pipe) as program, background() as tasks:
                    try:
                        self._program = program
                        program.begin(self)
                        self.started.set()
                        tasks.start_soon(self._write, program)
                        tasks.start_soon(self._dispatch)
                        tasks.start_soon(self._end_unused)
                        await program.closed.wait()
                    finally:
                        # Clients hear of it at once; the end of the program may take seconds.
                        self._close()
        except UpstreamError as error:
            self.failed = error
        except Exception as error:  # other programs go on
            log.debug("A shared program cannot go on.", exc_info=error)
            self.failed = unusable(server.key, error)
        finally:
            self._close()
            self.started.set()
            self.ended.set()

    def end(self) -> None:
        """End the program."""
        self._scope.cancel()

    def look(self) -> None:
        """Have the database be asked if it is not sure that this process has the lease, and end without it."""
        if self.gate.is_open():
            return
        for number, kind in self._late():
            self._multiplexer.fail(number, TransportError(kind))
        if not self._is_asking:
            self._is_asking = True
            begin(self._ask())

    def _late(self) -> list[tuple[int, str]]:
        """Take out the requests that wait for too long, or whose answers do: their numbers, and what is wrong."""
        latest, late = anyio.current_time() - _PATIENCE, list[tuple[int, str]]()
        outgoing, self._outgoing = self._outgoing, deque()
        for since, message in outgoing:
            if since <= latest and (number := _number(message)):
                late.append((number, "unconfirmed"))
            else:
                self._outgoing.append((since, message))
        since, message = self._writing
        if message and since <= latest and (number := _number(message)):
            late.append((number, "withheld"))
        incoming, self._incoming = self._incoming, deque()
        for since, found in incoming:
            if since <= latest and isinstance(found, tuple):
                late.append((found[0], "withheld"))
            elif since <= latest and isinstance(found, Envelope) and found.is_response:
                late.append((own_number(found.id), "withheld"))
            else:
                self._incoming.append((since, found))
        return late

    async def _ask(self) -> None:
        try:
            if not await self.gate.passed():
                self.end()
        finally:
            self._is_asking = False

    async def drained(self, client: MultiplexedClient) -> None:
        """Wait until a client waits for no answer."""
        while client in self._clients and self._multiplexer.is_waited_for(client):
            await anyio.sleep(_LOOK)

    def join(self, client: MultiplexedClient, close: Callable[[], None]) -> None:
        """Have another client; ``close`` is called when the program has ended."""
        self._clients[client] = close
        self._multiplexer.join(client)

    def leave(self, client: MultiplexedClient) -> None:
        """Forget a client; without any the program ends."""
        if self._clients.pop(client, None) is None:
            return
        self._multiplexer.leave(client)
        if not self._clients:
            self._is_over = True
            self.end()

    def send(self, client: MultiplexedClient, message: bytes) -> None:
        """Send a message of a client. Raises `TransportError` where it is lost, `ValueError` for what is no message."""
        if not self.is_usable:
            raise TransportError("lost")
        self._multiplexer.take(client, message)

    def _close(self) -> None:
        self._is_over = True
        clients, self._clients = self._clients, {}
        for close in clients.values():
            close()

    # To the program

    def _queue(self, message: bytes) -> None:
        self._outgoing.append((anyio.current_time(), message))
        self._news.set()

    async def _write(self, program: Transport) -> None:
        while True:
            await self._news.wait()
            self._news = anyio.Event()
            # In the pipe nothing can be taken back.
            while await self.gate.passed() and self._outgoing:
                self._writing = self._outgoing.popleft()
                # A program that is gone is noticed by its output.
                await program.notify(self._writing[1], b"")
                self._writing = (0.0, b"")

    async def _end_unused(self) -> None:
        """End a program that whoever wanted it has not joined, nor anybody else."""
        await anyio.sleep(_UNUSED)
        if not self._clients:
            self.end()

    # From the program

    def receive(self, found: Envelope) -> None:
        """Take a message of the program."""
        self._hear(found)

    async def take(self, found: Envelope, call: int) -> None:  # noqa: ARG002 - a `Receiver`
        """Take a message of the program."""
        self._hear(found)

    def fail(self, number: int, fault: TransportError) -> None:
        """Take it that a request has no answer."""
        self._hear((number, fault))

    def _hear(self, found: Envelope | tuple[int, TransportError]) -> None:
        if not self._incoming and self.gate.is_open():
            self._pass_on(found)
        else:
            self._incoming.append((anyio.current_time(), found))
            self._heard.set()

    async def _dispatch(self) -> None:
        """Pass on what came while it was not sure that this process has the lease."""
        while True:
            await self._heard.wait()
            self._heard = anyio.Event()
            while await self.gate.passed() and self._incoming:
                self._pass_on(self._incoming.popleft()[1])

    def _pass_on(self, found: Envelope | tuple[int, TransportError]) -> None:
        if isinstance(found, tuple):
            self._multiplexer.fail(*found)
        else:
            self._multiplexer.receive(found)
            if self._multiplexer.is_spoiled:
                # Nobody has a session with it. While some leave and others stay, it would refuse all of them.
                self._is_over = True
                self.end()


def _number(message: bytes) -> int:
    """Return the number of a request to the program; 0 of another message."""
    found = _envelopes.decode(message)
    return own_number(found.id) if found.is_request else 0

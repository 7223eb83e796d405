"""What every transport to an upstream server gives: a way for requests and messages, and word of its end."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol

import anyio

from truename.gateway.upstream_errors import Tail, UpstreamError

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from truename.gateway.protocol.envelopes import Envelope

__all__ = ["OpenTransport", "Receiver", "Transport", "TransportError"]


class TransportError(Exception):
    """A request was not answered, or not by what answers it. ``kind`` is one of the rows of `explained`.

    No server can make one: what it sends is a result or an `MCPError`.
    """

    def __init__(self, kind: str, detail: str = "") -> None:
        super().__init__(kind, detail)
        self.kind = kind
        self.detail = detail


class Receiver(Protocol):
    """Who is given what a server sends: the session."""

    def receive(self, found: Envelope) -> None:
        """Take a message that came on no request's own stream."""
        ...

    async def take(self, found: Envelope, call: int) -> None:
        """Take what came on a request's own stream before its response; what is told of a call is told in order."""
        ...

    def fail(self, number: int, fault: TransportError) -> None:
        """Take it that a request has no answer."""
        ...


class Transport:
    """An open channel to a server.

    ``closed`` is set when it is no more. ``is_old`` is one that carries versions with a handshake only; ``outdated`` is
    set where a server refuses the handshake as one would that knows no other transport than that. ``listens`` is set
    once the stream is open, or is refused, on which the server tells what it is not asked; None where all streams do.
    ``run`` is the random id of the run of the program behind it, the same in all processes that share that run; "" for
    what is no program of the gateway. ``ends_calls_by_closing`` is whether, in versions without a handshake, who closes
    the stream of a request takes the request back by that; ``has_headers`` whether requests have any.
    """

    is_old = False
    has_headers = False
    ends_calls_by_closing = False
    listens: anyio.Event | None = None
    run = ""

    def __init__(self) -> None:
        self.closed = anyio.Event()
        self.outdated = anyio.Event()
        self.tail = Tail()

    async def watch(self, lost: anyio.Event) -> None:
        """Set ``lost`` when it is closed."""
        await self.closed.wait()
        lost.set()

    def begin(self, receiver: Receiver) -> None:
        """Give to this receiver what comes from now on, and what came until now."""
        raise NotImplementedError

    async def greet(self, number: int, message: bytes) -> Envelope | None:
        """Send ``initialize``, as `request` does; its response begins a session where a transport has such."""
        return await self.request(number, message, b"")

    async def greeted(self, message: bytes, headers: bytes) -> None:
        """Send ``notifications/initialized``; it arrives before any request that is sent from now on."""
        await self.notify(message, headers)

    def request(self, number: int, message: bytes, headers: bytes) -> Awaitable[Envelope | None]:
        """Send a request, and await its response; None if that will come to the receiver.

        Raises `TransportError`, and `MCPError` for an answer without a message.
        """
        raise NotImplementedError

    async def notify(self, message: bytes, headers: bytes) -> None:
        """Send a message that is not answered. Whether it arrived is not known."""
        raise NotImplementedError

    def ending(self) -> str:
        """Say how it ended, as far as is known."""
        return "closed the connection"

    def silent(self, server: str, seconds: float) -> UpstreamError:
        """Build the error for a server that did not answer at its start."""
        return UpstreamError(
            server=server,
            kind="timeout",
            problem=f"did not answer within {seconds:.3g} seconds of its start",
            remedy="Start it by hand to see why, or raise startup_timeout.",
            output=self.tail.lines(),
        )

    def lost(self, server: str) -> UpstreamError:
        """Build the error for a connection that is no more."""
        return UpstreamError(
            server=server,
            kind="ended",
            problem=self.ending() if self.closed.is_set() else "lost the connection",
            remedy="It is being restarted.",
            output=self.tail.lines(),
        )


OpenTransport = AbstractAsyncContextManager[Transport]

"""An open channel to a server: how messages are sent over it, to whom it gives what comes, and word of its end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import anyio

from truename.gateway.faults import Tail, UpstreamError
from truename.gateway.questions.origins import RequestOrigins

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.gateway.mcp.requests import RequestId

__all__ = ["Hearer", "Message", "OpenTransport", "RequestTransport", "Take", "Transport"]

Message = dict[str, Any]
Take = Callable[[Message], Awaitable[None]]


class Hearer(Protocol):
    """Who gets what a server sends: the session."""

    async def hear(self, message: Message) -> None:
        """Take a message that came outside of a request's own stream."""

    def lost(self) -> None:
        """Learn that the connection is gone."""


class RequestTransport(Protocol):
    """The way of messages to a server."""

    def begin(self, hearer: Hearer) -> None:
        """Learn to whom the connection's messages are given."""

    async def request(
        self, number: RequestId, message: bytes, headers: Mapping[str, str], take: Take, /
    ) -> Message | None:
        """Send a request and return its answer; None if that comes among the connection's messages.

        ``take`` is given what comes before it on a stream of its own. Raises `OSError` or anyio's errors of a resource
        that is gone.
        """

    async def post(self, message: bytes, headers: Mapping[str, str], /) -> None:
        """Send a message that is not answered: a notification, or our own answer. Raises as `request` does."""


@dataclass(frozen=True, kw_only=True)
class Transport:
    """An open channel to a server.

    ``requests`` is the way of messages. ``closed`` is set before who waits for an answer is told that it is lost, so
    that they can tell that from an error that the server sent. ``secret`` marks the errors that the transport itself
    makes up (`marking`), ``origins`` knows on which call's stream a request of the server came, where there are
    such streams. ``is_old`` is one that carries versions with a handshake only; ``outdated`` is set where a server
    refuses the handshake as one would that knows no other transport than that. ``listens`` is set once the stream is
    open, or is refused, on which the server tells what it is not asked.
    """

    requests: RequestTransport
    closed: anyio.Event = field(default_factory=anyio.Event)
    tail: Tail = field(default_factory=Tail)
    secret: str = ""
    origins: RequestOrigins = field(default_factory=RequestOrigins)
    is_old: bool = False
    outdated: anyio.Event = field(default_factory=anyio.Event)
    listens: anyio.Event | None = None

    async def watch(self, lost: anyio.Event) -> None:
        """Set ``lost`` when it is closed."""
        await self.closed.wait()
        lost.set()

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

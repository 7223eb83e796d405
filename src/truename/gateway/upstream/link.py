"""What every transport to an upstream server gives: two streams of messages, and word of its end."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio

from truename.gateway.faults import Tail, UpstreamError
from truename.gateway.questions.origins import RequestOrigins

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

    from truename.gateway.protocol.wire import Carrier

__all__ = ["Link", "OpenLink"]


@dataclass(frozen=True, kw_only=True)
class Link:
    """An open channel to a server.

    ``closed`` is set before the streams end, so that whoever waited for an answer can tell a lost connection from an
    error that the server sent. ``secret`` marks the errors that the transport itself makes up (`sdk.transport_fault`),
    ``origins`` knows on which call's stream a request of the server came, where there are such streams. ``is_old``
    is one that carries versions with a handshake only; ``outdated`` is set where a server refuses the handshake as one
    would that knows no other transport than that. ``carrier`` is the transport's own way for what is forwarded, if any.
    ``listens`` is set once the stream is open, or is refused, on which the server tells what it is not asked.
    """

    streams: TransportStreams
    closed: anyio.Event = field(default_factory=anyio.Event)
    tail: Tail = field(default_factory=Tail)
    secret: str = ""
    origins: RequestOrigins = field(default_factory=RequestOrigins)
    is_old: bool = False
    carrier: Carrier | None = None
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


OpenLink = AbstractAsyncContextManager[Link]

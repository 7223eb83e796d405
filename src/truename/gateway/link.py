"""What every transport to an upstream server gives: two streams of messages, and word of its end."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio

from truename.gateway.faults import Tail
from truename.gateway.origins import Origins

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

__all__ = ["Link", "OpenLink"]


@dataclass(frozen=True, kw_only=True)
class Link:
    """An open channel to a server.

    ``closed`` is set before the streams end, so that whoever waited for an answer can tell a lost connection from an
    error that the server sent. ``secret`` marks the errors that the transport itself makes up (`sdk.transport_fault`),
    ``origins`` knows on which call's stream a request of the server came, where there are such streams.
    """

    streams: TransportStreams
    closed: anyio.Event = field(default_factory=anyio.Event)
    tail: Tail = field(default_factory=Tail)
    secret: str = ""
    origins: Origins = field(default_factory=Origins)

    async def watch(self, lost: anyio.Event) -> None:
        """Set ``lost`` when it is closed."""
        await self.closed.wait()
        lost.set()

    def ending(self) -> str:
        """Say how it ended, as far as is known."""
        return "closed the connection"


OpenLink = AbstractAsyncContextManager[Link]

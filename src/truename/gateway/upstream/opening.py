"""Opening the channel to a server, by the kind of its address."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

from truename.gateway.upstream.transports.http import open_http
from truename.gateway.upstream.transports.sse import open_sse
from truename.gateway.upstream.transports.stdio import open_stdio
from truename.gateway.upstream_errors import UpstreamError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager

    from truename.config import ServerConfig, Settings
    from truename.gateway.rate_limited_log import RateLimitedLog
    from truename.gateway.upstream.negotiating import Handshake
    from truename.gateway.upstream.outside import Outside
    from truename.gateway.upstream.session import ServerSession
    from truename.gateway.upstream.sharing.program_sharing import ProgramSharing
    from truename.gateway.upstream.transport import Transport

__all__ = ["Opening", "open_transport"]

# Who knows the old transport says so at once; who does not may leave the stream open and say nothing.
_SHORT: Final = 10.0


def open_transport(
    server: ServerConfig, settings: Settings, news: RateLimitedLog, outside: Outside, handshake: Handshake = "last"
) -> AbstractAsyncContextManager[Transport]:
    """Return the channel to a server, which entering opens. Raises `UpstreamError` for one that cannot be had.

    ``handshake`` tells when the handshake will be tried: a program that is only greeted by it is another one.
    """
    if server.type == "sse":
        return open_sse(server, settings, news, outside)
    if server.url is not None:
        return open_http(server, settings, news, outside)
    if (sharing := _sharing_of(server, outside)) is not None:
        return sharing.open(server, settings, news, handshake)
    return open_stdio(server, settings.max_result, news)


def _sharing_of(server: ServerConfig, outside: Outside) -> ProgramSharing | None:
    """Return through what a server is reached that several processes share; None for one that is not shared."""
    is_shared = outside.sharing is not None and outside.caller is None and outside.sharing.shares(server)
    return outside.sharing if is_shared else None


class Opening:
    """Opens the channel to one server again and again.

    What a server refuses as one would that knows only the old SSE transport, is tried over that once (MCP 2025-11-25,
    basic/transports, backwards compatibility).
    """

    def __init__(self, outside: Outside) -> None:
        self._outside = outside
        self._refusal: UpstreamError | None = None

    def measure(self, session: ServerSession, server: str) -> None:
        """Have whoever measures told of what is sent in this session."""
        session.timed = partial(self._outside.operations.timed, server)

    def transport(
        self, server: ServerConfig, settings: Settings, news: RateLimitedLog, handshake: Handshake
    ) -> AbstractAsyncContextManager[Transport]:
        """Return the next transport. Entering it raises `UpstreamError` as `open_transport` does."""
        refusal, self._refusal = self._refusal, None
        if refusal is None:
            return open_transport(server, settings, news, self._outside, handshake)
        return _fallen_back(server, settings, news, self._outside, refusal)

    def is_over(self, server: ServerConfig) -> bool:
        """Tell whether a server is reached no more because the process ends that shares it."""
        sharing = _sharing_of(server, self._outside)
        return sharing is not None and sharing.is_over(server)

    def falls_back(self, transport: Transport, refusal: UpstreamError) -> bool:
        """Tell whether the next attempt is over the old transport, now that this one was refused."""
        if transport.outdated.is_set():
            self._refusal = refusal
        return self._refusal is not None


@asynccontextmanager
async def _fallen_back(
    server: ServerConfig, settings: Settings, news: RateLimitedLog, outside: Outside, refusal: UpstreamError
) -> AsyncIterator[Transport]:
    """Open the old transport; that it is not there is no news, but the refusal of the new one is."""
    is_open = False
    try:
        async with open_sse(server, settings, news, outside, within=_SHORT) as transport:
            is_open = True
            yield transport
    except UpstreamError as error:
        if is_open:
            raise
        raise refusal from error

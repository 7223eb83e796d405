"""Opening the channel to a server, by the kind of its address."""

from __future__ import annotations

from typing import TYPE_CHECKING

from truename.gateway.faults import UpstreamError
from truename.gateway.http_link import open_http
from truename.gateway.stdio import open_stdio

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from truename.config import ServerConfig, Settings
    from truename.gateway.link import Link
    from truename.gateway.news import News

__all__ = ["open_link"]


def open_link(server: ServerConfig, settings: Settings, news: News) -> AbstractAsyncContextManager[Link]:
    """Return the channel to a server, which entering opens. Raises `UpstreamError` for one that can't be had."""
    if server.type == "sse":
        raise UpstreamError(
            server=server.key,
            kind="protocol",
            problem="is configured for the old SSE transport, which is not supported yet",
            remedy='Use its streamable HTTP address and "type": "http".',
        )
    if server.url is not None:
        longest = (server.timeout or settings.call_timeout) + settings.answer_timeout
        return open_http(server, settings.max_result, longest)
    return open_stdio(server, settings.max_result, news)

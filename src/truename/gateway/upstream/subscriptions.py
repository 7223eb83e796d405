"""Follow what a server tells on ``subscriptions/listen``: changes of its lists, and of single resources.

Source: MCP 2026-07-28: subscriptions/listen.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import anyio

from truename.gateway.background import background
from truename.gateway.protocol.errors import MCPError
from truename.gateway.protocol.specification import SUBSCRIPTION_META_KEY
from truename.gateway.upstream.awaited_response import own_number
from truename.gateway.upstream.transport import TransportError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from truename.gateway.protocol.envelopes import Envelope

__all__ = ["LISTS", "Subscriptions"]

LISTS: Final = ("tools", "prompts", "resources")
# Resources whose change one stream has told and nobody was told of yet.
_MOST_UPDATED: Final = 1_000


class _ListenStream:
    """A ``subscriptions/listen`` that runs: what was told on it and is not passed on, and whether it has ended."""

    def __init__(self) -> None:
        self.is_open = False
        self.takes_resources = False
        self.has_ended = False
        self.updated: dict[str, None] = {}
        self.news = anyio.Event()

    def open(self, honoured: Mapping[str, Any]) -> None:
        if self.is_open:
            return
        self.is_open = True
        self.takes_resources = bool(honoured.get("resourceSubscriptions"))
        self.news.set()

    def update(self, uri: str) -> None:
        # The server may tell of resources within those that were asked for.
        if not self.takes_resources or len(self.updated) >= _MOST_UPDATED:
            return
        self.updated[uri] = None
        self.news.set()

    def end(self) -> None:
        self.has_ended = True
        self.news.set()


class Subscriptions:
    """The subscriptions of one session.

    ``next_number`` returns the id of the next request. ``subscribe`` sends ``subscriptions/listen`` under an id and
    returns at its result; it raises `MCPError` and `TransportError`. ``offers`` says which lists the server has.
    """

    def __init__(
        self,
        next_number: Callable[[], int],
        subscribe: Callable[[int, Mapping[str, Any]], Awaitable[None]],
        offers: Callable[[str], bool],
    ) -> None:
        self._next_number = next_number
        self._subscribe = subscribe
        self._offers = offers
        self._streams: dict[int, _ListenStream] = {}

    async def listen(self, on_open: Callable[[], None]) -> None:
        """Follow the changes of the lists until the server's stream ends; they come as notifications.

        ``on_open`` is called when the server has confirmed it: what changed before is not told.
        """
        wanted = {f"{kind}ListChanged": True for kind in LISTS if self._offers(kind)}
        async with self._stream(wanted) as stream:
            await _opened(stream, on_open)
            while not stream.has_ended:
                await _heard(stream)

    async def listen_to(
        self, uris: tuple[str, ...], on_open: Callable[[], None], on_update: Callable[[str], Awaitable[None]]
    ) -> None:
        """Follow the changes of single resources until the server's stream ends."""
        async with self._stream({"resourceSubscriptions": list(uris)}) as stream:
            await _opened(stream, on_open)
            while stream.updated or not stream.has_ended:
                while stream.updated:
                    uri = next(iter(stream.updated))
                    await on_update(uri)
                    stream.updated.pop(uri, None)
                if not stream.has_ended:
                    await _heard(stream)

    def take(self, found: Envelope) -> bool:
        """Take a notification if it is about the course of a stream; return whether that was all it was about."""
        if not self._streams:
            return False
        params = found.arguments() or {}
        meta = params.get("_meta")
        stamp = meta.get(SUBSCRIPTION_META_KEY) if isinstance(meta, dict) else None
        stream = self._streams.get(own_number(stamp))
        if stream is None:
            return False
        if found.method == "notifications/subscriptions/acknowledged":
            honoured = params.get("notifications")
            if isinstance(honoured, dict):
                stream.open(honoured)
            return True
        if found.method == "notifications/resources/updated" and isinstance(uri := params.get("uri"), str):
            stream.update(uri)
        return False

    def end(self, id: object) -> bool:
        """End the stream of a request that the server cancels; False if the id is not a stream's."""
        stream = self._streams.get(own_number(id))
        if stream is not None:
            stream.end()
        return stream is not None

    @asynccontextmanager
    async def _stream(self, wanted: Mapping[str, Any]) -> AsyncIterator[_ListenStream]:
        number, stream = self._next_number(), _ListenStream()
        self._streams[number] = stream
        try:
            async with background() as tasks:
                tasks.start_soon(self._keep, number, wanted, stream)
                yield stream
        finally:
            del self._streams[number]

    async def _keep(self, number: int, wanted: Mapping[str, Any], stream: _ListenStream) -> None:
        """Keep a stream until the server ends it, in order or not."""
        try:
            await self._subscribe(number, wanted)
            # A result is the end in order, also where nothing came before it.
            stream.open({})
        except (MCPError, TransportError):
            return
        finally:
            stream.end()


async def _opened(stream: _ListenStream, on_open: Callable[[], None]) -> None:
    while not (stream.is_open or stream.has_ended):
        await _heard(stream)
    if stream.is_open:
        on_open()


async def _heard(stream: _ListenStream) -> None:
    await stream.news.wait()
    stream.news = anyio.Event()

"""The lists of one server: taken when it is ready, read anew when it announces that they changed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import anyio

from truename.gateway.events import EventKind, GatewayEvent, OnEvent
from truename.gateway.rate_limited_log import RateLimitedLog
from truename.gateway.upstream.announced import Announced
from truename.gateway.upstream.backoff import FlapDamping
from truename.gateway.upstream.lazy import Lazy
from truename.gateway.upstream_errors import UpstreamError, printable

if TYPE_CHECKING:
    from collections.abc import Callable

    from truename.config import ServerConfig, Settings
    from truename.gateway.protocol.definitions import Definition
    from truename.gateway.upstream.lists import Lists
    from truename.gateway.upstream.server_connection import ServerConnection

__all__ = ["Listed"]

_MOST_READINGS: Final = 3
_UNREAD: Final = "announced a change of its tools, but does not list them"
_UNSENT: Final = "See the server's log, or restart it."


class Listed(Lazy):
    """``changed`` is called when the lists are others.

    ``announce`` is called, with its key, when the server says so, or when that was found by looking: replicas are told.
    """

    def __init__(
        self, config: ServerConfig, settings: Settings, *, changed: Callable[[], None], on_event: OnEvent, is_own: bool
    ) -> None:
        super().__init__(config, settings, is_own=is_own)
        self._changed = changed
        self._on_event = on_event
        self.announce: Callable[[str], None] = _ignore_announced
        self._announced = Announced()
        self._damping = FlapDamping()
        self._log = RateLimitedLog()
        self._read_at = 0.0
        self._is_looking = False

    def _admit(self, tools: tuple[Definition, ...], lists: Lists) -> bool:
        self._read_at = time.monotonic()
        if is_new := self.takes(tools, lists):
            self._changed()
        return is_new

    async def _refresh(self, connection: ServerConnection) -> None:
        announced = self._announced
        while True:
            await announced.changed()
            await anyio.sleep(self._damping.delay())
            announced.follow()
            is_looking, self._is_looking = self._is_looking, False
            try:
                with anyio.fail_after(self.settings.startup_timeout):
                    async with announced.reading():
                        tools, lists = await connection.list_all(self.lists)
            except (UpstreamError, TimeoutError) as error:
                text = f"server {printable(self.key)!r}: its lists cannot be refreshed: {error or 'it took too long'}"
                self._log.tell("anew", text)
                continue
            self._renew(tools, lists, is_unannounced=is_looking)

    def _renew(self, tools: tuple[Definition, ...], lists: Lists, *, is_unannounced: bool = False) -> None:
        if self._admit(tools, lists):
            if is_unannounced:
                # The server told none of the other replicas either.
                self.announce(self.key)
            self._tell("changed", tools=len(tools))
            if self.session is not None:
                self._keep(self.session)

    async def settle_announced(self) -> None:
        """Read the tools anew where the server announced a change since. Raises `UpstreamError` where that fails."""
        connection, announced = self._connection, self._announced
        for _ in range(_MOST_READINGS):
            if connection is None or announced.is_read or connection.closed:
                return
            try:
                with anyio.fail_after(self.settings.startup_timeout):
                    async with announced.reading():
                        tools = await connection.list_tools()
            except TimeoutError:
                break
            if self._connection is connection:
                self._renew(tools, self.lists)
        if not announced.is_read:
            raise UpstreamError(server=self.key, kind="protocol", problem=_UNREAD, remedy=_UNSENT)

    async def read_anew(self) -> None:
        """Read the lists anew, of a server that is connected: another replica was told that they changed."""
        announced = self._announced
        if self._connection is not None:
            announced.change()
            await announced.read()

    def look_again(self, after: float) -> None:
        """Have the lists read again if they were read so many seconds ago: nothing announces that skills changed."""
        if self._connection is not None and time.monotonic() - self._read_at >= after:
            self._read_at = time.monotonic()
            self._is_looking = True
            self._announced.change()

    def _mark_dirty(self) -> None:
        self._announced.change()
        self.announce(self.key)

    def _tell(self, kind: EventKind, *, tools: int | None = None, seconds: float | None = None, text: str = "") -> None:
        self._on_event(GatewayEvent(kind=kind, server=self.key, tools=tools, seconds=seconds, text=text))


def _ignore_announced(_: str) -> None:
    pass

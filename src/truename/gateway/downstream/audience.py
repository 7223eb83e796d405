"""The clients of one endpoint, and how they are told that lists or resources changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import anyio
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp.server.connection import Connection
    from mcp_types import SubscriptionsListenRequestParams, SubscriptionsListenResult

    from truename.gateway.protocol.sdk import Request
    from truename.gateway.views.view import ViewSpec

    # A view whose tools changed, or the kind of another list that did.
    Change = ViewSpec | str

__all__ = ["Audience"]

_TIMEOUT: Final = 5.0
_VIEW_KEY: Final = "truename.view"
_EVENTS: Final[Mapping[str, ServerEvent]] = {
    "tools": ToolsListChanged(),
    "prompts": PromptsListChanged(),
    "resources": ResourcesListChanged(),
}


class Audience:
    """Sessions, and streams of clients without one (``most``). ``spec`` is the view of who asked for none."""

    def __init__(self, spec: ViewSpec, most: int) -> None:
        self._spec = spec
        self._bus = InMemorySubscriptionBus()
        self._streams = ListenHandler(self._bus, max_subscriptions=most)
        self._sessions: set[Connection] = set()
        self._to_tell: set[Change] = set()
        self._telling = False

    def join(self, connection: Connection) -> None:
        """Have a session told, until it ends."""
        self._sessions.add(connection)
        connection.exit_stack.callback(self._sessions.discard, connection)

    def saw(self, connection: Connection, spec: ViewSpec) -> None:
        """Note which view somebody got: its changes are theirs."""
        connection.state[_VIEW_KEY] = spec

    async def listen(self, request: Request, params: SubscriptionsListenRequestParams) -> SubscriptionsListenResult:
        """Have a client without a session told on this stream, until it ends."""
        return await self._streams(request, params)

    async def updated(self, uri: str) -> None:
        """Tell the streams that a resource changed."""
        await self._bus.publish(ResourceUpdated(uri=uri))

    async def notify(self, views: frozenset[ViewSpec], others: frozenset[tuple[str, str]] = frozenset()) -> None:
        """Tell what changed, in both eras: tools of these views, prompts and resources of these servers.

        A slow client is not waited for long. What changes while that goes on is told after it, all at once.
        """
        self._to_tell |= views
        self._to_tell |= {kind for kind, server in others if self._spec.only in {None, server}}
        if self._telling:
            return
        self._telling = True
        try:
            while self._to_tell:
                told, self._to_tell = frozenset(self._to_tell), set()
                await self._tell_all(told)
        finally:
            self._telling = False

    async def _tell_all(self, changed: frozenset[Change]) -> None:
        for kind, event in _EVENTS.items():
            if (self._spec if kind == "tools" else kind) in changed:
                await self._bus.publish(event)
        async with anyio.create_task_group() as tasks:
            for connection in list(self._sessions):
                if connection.initialized.is_set():
                    tasks.start_soon(_tell, connection, self._kinds(connection, changed))

    def _kinds(self, connection: Connection, changed: frozenset[Change]) -> list[str]:
        view = connection.state.get(_VIEW_KEY, self._spec)
        return [kind for kind in _EVENTS if (view if kind == "tools" else kind) in changed]

    @staticmethod
    async def all_changed(offered: Callable[[str], bool], connection: Connection) -> None:
        """Tell one session that each list may be another; ``offered`` tells which there are beside that of tools."""
        await _tell(connection, [kind for kind in _EVENTS if kind == "tools" or offered(kind)])

    def close(self) -> None:
        """End the open streams with the graceful last word that the protocol has for it."""
        self._streams.close()


async def _tell(connection: Connection, kinds: list[str]) -> None:
    with anyio.move_on_after(_TIMEOUT):
        for kind in kinds:
            await connection.notify(f"notifications/{kind}/list_changed", None)

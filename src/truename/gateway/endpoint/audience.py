"""The clients of one endpoint, and how they are told that lists or resources changed."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

import anyio

from truename.gateway.protocol.errors import MCPError
from truename.gateway.protocol.specification import INTERNAL_ERROR

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from truename.gateway.mcp.connection import ClientConnection
    from truename.gateway.mcp.requests import Request
    from truename.gateway.views.view import ViewSpec

    # A view whose tools changed, or the kind of another list that did.
    Change = ViewSpec | str

__all__ = ["Audience"]

log: Final = logging.getLogger("truename.gateway")

_TIMEOUT: Final = 5.0
_VIEW_KEY: Final = "truename.view"
_KINDS: Final = ("tools", "prompts", "resources")
_MOST_UNREAD: Final = 1_024
_ID_KEY: Final = "io.modelcontextprotocol/subscriptionId"
_ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
_UPDATED: Final = "notifications/resources/updated"


class _Subscription:
    """A notification stream of a client without a session: its subscriptions and its unread notifications."""

    def __init__(self, wanted: Mapping[str, Any]) -> None:
        # What is acknowledged is what will be told.
        self.honoured: dict[str, Any] = {
            key: True for kind in _KINDS if wanted.get(key := f"{kind}ListChanged") is True
        }
        if wanted.get("resourceSubscriptions"):
            self.honoured["resourceSubscriptions"] = list(wanted["resourceSubscriptions"])
        self._uris = frozenset(self.honoured.get("resourceSubscriptions", ()))
        self._sender, self.events = anyio.create_memory_object_stream[tuple[str, dict[str, Any]]](_MOST_UNREAD)

    def tell(self, kind: str) -> None:
        if f"{kind}ListChanged" in self.honoured:
            self._put(f"notifications/{kind}/list_changed", {})

    def updated(self, uri: str) -> None:
        if uri in self._uris:
            self._put(_UPDATED, {"uri": uri})

    def _put(self, method: str, params: dict[str, Any]) -> None:
        try:
            self._sender.send_nowait((method, params))
        except anyio.WouldBlock:
            # It listens again and lists anew: nothing is lost that it would have read.
            log.warning("a client does not read its subscription, which is ended")
            self.close()
        except anyio.ClosedResourceError:
            return

    def close(self) -> None:
        """End the stream after the client has read the notifications that wait."""
        self._sender.close()


class Audience:
    """Sessions, and streams of clients without one (``most``). ``spec`` is the view of who asked for none."""

    def __init__(self, spec: ViewSpec, most: int) -> None:
        self._spec = spec
        self._most = most
        self._streams: set[_Subscription] = set()
        self._sessions: set[ClientConnection] = set()
        self._to_tell: set[Change] = set()
        self._telling = False

    def join(self, connection: ClientConnection) -> None:
        """Have a session told, until it ends."""
        if connection in self._sessions:
            # Its client repeats the handshake.
            return
        self._sessions.add(connection)
        connection.exit_stack.callback(self._sessions.discard, connection)

    def saw(self, connection: ClientConnection, spec: ViewSpec) -> None:
        """Note which view somebody got: its changes are theirs."""
        connection.state[_VIEW_KEY] = spec

    async def listen(self, request: Request, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """Have a client without a session told on this stream, until it goes away or the gateway ends it."""
        if len(self._streams) >= self._most:
            raise MCPError(INTERNAL_ERROR, "Subscription limit reached")
        meta, stream = {_ID_KEY: request.id}, _Subscription(wanted)
        # Registered before the acknowledgement, so that no change in between is missed.
        self._streams.add(stream)
        try:
            await request.channel.notify(_ACKNOWLEDGED, {"notifications": stream.honoured, "_meta": meta})
            async for method, params in stream.events:
                await request.channel.notify(method, {**params, "_meta": meta})
        finally:
            self._streams.discard(stream)
            stream.close()
            stream.events.close()
        return {"_meta": meta}

    async def updated(self, uri: str) -> None:
        """Tell the streams that a resource changed."""
        for stream in list(self._streams):
            stream.updated(uri)

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
        for kind in _KINDS:
            if (self._spec if kind == "tools" else kind) in changed:
                for stream in list(self._streams):
                    stream.tell(kind)
        async with anyio.create_task_group() as tasks:
            for connection in list(self._sessions):
                if connection.is_initialized:
                    tasks.start_soon(_tell, connection, self._kinds(connection, changed))

    def _kinds(self, connection: ClientConnection, changed: frozenset[Change]) -> list[str]:
        view = connection.state.get(_VIEW_KEY, self._spec)
        return [kind for kind in _KINDS if (view if kind == "tools" else kind) in changed]

    @staticmethod
    async def all_changed(offered: Callable[[str], bool], connection: ClientConnection) -> None:
        """Tell one session that each list may be another; ``offered`` tells which there are beside that of tools."""
        await _tell(connection, [kind for kind in _KINDS if kind == "tools" or offered(kind)])

    def close(self) -> None:
        """End the open streams with the graceful last word that the protocol has for it."""
        for stream in list(self._streams):
            stream.close()


async def _tell(connection: ClientConnection, kinds: list[str]) -> None:
    with anyio.move_on_after(_TIMEOUT):
        for kind in kinds:
            await connection.notify(f"notifications/{kind}/list_changed", None)

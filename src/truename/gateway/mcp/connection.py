"""A client's connection: what it declared, its state, and the ways back to it.

In the handshake versions a connection is a session; in 2026-07-28 it is one request.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import anyio

from truename.gateway.mcp.messages import notification
from truename.gateway.protocol.sdk import MCPError
from truename.gateway.protocol.specification import CONNECTION_CLOSED, HANDSHAKE_VERSIONS, INVALID_REQUEST

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from truename.gateway.mcp.client import ClientDescription
    from truename.gateway.mcp.requests import RequestId
    from truename.gateway.protocol.sdk import OnProgress

    Write = Callable[[dict[str, Any]], Awaitable[None]]

__all__ = ["Channel", "ClientConnection", "PendingRequests", "Write"]

log: Final = logging.getLogger("truename.gateway")

_CLOSING_SECONDS: Final = 5.0
_LAST_WORD: Final = 1.0
_GONE: Final = (anyio.BrokenResourceError, anyio.ClosedResourceError)
# Over pipes in 2026-07-28 changes are told on streams that the client opened (subscriptions/listen), nowhere else.
_SUBSCRIBED: Final = frozenset(
    {
        *("notifications/tools/list_changed", "notifications/prompts/list_changed"),
        *("notifications/resources/list_changed", "notifications/resources/updated"),
    }
)


class PendingRequests:
    """Requests that were sent to a client and are not answered. Ids are compared as texts."""

    def __init__(self, first: int = 1) -> None:
        self._numbers = count(first)
        self._waiting: dict[str, tuple[asyncio.Future[dict[str, Any]], OnProgress | None]] = {}
        self._is_closed = False

    async def ask(
        self,
        write: Write,
        method: str,
        params: Mapping[str, Any] | None,
        *,
        request_id: RequestId | None = None,
        on_progress: OnProgress | None = None,
    ) -> dict[str, Any]:
        """Send a request and return its result. Raises `MCPError`: the client's, or CONNECTION_CLOSED."""
        if self._is_closed:
            raise MCPError(CONNECTION_CLOSED, "Connection closed")
        id = next(self._numbers) if request_id is None else request_id
        body = dict(params or {})
        if on_progress is not None:
            body["_meta"] = {**(body.get("_meta") or {}), "progressToken": id}
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[str(id)] = future, on_progress
        try:
            await write({"jsonrpc": "2.0", "id": id, "method": method, **({"params": body} if body else {})})
            message = await future
        except anyio.get_cancelled_exc_class():
            with anyio.move_on_after(_LAST_WORD, shield=True):
                await write(notification("notifications/cancelled", {"requestId": id, "reason": "caller cancelled"}))
            raise
        finally:
            del self._waiting[str(id)]
        if (problem := message.get("error")) is not None:
            raise MCPError(problem["code"], problem["message"], problem.get("data"))
        result: dict[str, Any] = message["result"]
        return result

    def answered(self, message: dict[str, Any]) -> None:
        """Give a response to the request that waits for it, if one does."""
        future, _ = self._waiting.get(str(message.get("id")), (None, None))
        if future is not None and not future.done():
            future.set_result(message)

    async def progressed(self, params: Mapping[str, Any]) -> None:
        """Tell the sender of a request how far the client has got."""
        _, tell = self._waiting.get(str(params.get("progressToken")), (None, None))
        progress, total, message = (params.get(name) for name in ("progress", "total", "message"))
        if tell is not None and isinstance(progress, int | float):
            await tell(progress, total if isinstance(total, int | float) else None, message)

    def close(self) -> None:
        """Answer all with CONNECTION_CLOSED: the client is gone."""
        self._is_closed = True
        closed = {"error": {"code": CONNECTION_CLOSED, "message": "Connection closed"}}
        for future, _ in list(self._waiting.values()):
            if not future.done():
                future.set_result(closed)


class Channel:
    """A way back to a client: on the stream of one request while that is answered, or beside all requests.

    ``requests`` is None where the client gets no requests: in 2026-07-28.
    """

    def __init__(
        self,
        write: Write,
        requests: PendingRequests | None = None,
        *,
        progress_token: RequestId | None = None,
        drops: frozenset[str] = frozenset(),
    ) -> None:
        self._write = write
        self._requests = requests
        self._token = progress_token
        self._drops = drops
        self._is_closed = False

    @classmethod
    def beside_requests(cls, write: Write) -> Channel:
        """Return the channel of a pipe in 2026-07-28 that belongs to no request."""
        return cls(write, drops=_SUBSCRIBED)

    @property
    def can_send_request(self) -> bool:
        """Whether the client can be sent requests here."""
        return self._requests is not None and not self._is_closed

    async def send_request(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        *,
        request_id: RequestId | None = None,
        on_progress: OnProgress | None = None,
    ) -> dict[str, Any]:
        """Send a request to the client and return its result. Raises `MCPError`."""
        if self._requests is None or self._is_closed:
            raise MCPError(INVALID_REQUEST, f"The client cannot be sent a request here ({method}).")
        return await self._requests.ask(self._write, method, params, request_id=request_id, on_progress=on_progress)

    async def notify(self, method: str, params: Mapping[str, Any] | None) -> None:
        """Send a notification, if the client can still read it."""
        if self._is_closed or method in self._drops:
            return
        try:
            await self._write(notification(method, params))
        except _GONE:
            return

    async def report_progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Tell how far the request has got, if the client wants to know."""
        if self._token is None:
            return
        params: dict[str, Any] = {"progressToken": self._token, "progress": progress}
        params |= {} if total is None else {"total": total}
        await self.notify("notifications/progress", params if message is None else {**params, "message": message})

    def close(self) -> None:
        """Send nothing more: the request was answered."""
        self._is_closed = True


async def _to_nobody(_: dict[str, Any]) -> None:
    """Drop a message: in 2026-07-28 nothing is sent over HTTP outside of a request's own response."""


_NOWHERE: Final = Channel(_to_nobody)


class ClientConnection:
    """What is known of a client, for as long as its session or its request lasts.

    ``channel`` is the way back that belongs to no request. ``state`` is a place for notes of others; what is put on
    `exit_stack` is done at the end.
    """

    def __init__(self, channel: Channel = _NOWHERE, *, pipe: object | None = None) -> None:
        self.channel = channel
        # All requests over one pipe share it.
        self.pipe = pipe
        self.protocol_version = HANDSHAKE_VERSIONS[-1]
        self.client: ClientDescription | None = None
        self.is_initialized = False
        self.state: dict[str, Any] = {}

    @classmethod
    def of_request(cls, version: str, channel: Channel = _NOWHERE, *, pipe: object | None = None) -> ClientConnection:
        """Return the connection that one request of 2026-07-28 is."""
        connection = cls(channel, pipe=pipe)
        connection.protocol_version, connection.is_initialized = version, True
        return connection

    def agree(self, version: str, client: ClientDescription) -> None:
        """Note what the handshake agreed on."""
        self.protocol_version, self.client = version, client

    @property
    def may_request(self) -> bool:
        """Whether the client has introduced itself, so that it may send requests other than ping."""
        return self.is_initialized or self.client is not None

    @cached_property
    def exit_stack(self) -> AsyncExitStack:
        """What is done when the connection ends."""
        return AsyncExitStack()

    async def notify(self, method: str, params: Mapping[str, Any] | None) -> None:
        """Send a notification that belongs to no request."""
        await self.channel.notify(method, params)

    async def close(self) -> None:
        """Do what is to be done at the end, for at most five seconds. Raises nothing."""
        if "exit_stack" not in self.__dict__:
            return
        with anyio.move_on_after(_CLOSING_SECONDS, shield=True) as limit:
            try:
                await self.exit_stack.aclose()
            except Exception:
                log.exception("the end of a client's connection failed")
        if limit.cancelled_caught:
            log.warning("the end of a client's connection took too long")

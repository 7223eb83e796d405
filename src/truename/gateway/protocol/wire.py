"""The shortest way for what is forwarded: beside the SDK's messages, each of which costs a task and two streams."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

import anyio
import msgspec
from mcp.shared.dispatcher import coerce_request_id
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import progress_token_from_params
from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp_types import CONNECTION_CLOSED, ErrorData, JSONRPCNotification, JSONRPCRequest

from truename.gateway.protocol.marking import MarkedDispatcher
from truename.gateway.protocol.tracing import traced

if TYPE_CHECKING:
    import contextvars
    from collections.abc import Mapping

    from mcp.client._transport import TransportStreams
    from mcp.shared.dispatcher import OnNotify, OnRequest, ProgressFnT
    from mcp.shared.message import MessageMetadata
    from mcp_types import JSONRPCMessage, RequestId

__all__ = ["Carrier", "Outcome", "Take", "Wire"]

Outcome = dict[str, Any] | ErrorData
Take = Callable[[SessionMessage], Awaitable[None]]
_Told = Callable[[], Awaitable[Any]]

_GONE: Final = (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError)
_LAST_WORD: Final = 1.0
_IN_ORDER: Final = frozenset({"notifications/progress", "notifications/message"})


class Carrier(Protocol):
    """A transport's own way to send a request."""

    def begin(self, hear: Take) -> None:
        """Learn to whom the connection's messages can be given, in place of its stream."""

    async def carry(self, number: RequestId, message: bytes, headers: Mapping[str, str], take: Take) -> Outcome | None:
        """Send a request and return its outcome; None if that comes among the connection's messages.

        ``take`` is given what comes before it on a stream of its own. Raises `OSError` or anyio's errors of a resource
        that is gone.
        """


class _ByStream:
    """The way of a transport that has none of its own: as one of the connection's messages."""

    def begin(self, hear: Take) -> None:
        pass

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    async def carry(self, number: RequestId, message: bytes, headers: Mapping[str, str], take: Take) -> None:  # noqa: ARG002 - a `Carrier`
        request = JSONRPCRequest.model_validate_json(message)
        await self._wire.write(request, ClientMessageMetadata(headers=dict(headers)))


class _Waiter:
    """Who waits for an answer, in the form in which the SDK's dispatcher keeps them."""

    def __init__(self, on_progress: ProgressFnT | None) -> None:
        self.outcome: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self.on_progress = on_progress
        self._untold = 0
        self._held: Outcome | None = None

    @property
    def send(self) -> _Waiter:
        return self

    def send_nowait(self, outcome: Outcome) -> None:
        if self._untold:
            self._held = outcome
        elif not self.outcome.done():
            self.outcome.set_result(outcome)

    def begin(self) -> None:
        """Let no answer through before what is told of the call now."""
        self._untold += 1

    def end(self) -> None:
        """Let an answer through that waits for nothing any more."""
        self._untold -= 1
        if not self._untold and self._held is not None:
            self.send_nowait(self._held)

    def release(self) -> None:
        """Wait for nothing any more: the connection is gone."""
        self._untold = 0


class Wire(MarkedDispatcher):
    """The SDK's dispatcher for what a session says for itself, and a way of its own for what is forwarded."""

    def __init__(self, streams: TransportStreams, carrier: Carrier | None) -> None:
        super().__init__(streams[0], streams[1])
        stream = _ByStream(self)
        # The first request goes behind what the session said of itself: a server may refuse one that comes before
        # `notifications/initialized`, and answers it by what it knew until then.
        self._carrier: Carrier = stream
        self._next_carrier: Carrier = carrier or stream
        self._waiters: dict[RequestId, _Waiter] = {}
        self._inline: list[_Told] | None = None
        self._on_request: OnRequest | None = None
        self._on_notify: OnNotify | None = None

    async def run(self, on_request: OnRequest, on_notify: OnNotify, *more: Any, **others: Any) -> None:
        """Run as the SDK's does."""
        self._on_request, self._on_notify = on_request, on_notify
        self._next_carrier.begin(self._hear)
        await super().run(on_request, on_notify, *more, **others)

    async def _hear(self, item: SessionMessage) -> None:
        """Take one of the connection's messages, in the order of their coming. Raises `anyio.ClosedResourceError`."""
        if not self._running or self._on_request is None or self._on_notify is None:
            raise anyio.ClosedResourceError
        await self._dispatch(item, self._on_request, self._on_notify, None)

    async def write(self, message: JSONRPCMessage, metadata: MessageMetadata) -> None:
        """Send one of the connection's messages. Raises anyio's errors of a stream that is closed."""
        await self._write(message, metadata)

    async def forward(
        self,
        method: str,
        params: dict[str, Any],
        *,
        number: RequestId,
        headers: Mapping[str, str],
        on_progress: ProgressFnT | None = None,
    ) -> dict[str, Any]:
        """Send a request and return its result as the server sent it. Raises `MCPError`."""
        if on_progress is not None:
            params = {**params, "_meta": {**(params.get("_meta") or {}), "progressToken": number}}
        message = {"jsonrpc": "2.0", "id": number, "method": method, **({"params": params} if params else {})}

        async def send(message: dict[str, Any]) -> Outcome:
            return await self._outcome(number, msgspec.json.encode(message), headers, on_progress)

        outcome = await traced(message, send)
        if isinstance(outcome, ErrorData):
            raise MCPError(outcome.code, outcome.message, outcome.data)
        return outcome

    async def _outcome(
        self, number: RequestId, message: bytes, headers: Mapping[str, str], on_progress: ProgressFnT | None
    ) -> Outcome:
        if self._closed:
            return _closed()
        waiter = _Waiter(on_progress)
        # Where the SDK's own are kept: a closing connection, progress and answers find it there.
        self._pending[number] = cast("Any", waiter)
        self._waiters[number] = waiter
        try:
            found = await self._carrier.carry(number, message, headers, self._take)
            outcome = await waiter.outcome if found is None else found
        except _GONE:
            self._is_unwritable = True
            return _closed()
        except anyio.get_cancelled_exc_class():
            cancel = partial(self._cancel_outbound, number, "caller cancelled", None)
            await self._final_write(cancel, shield=True, timeout=_LAST_WORD, describe=f"cancel of request {number!r}")
            raise
        else:
            self._carrier = self._next_carrier
            return outcome
        finally:
            self._pending.pop(number, None)
            del self._waiters[number]

    async def _take(self, item: SessionMessage) -> None:
        """Take what came on a request's own stream: what is told of a call comes before its answer, one by one."""
        message = item.message
        if isinstance(message, JSONRPCNotification) and message.method in _IN_ORDER:
            for told in self._told(message, None, self._on_notify):
                await told()
        else:
            await self._hear(item)

    def _dispatch_notification(
        self, msg: JSONRPCNotification, metadata: MessageMetadata, on_notify: Any, sender_ctx: Any
    ) -> None:
        waiters = self._about(msg)
        if not waiters:
            super()._dispatch_notification(msg, metadata, on_notify, sender_ctx)
            return
        for told in self._told(msg, metadata, on_notify):
            for waiter in waiters:
                waiter.begin()
            self._spawn(_until_told, told, waiters, sender_ctx=sender_ctx)

    def _about(self, msg: JSONRPCNotification) -> list[_Waiter]:
        """Return who waits for the answers that must not overtake a notification.

        A log message does not say which call it is about: it is relayed only if all calls are of one session.
        """
        if msg.method == "notifications/message":
            return list(self._waiters.values())
        token = progress_token_from_params({"_meta": msg.params}) if msg.method == "notifications/progress" else None
        waiter = None if token is None else self._waiters.get(coerce_request_id(token))
        return [] if waiter is None else [waiter]

    def _told(self, message: JSONRPCNotification, metadata: MessageMetadata, on_notify: Any) -> list[_Told]:
        """Return what the SDK would begin a task for, each, which the answer would overtake."""
        self._inline = told = list[_Told]()
        try:
            super()._dispatch_notification(message, metadata, on_notify, None)
        finally:
            self._inline = None
        return told

    def _spawn(self, fn: Callable[..., Awaitable[Any]], *args: object, sender_ctx: contextvars.Context | None) -> None:
        if self._inline is None:
            super()._spawn(fn, *args, sender_ctx=sender_ctx)
        else:
            self._inline.append(partial(fn, *args))

    def _fan_out_closed(self) -> None:
        for waiter in self._waiters.values():
            waiter.release()
        super()._fan_out_closed()


async def _until_told(told: _Told, waiters: list[_Waiter]) -> None:
    try:
        await told()
    finally:
        for waiter in waiters:
            waiter.end()


def _closed() -> ErrorData:
    return ErrorData(code=CONNECTION_CLOSED, message="Connection closed")

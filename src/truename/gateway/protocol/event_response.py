"""A response that is a stream of events, in two tasks; the one that the SDK uses takes five, for each call."""

from __future__ import annotations

from types import FunctionType
from typing import TYPE_CHECKING, Any, Final

import anyio
from sse_starlette.event import ensure_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from anyio.streams.memory import MemoryObjectReceiveStream
    from mcp.server.streamable_http import SSEEvent
    from starlette.types import Receive, Scope, Send

__all__ = ["EventResponse", "with_names"]

PING_SECONDS: Final = 15.0
_COMMENT: Final = b": ping\r\n\r\n"


class EventResponse:
    """Sends the events of a stream until that ends, or the client goes away.

    It takes what the SDK gives `sse_starlette.EventSourceResponse`. A comment every 15 seconds keeps proxies from
    closing the connection. It does not look for the end of the web server: the sessions end before that.
    """

    def __init__(
        self,
        content: MemoryObjectReceiveStream[SSEEvent],
        *,
        data_sender_callable: Callable[[], Coroutine[Any, Any, None]],
        headers: Mapping[str, str],
    ) -> None:
        self._events = content
        self._write_events = data_sender_callable
        self._is_open = True
        self._headers = [(name.lower().encode(), value.encode()) for name, value in headers.items()]

    async def __call__(self, _: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._write_events)
            tasks.start_soon(self._watch, receive, send, tasks.cancel_scope)
            headers = [*self._headers, (b"x-accel-buffering", b"no")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            async for event in self._events:
                await send({"type": "http.response.body", "body": ensure_bytes(event, "\r\n"), "more_body": True})
            self._is_open = False
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            tasks.cancel_scope.cancel()

    async def _watch(self, receive: Receive, send: Send, scope: anyio.CancelScope) -> None:
        """End it when the client goes away; until then keep the connection alive."""
        while True:
            with anyio.move_on_after(PING_SECONDS) as waited:
                while (await receive())["type"] != "http.disconnect":
                    pass
            if not waited.cancelled_caught:
                scope.cancel()
                return
            if self._is_open:
                await send({"type": "http.response.body", "body": _COMMENT, "more_body": True})


def with_names(function: Callable[..., Any], **names: Any) -> Any:
    """Return a function of another module that finds other things under these names; that module stays as it is."""
    assert isinstance(function, FunctionType)  # noqa: S101 - a plain function of the SDK
    other = FunctionType(function.__code__, {**function.__globals__, **names}, function.__name__, function.__defaults__)
    other.__kwdefaults__ = function.__kwdefaults__
    return other

"""A dispatcher that a flood of messages cannot fill: the SDK's begins a task for each, whoever sends them."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp_types import JSONRPCNotification, JSONRPCRequest

if TYPE_CHECKING:
    import contextvars
    from collections.abc import Awaitable, Callable

    from mcp.shared.message import SessionMessage

__all__ = ["MOST_AT_ONCE", "BoundedDispatcher"]

log: Final = logging.getLogger("truename.gateway")

# What one server says unasked and is not dealt with yet: progress, log messages, changes, questions.
MOST_AT_ONCE: Final = 1_000


class BoundedDispatcher(JSONRPCDispatcher[Any]):
    """Drops what a server says unasked while `MOST_AT_ONCE` of it are being dealt with; answers always come through."""

    _unfinished = 0
    dropped = 0

    async def _dispatch(self, item: SessionMessage | Exception, *more: Any) -> None:
        if self._unfinished >= MOST_AT_ONCE and _is_unasked(item):
            self.dropped += 1
            return
        await super()._dispatch(item, *more)

    def _spawn(self, fn: Callable[..., Awaitable[Any]], *args: object, sender_ctx: contextvars.Context | None) -> None:
        async def counted(*given: object) -> None:
            try:
                await fn(*given)
            finally:
                self._unfinished -= 1

        self._unfinished += 1
        super()._spawn(counted, *args, sender_ctx=sender_ctx)


def _is_unasked(item: SessionMessage | Exception) -> bool:
    return not isinstance(item, Exception) and isinstance(item.message, JSONRPCRequest | JSONRPCNotification)

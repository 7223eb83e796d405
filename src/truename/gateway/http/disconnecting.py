"""Cancel what is done for a client when the client disconnects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import anyio

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from anyio.abc import TaskGroup
    from starlette.types import Receive

    from truename.gateway.cancellation import Cancellation

__all__ = ["ON_DISCONNECT", "Disconnecting"]

ON_DISCONNECT: Final = "truename.on_disconnect"
"""Where a web server that can do so puts a function into the scope; what is given to it is called when the client has
disconnected, and what it returns takes that back."""


class Disconnecting:
    """Cancels a block when the client disconnects, while the block lasts."""

    def __init__(self, scope: Mapping[str, Any], receive: Receive, cancellation: Cancellation) -> None:
        self._register = scope.get(ON_DISCONNECT)
        self._receive = receive
        self._cancellation = cancellation
        self._tasks: TaskGroup | None = None
        self._take_back: Callable[[], None] | None = None

    async def __aenter__(self) -> None:
        if self._register is not None:
            self._take_back = self._register(self._cancellation.cancel)
            return
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        self._tasks.start_soon(self._watch)

    async def __aexit__(self, *failure: Any) -> bool | None:
        if self._take_back is not None:
            self._take_back()
        if self._tasks is None:
            return None
        self._tasks.cancel_scope.cancel()
        return await self._tasks.__aexit__(*failure)

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._cancellation.cancel()

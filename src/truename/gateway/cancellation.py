"""Let others end a block: asyncio's cancellation of the task that runs it, for this block alone."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["Cancellation"]


class Cancellation:
    """A block that `cancel` ends, without an error, at the await where its task stands.

    A cancel scope of anyio does that too, for five times the processor time of a call that nobody cancels. What this
    lacks: it cancels once, so an await in a ``finally`` of the block still runs; it has no time limit and no shield;
    and one object serves one block.

    >>> async def ended():
    ...     with Cancellation() as cancellation:
    ...         asyncio.get_running_loop().call_soon(cancellation.cancel)
    ...         await asyncio.sleep(60)
    ...     return cancellation.has_ended_block
    >>> asyncio.run(ended())
    True
    """

    __slots__ = ("_cancelling", "_is_cancelled", "_task", "has_ended_block")

    def __init__(self) -> None:
        self.has_ended_block = False
        self._is_cancelled = False
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0

    def __enter__(self) -> Cancellation:
        task = asyncio.current_task()
        if task is None:
            message = "a block that can be cancelled needs a task"
            raise RuntimeError(message)
        self._task, self._cancelling = task, task.cancelling()
        if self._is_cancelled:
            self._is_cancelled = False
            self.cancel()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        task, self._task = self._task, None
        if not self._is_cancelled or task is None:
            return False
        is_alone = task.uncancel() <= self._cancelling
        self.has_ended_block = is_alone and kind is asyncio.CancelledError
        return self.has_ended_block

    def cancel(self) -> None:
        """End the block; before it begins, at its first await. Does nothing after it."""
        if self._is_cancelled:
            return
        if self._task is not None and self._task is asyncio.current_task():
            # The block may have no await any more, and what comes after it is not to be cancelled.
            asyncio.get_running_loop().call_soon(self.cancel)
            return
        self._is_cancelled = True
        if self._task is not None:
            self._task.cancel()

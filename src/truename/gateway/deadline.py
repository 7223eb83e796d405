"""A time limit for the task that runs a block: one timer, which can stand still."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["Deadline"]


class Deadline:
    """Ends its block with `TimeoutError` after so many seconds, in which it does not stand still.

    It costs a fifth of what a cancel scope does, and serves one task; scopes may stand around it, and in it.
    """

    __slots__ = ("_cancelling", "_handle", "_has_expired", "_left", "_task")

    def __init__(self, seconds: float) -> None:
        self._left = seconds
        self._handle: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0
        self._has_expired = False

    def __enter__(self) -> Deadline:
        task = asyncio.current_task()
        if task is None:
            message = "a deadline needs a task"
            raise RuntimeError(message)
        self._task, self._cancelling = task, task.cancelling()
        self._handle = asyncio.get_running_loop().call_later(self._left, self._expire)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        task, self._task = self._task, None
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        if (
            self._has_expired
            and task is not None
            and task.uncancel() <= self._cancelling
            and kind is asyncio.CancelledError
        ):
            raise TimeoutError from error

    def _expire(self) -> None:
        self._handle = None
        if self._task is not None:
            self._has_expired = True
            self._task.cancel()

    def stand_still(self) -> None:
        """Stop the clock."""
        if self._handle is not None:
            self._left = self._handle.when() - asyncio.get_running_loop().time()
            self._handle.cancel()
            self._handle = None

    def go_on(self) -> None:
        """Let the clock go on, unless the block has ended."""
        if self._task is not None and self._handle is None and not self._has_expired:
            self._handle = asyncio.get_running_loop().call_later(self._left, self._expire)

"""Tasks that serve a block: they end with it, and its own errors pass as they are. Tasks that end by themselves."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

import anyio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine

    from anyio.abc import TaskGroup

__all__ = ["background", "begin"]

# The loop itself keeps tasks weakly.
_BEGUN: Final = set[asyncio.Task[None]]()


def begin(work: Coroutine[Any, Any, None]) -> None:
    """Begin a task that ends by itself. A timer may do so, which runs in no task, and so cannot use a task group."""
    task = asyncio.get_running_loop().create_task(work)
    _BEGUN.add(task)
    task.add_done_callback(_BEGUN.discard)


def _know_event_loop() -> None:
    """Have callbacks that this task registers from now on know that they run in asyncio.

    A callback runs in no task. Where sniffio is installed, anyio asks it which library runs; it finds that by the task,
    or by this variable, which `anyio.run` sets and `asyncio.run` does not.
    """
    with suppress(ModuleNotFoundError):
        from sniffio import current_async_library_cvar  # noqa: PLC0415 - without it, anyio asks asyncio

        current_async_library_cvar.set("asyncio")


@asynccontextmanager
async def background() -> AsyncIterator[TaskGroup]:
    """Give a task group that is cancelled when the block ends.

    A plain task group would put whatever the block raises into an `ExceptionGroup`.
    """
    failure: Exception | None = None
    _know_event_loop()
    async with anyio.create_task_group() as tasks:
        try:
            yield tasks
        except Exception as error:  # noqa: BLE001 - raised again below, outside of the group
            failure = error
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure


class LoopTurn:
    """Tells the turns of the event loop apart, for what need not be done twice in one.

    Outside of a running loop each question is a turn of its own.
    """

    def __init__(self) -> None:
        self._is_known = False

    def is_new(self) -> bool:
        """Return whether this was not asked before in the turn that runs now."""
        if self._is_known:
            return False
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return True
        self._is_known = True
        loop.call_soon(self._end)
        return True

    def _end(self) -> None:
        self._is_known = False

"""Tasks that serve a block: they end with it, and its own errors pass as they are."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from anyio.abc import TaskGroup

__all__ = ["background"]


@asynccontextmanager
async def background() -> AsyncIterator[TaskGroup]:
    """Give a task group that is cancelled when the block ends.

    A plain task group would put whatever the block raises into an `ExceptionGroup`.
    """
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        try:
            yield tasks
        except Exception as error:  # noqa: BLE001 - raised again below, outside of the group
            failure = error
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure

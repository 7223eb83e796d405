"""Wait for a database, a disk or a lock in a thread, so that the event loop goes on with everybody else."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from contextvars import ContextVar
from threading import Event
from typing import TYPE_CHECKING, Final, TypeVar

import anyio
import anyio.to_thread

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["IS_UNWANTED", "in_thread"]

T = TypeVar("T")
IS_UNWANTED: Final[ContextVar[Event | None]] = ContextVar("truename.is-unwanted", default=None)
"""Of the work that runs in this thread: whether nobody waits for it any more."""


async def in_thread(work: Callable[[], T], *, limiter: anyio.CapacityLimiter | None = None) -> T:
    """Return what the function returns, run in a thread.

    A cancellation takes effect when the thread has ended, also one by asyncio itself (`Cancellation`, `Deadline`): a
    lock that is held meanwhile still excludes others from what the thread changes.
    """
    is_unwanted = Event()
    before = IS_UNWANTED.set(is_unwanted)
    running = asyncio.ensure_future(anyio.to_thread.run_sync(work, limiter=limiter))
    IS_UNWANTED.reset(before)
    try:
        await asyncio.wait((running,))
    except asyncio.CancelledError:
        is_unwanted.set()
        with anyio.CancelScope(shield=True):
            while not running.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait((running,))
        if not running.cancelled():
            # Nobody asks for it any more.
            running.exception()
        raise
    return running.result()

"""Long work and the event loop: on it in slices, or beside it in a thread. Both let it go on with everybody else."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from contextvars import ContextVar
from threading import Event
from typing import TYPE_CHECKING, Final, TypeVar

import anyio
import anyio.lowlevel
import anyio.to_thread

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable

__all__ = ["beside_loop", "go_on", "in_slices", "in_thread"]

T = TypeVar("T")
SLICE_SECONDS: Final = 0.01
# Of the work that runs in this thread: whether nobody waits for it any more.
_IS_UNWANTED: Final[ContextVar[Event | None]] = ContextVar("truename.is-unwanted", default=None)


async def in_slices(items: Iterable[T]) -> AsyncIterator[T]:
    """Yield the items; after each hundredth of a second all others have a turn."""
    end = time.monotonic() + SLICE_SECONDS
    for item in items:
        yield item
        if time.monotonic() >= end:
            await anyio.lowlevel.checkpoint()
            end = time.monotonic() + SLICE_SECONDS


async def in_thread(work: Callable[[], T], *, limiter: anyio.CapacityLimiter | None = None) -> T:
    """Return what the function returns, run in a thread.

    A cancellation takes effect when the thread has ended, also one by asyncio itself (`Cancellation`, `Deadline`): a
    lock that is held meanwhile still excludes others from what the thread changes.
    """
    is_unwanted = Event()
    before = _IS_UNWANTED.set(is_unwanted)
    running = asyncio.ensure_future(anyio.to_thread.run_sync(work, limiter=limiter))
    _IS_UNWANTED.reset(before)
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


async def beside_loop(work: Callable[[], T]) -> T:
    """Return what the function returns, run in a thread; it has to ask now and then whether to `go_on`."""
    # A thread keeps what it was given last, and what came of it, until it is given something else.
    left, found = [work], list[T]()
    await in_thread(lambda: found.append(left.pop()()))
    return found.pop()


def go_on() -> None:
    """Raise `asyncio.CancelledError`, in a thread, where nobody waits any more for what is done there."""
    is_unwanted = _IS_UNWANTED.get()
    if is_unwanted is not None and is_unwanted.is_set():
        raise asyncio.CancelledError

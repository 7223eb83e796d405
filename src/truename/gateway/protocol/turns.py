"""Long work and the event loop: on it in slices, or beside it in a thread. Both let it go on with everybody else."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final, TypeVar

import anyio.lowlevel

from truename.auth.in_thread import IS_UNWANTED, in_thread

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable

__all__ = ["beside_loop", "go_on", "in_slices", "in_thread"]

T = TypeVar("T")
SLICE_SECONDS: Final = 0.01


async def in_slices(items: Iterable[T]) -> AsyncIterator[T]:
    """Yield the items; after each hundredth of a second all others have a turn."""
    end = time.monotonic() + SLICE_SECONDS
    for item in items:
        yield item
        if time.monotonic() >= end:
            await anyio.lowlevel.checkpoint()
            end = time.monotonic() + SLICE_SECONDS


async def beside_loop(work: Callable[[], T]) -> T:
    """Return what the function returns, run in a thread; it has to ask now and then whether to `go_on`."""
    # A thread keeps what it was given last, and what came of it, until it is given something else.
    left, found = [work], list[T]()
    await in_thread(lambda: found.append(left.pop()()))
    return found.pop()


def go_on() -> None:
    """Raise `asyncio.CancelledError`, in a thread, where nobody waits any more for what is done there."""
    is_unwanted = IS_UNWANTED.get()
    if is_unwanted is not None and is_unwanted.is_set():
        raise asyncio.CancelledError

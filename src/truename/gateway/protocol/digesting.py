"""Work in Python that takes long is done in a thread, one piece at a time, so that the loop has every other turn."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

import anyio
from anyio.lowlevel import RunVar

from truename.gateway.protocol.turns import in_thread

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["off_loop"]

T = TypeVar("T")
Given = TypeVar("Given")
_QUEUES: Final[RunVar[dict[str, anyio.CapacityLimiter]]] = RunVar("truename.digesting")


async def off_loop(work: Callable[[Given], T], given: Given, *, queue: str = "calls") -> T:
    """Return what the function makes of this, computed beside the loop, after what waits in the same queue.

    Threads share one interpreter lock with the loop: with forty of them it would have every fortieth turn. What servers
    can make long has a queue of its own, so that calls do not wait for it.
    """
    try:
        queues = _QUEUES.get()
    except LookupError:
        _QUEUES.set(queues := {})
    if queue not in queues:
        queues[queue] = anyio.CapacityLimiter(1)
    return await in_thread(partial(work, given), limiter=queues[queue])

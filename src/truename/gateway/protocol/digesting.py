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
_ONE: Final[RunVar[anyio.CapacityLimiter]] = RunVar("truename.digesting")


async def off_loop(work: Callable[[Given], T], given: Given) -> T:
    """Return what the function makes of this, computed beside the loop.

    Threads share one interpreter lock with the loop: with forty of them it would have every fortieth turn.
    """
    try:
        one = _ONE.get()
    except LookupError:
        _ONE.set(one := anyio.CapacityLimiter(1))
    return await in_thread(partial(work, given), limiter=one)

"""How long a thread may wait for a state database: one that runs an event loop keeps all requests waiting."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

__all__ = ["LOOP_PATIENCE", "PATIENCE", "is_in_loop", "running_loop"]

PATIENCE: Final = 5.0
"""The seconds that a thread waits for another process's transaction."""
LOOP_PATIENCE: Final = 0.04
"""The seconds that a thread which runs an event loop waits for it."""


def running_loop() -> AbstractEventLoop | None:
    """Return the event loop that this thread runs; importing asyncio would cost a command that needs none."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:
        return None
    try:
        found: AbstractEventLoop = asyncio.get_running_loop()
    except RuntimeError:
        return None
    return found


def is_in_loop() -> bool:
    """Return whether this thread runs an event loop."""
    return running_loop() is not None

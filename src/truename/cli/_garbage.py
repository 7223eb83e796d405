"""Disable garbage collection while a command works: it ends before collecting would pay off."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["collecting_later"]


@contextmanager
def collecting_later() -> Iterator[None]:
    """Disable the garbage collector in the block: with a million live objects it takes a third of the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()

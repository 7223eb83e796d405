"""Test support: ending, used by tests of several modules."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


PATIENCE = 20.0


def until(found: Callable[[], bool]) -> None:
    deadline, pause = time.monotonic() + PATIENCE, threading.Event()
    while not found():
        assert time.monotonic() < deadline
        pause.wait(0.02)

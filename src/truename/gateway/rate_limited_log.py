"""What is worth saying of servers that misbehave: once, again when it changes, and ever less often."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from truename.cache import LRUCache

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

__all__ = ["RateLimitedLog"]

log: Final = logging.getLogger("truename.gateway")

_ROOM: Final = 1_000
_FIRST_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 3600.0


class _Announcement(NamedTuple):
    what: int
    at: float
    pause: float


class RateLimitedLog:
    """Logs findings by subject (a server and a cause), bounded in number: the oldest is forgotten."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # Lists are made in a thread.
        self._lock = threading.Lock()
        self._told: LRUCache[Hashable, _Announcement] = LRUCache(_ROOM)

    def tell(self, subject: Hashable, text: str, *, about: Hashable = None, level: int = logging.WARNING) -> None:
        """Log the text, unless of this subject the same (``about``, else the text) was told, or another just now."""
        if self._is_news(subject, hash(text if about is None else about)):
            log.log(level, "%s", text)

    def _is_news(self, subject: Hashable, what: int) -> bool:
        with self._lock:
            now, last = self._clock(), self._told.get(subject)
            if last is not None and (last.what == what or now < last.at + last.pause):
                return False
            pause = _FIRST_PAUSE if last is None else min(2 * last.pause, _LONGEST_PAUSE)
            self._told[subject] = _Announcement(what, now, pause)
            return True

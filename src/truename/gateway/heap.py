"""Large lists and Python's garbage collector, which stops everything while it looks at all that there is.

A full collection takes some tenths of a second for the objects of 20,000 tools, and they make for several of them while
they are made. So there is none meanwhile, and what is shown then is left out of later ones: it is let go of when nobody
refers to it any more, as everything is.
"""

from __future__ import annotations

import gc
import threading
import weakref
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["Heap", "growing", "still"]

_LARGE: Final = 2_000
_NEVER: Final = 2**30
# So many lists before what nobody collected is looked at again, and so many that may still be there.
_MOST_KEPT: Final = 16
_MOST_ALIVE: Final = 3
_LOCK: Final = threading.Lock()
_BEFORE: Final[list[tuple[int, int, int]]] = []


@contextmanager
def growing() -> Iterator[None]:
    """Have no full collection while the block lasts; young objects are collected as ever."""
    with _LOCK:
        _BEFORE.append(gc.get_threshold())
        gc.set_threshold(*_BEFORE[0][:2], _NEVER)
    try:
        yield
    finally:
        with _LOCK:
            first = _BEFORE[0]
            _BEFORE.pop()
            if not _BEFORE:
                gc.set_threshold(*first)


@contextmanager
def still() -> Iterator[None]:
    """Have no collection at all while the block lasts, which must not wait for anything."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class Heap:
    """Leaves what is shown for long out of collections. Where old lists do not go, collections find out why."""

    def __init__(self) -> None:
        self._shown: list[list[weakref.ref[object]]] = []
        self._kept = 0

    def keep(self, views: Iterable[object], size: int) -> None:
        """Leave these, and all else that there is, out of collections, if they are about so many tools."""
        if size < _LARGE:
            return
        self._shown = [refs for refs in self._shown if any(ref() is not None for ref in refs)]
        self._kept += 1
        if self._kept > _MOST_KEPT or len(self._shown) > _MOST_ALIVE:
            self._kept, self._shown = 0, []
            gc.unfreeze()
            return
        self._shown.append([weakref.ref(view) for view in views])
        gc.freeze()

"""Watch a state database for commits: one look serves all owners in this process that ask in one turn of a loop.

Each request asks the owners of tokens, names and decisions whether others changed their tables. `PRAGMA data_version`
answers by what is in the file, whatever the disk does, and costs as much as a tenth of a call.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from truename.storage.patience import running_loop

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

__all__ = ["FileVersion", "FileWatch", "Inode", "forget_look", "inode_of", "watch"]

Inode = tuple[int, int]
_GONE: Final[Inode] = (-1, -1)
_WATCHES: Final[weakref.WeakValueDictionary[tuple[str, Inode], FileWatch]] = weakref.WeakValueDictionary()
_LOCK: Final = threading.Lock()


class FileVersion(NamedTuple):
    """A number that any commit changes, and the inode of the file that has the database's name now."""

    version: int
    inode: Inode


class _Turn:
    """The loop in whose present turn a look was taken. It holds no database: the loop keeps it until the turn ends."""

    def __init__(self) -> None:
        self.loop: AbstractEventLoop | None = None

    def begin(self, loop: AbstractEventLoop) -> None:
        self.loop = loop
        loop.call_soon(self.end)

    def end(self) -> None:
        self.loop = None


class FileWatch:
    """A connection that only looks. Raises `sqlite3.Error`; use `watch` to get the one of a file."""

    def __init__(self, file: str, patience: float) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._turn = _Turn()
        self._seen = FileVersion(-1, _GONE)
        address = f"{Path(file).as_uri()}?mode=ro"
        self._data = sqlite3.connect(address, timeout=patience, isolation_level=None, check_same_thread=False, uri=True)
        weakref.finalize(self, self._data.close)

    def look(self, *, anew: bool = False) -> FileVersion:
        """Return what is there now; without ``anew``, within a turn of the loop what the first look of it found.

        All that runs in a turn was begun by what happened before its first look, so nobody there can know of a later
        commit of another process. One of this process ends the look (`forget_look`).
        """
        loop = running_loop()
        if loop is not None and loop is self._turn.loop and not anew:
            return self._seen
        with self._lock:
            inode = inode_of(self._file)
            (version,) = self._data.execute("PRAGMA data_version").fetchone()
            self._seen = seen = FileVersion(version, inode)
            if loop is not None:
                self._turn.begin(loop)
        return seen

    def forget(self) -> None:
        """Have the next look be another one."""
        with self._lock:
            self._turn.end()


def watch(file: str, inode: Inode, patience: float) -> FileWatch:
    """Return the watch of the file that has this inode; it ends when nobody has it. Raises `sqlite3.Error`."""
    with _LOCK:
        found = _WATCHES.get((file, inode))
        if found is None:
            found = _WATCHES[file, inode] = FileWatch(file, patience)
    return found


def forget_look(file: str, inode: Inode) -> None:
    """Have the next look at a file be another one: this process committed."""
    with _LOCK:
        found = _WATCHES.get((file, inode))
    if found is not None:
        found.forget()


def inode_of(file: str) -> Inode:
    """Return device and inode of a file, which tell whether it is another one; (-1, -1) where there is none."""
    try:
        found = os.stat(file)  # noqa: PTH116 - a third of the time of `Path.stat`, and each request asks
    except FileNotFoundError:
        return _GONE
    return found.st_dev, found.st_ino

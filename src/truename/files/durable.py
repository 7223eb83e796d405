"""Files of our own: there after a power cut if they were there before it, and nobody else's when they are read."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO

__all__ = ["is_own", "open_plain", "read_own", "sync_directory", "write_new", "write_whole"]

# A link that somebody put there meanwhile is not followed.
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)

# Its times need not get to the disk with what is in it; its length does.
_SYNC = getattr(os, "fdatasync", os.fsync)
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def is_own(found: os.stat_result) -> bool:
    """Tell whether this is a plain file of the user's."""
    return stat.S_ISREG(found.st_mode) and (not hasattr(os, "geteuid") or found.st_uid == os.geteuid())


def open_plain(path: Path) -> BinaryIO:
    """Open a file to read it. Raises `OSError` for a link, a pipe (it is not waited for), a directory, a device."""
    descriptor = os.open(path, _READ)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise OSError(errno.EINVAL, "It is no plain file", str(path))


def read_own(path: Path, limit: int) -> bytes:
    """Return what a file of the user's holds. Raises `OSError` for a link, a pipe, another's file, or a larger one."""
    with open_plain(path) as stream:
        found = os.fstat(stream.fileno())
        if not is_own(found) or found.st_size > limit:
            message = "it is no plain file of yours, or too large"
            raise OSError(message)
        return stream.read(limit)


def write_new(path: Path, raw: bytes) -> None:
    """Write a file that does not exist yet, readable by its owner alone, down to the disk. Raises `OSError`."""
    descriptor = os.open(path, _NEW, 0o600)
    try:
        write_whole(descriptor, raw)
    finally:
        os.close(descriptor)


def write_whole(descriptor: int, raw: bytes) -> None:
    """Write all of this where an open file stands, down to the disk. Raises `OSError`."""
    rest = memoryview(raw)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
    _SYNC(descriptor)


def sync_directory(path: Path) -> None:
    """Write down which names a directory has, where the system can: Windows and some file systems can't."""
    if sys.platform == "win32":
        return
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

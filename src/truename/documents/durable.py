"""Files that are there after a power cut if they were there before it."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["sync_directory", "write_new"]

# A link that somebody put there meanwhile is not followed.
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


def write_new(path: Path, raw: bytes) -> None:
    """Write a file that does not exist yet, readable by its owner alone, down to the disk. Raises `OSError`."""
    with os.fdopen(os.open(path, _NEW, 0o600), "wb") as stream:
        stream.write(raw)
        stream.flush()
        os.fsync(stream.fileno())


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

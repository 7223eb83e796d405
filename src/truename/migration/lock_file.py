"""The file `truename.lock`, as it is read: a regular file of a certain size, and what it says."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

from truename.errors import ConfigError
from truename.migration.lock import MAX_LOCK, Lock

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["decoded_lock", "lock_bytes", "read_lock"]


def read_lock(path: Path, called: str = "") -> Lock:
    """Read a lock, by another name if it is ``called`` so. Raises `ConfigError` with the line of what is wrong."""
    return decoded_lock(lock_bytes(path), called or str(path))


def lock_bytes(path: Path) -> bytes:
    """Return the bytes of the file, no more than a lock may have and one. Raises `ConfigError`."""
    try:
        # Whoever opened a pipe would wait for ever.
        if not stat.S_ISREG(path.stat().st_mode):
            raise ConfigError(file=str(path), key="", problem="it is no regular file", remedy="Check the path.")
        with path.open("rb") as stream:
            return stream.read(MAX_LOCK + 1)
    except (OSError, ValueError) as error:
        problem = f"it can't be read ({getattr(error, 'strerror', None) or error})"
        raise ConfigError(file=str(path), key="", problem=problem, remedy="Check the path.") from error


def decoded_lock(raw: bytes, called: str) -> Lock:
    """Read the bytes of a lock. Raises `ConfigError` with the line of what is wrong."""
    try:
        return Lock.parse(raw.decode(), called)
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        problem, remedy = "it is not UTF-8", "Restore the file, or write it anew: `truename lock SOURCE...`."
        raise ConfigError(file=called, key=f"line {line}", problem=problem, remedy=remedy) from error

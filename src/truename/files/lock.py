"""Lock a file between processes with a lock file beside it."""

from __future__ import annotations

import os
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["locked"]

LOCK_TIMEOUT: Final = 15.0
_PAUSE: Final = 0.01
_NO_WAIT: Final = getattr(os, "O_NONBLOCK", 0)

if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int, *, shared: bool) -> None:  # noqa: ARG001 - Windows has no shared lock
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _try_lock(descriptor: int, *, shared: bool) -> None:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)


@contextmanager
def locked(path: Path, *, shared: bool, patience: float = LOCK_TIMEOUT) -> Iterator[None]:
    """Hold a lock on ``PATH.lock``: exclusive for writers, shared for readers; the system releases it with the process.

    Readers take no lock where the lock file does not exist. Raises `TimeoutError` if another process holds the lock for
    more than ``patience`` seconds, `OSError` if the lock file cannot be opened.
    """
    name = path.with_name(f"{path.name}.lock")
    if shared and not name.exists():
        yield
        return
    # O_NONBLOCK: if the lock file is a named pipe, open() returns instead of waiting for a writer.
    descriptor = os.open(name, (os.O_RDONLY if shared else os.O_RDWR | os.O_CREAT) | _NO_WAIT, 0o600)
    try:
        _wait(descriptor, path, time.monotonic() + patience, shared=shared)
        yield
    finally:
        os.close(descriptor)


def _wait(descriptor: int, path: Path, deadline: float, *, shared: bool) -> None:
    while True:
        try:
            _try_lock(descriptor, shared=shared)
        except OSError as error:
            if time.monotonic() > deadline:
                message = f"{path} is locked by another process"
                raise TimeoutError(message) from error
            time.sleep(_PAUSE)
        else:
            return

"""Write private files and directories: whole after a power cut, and for their owner alone."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import BinaryIO

__all__ = [
    "is_own",
    "make_private",
    "open_plain",
    "read_own",
    "state_directory",
    "sync_directory",
    "write_new",
    "write_whole",
]

_MODE: Final = 0o700
_OTHERS: Final = 0o077
_EVERYBODY: Final = 0o007
_ROOT: Final = 0
_NOT_OURS: Final = "It belongs to another user; give it to yourself, or set XDG_STATE_HOME to a directory of yours"


def state_directory(environ: Mapping[str, str] | None = None) -> Path:
    """Return the user's directory of Truename's state; it need not exist.

    ``XDG_STATE_HOME`` (or ``~/.local/state``), ``~/Library/Application Support`` on macOS, ``%LOCALAPPDATA%`` on
    Windows, and ``truename`` in it.
    """
    return _state_home(os.environ if environ is None else environ) / "truename"


def make_private(path: Path, environ: Mapping[str, str] | None = None) -> None:
    """Make a directory that only its owner can use, with the directories above it that do not exist.

    In the user's state directory all directories down to this one become so, also those that exist with a wider mode.
    Elsewhere a directory that exists is left as it is. Raises `OSError`, also for a directory in the state directory
    that belongs to another user, or that is root's and open to all.
    """
    missing = [one for one in (path, *path.parents) if not one.exists()]
    for directory in reversed(missing):
        _make(directory)
    if sys.platform == "win32":
        return
    root = state_directory(environ)
    if path.is_relative_to(root):
        for directory in (*reversed([one for one in path.parents if one.is_relative_to(root)]), path):
            _tighten(directory)


def _make(directory: Path) -> None:
    try:
        directory.mkdir(mode=_MODE)
    except FileExistsError:
        if not directory.is_dir():
            raise
    else:
        # The umask takes bits off the mode: without them the owner could not use the directory.
        directory.chmod(_MODE)


def _tighten(directory: Path) -> None:
    found = directory.stat()
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(directory))
    is_own = found.st_uid == os.geteuid()
    # Volumes are mounted as root's, for a group that is the service's alone.
    if not is_own and (found.st_uid != _ROOT or found.st_mode & _EVERYBODY):
        raise PermissionError(errno.EPERM, _NOT_OURS, str(directory))
    if is_own and stat.S_IMODE(found.st_mode) & _OTHERS:
        directory.chmod(_MODE)


def _state_home(environ: Mapping[str, str]) -> Path:
    chosen = environ.get("XDG_STATE_HOME", "")
    # The XDG specification has relative paths ignored.
    if chosen and Path(chosen).is_absolute():
        return Path(chosen)
    home = Path(environ["HOME"]) if environ.get("HOME") else Path.home()
    if sys.platform == "win32":
        return Path(environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    if sys.platform == "darwin":
        return home / "Library" / "Application Support"
    return home / ".local" / "state"


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

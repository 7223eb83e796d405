"""Write private files and directories: durable after a power cut, and accessible to their owner only."""

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
ROOT_UID: Final = 0
_NOT_OURS: Final = "It belongs to another user; change its owner, or set XDG_STATE_HOME to a directory of yours"


def state_directory(environ: Mapping[str, str] | None = None) -> Path:
    """Return the directory of Truename's state for this user; it need not exist.

    It is the directory ``truename`` in ``XDG_STATE_HOME`` (or ``~/.local/state``), on macOS in
    ``~/Library/Application Support``, on Windows in ``%LOCALAPPDATA%``.
    """
    return _state_home(os.environ if environ is None else environ) / "truename"


def make_private(path: Path, environ: Mapping[str, str] | None = None) -> None:
    """Create a directory that only its owner can use, and its missing parents likewise.

    Within the user's state directory, existing directories on the path lose the permissions of group and others.
    Elsewhere an existing directory is not changed. Raises `OSError`, also if a directory within the state directory
    belongs to another user, or to root with permissions for others.
    """
    missing = [one for one in (path, *path.parents) if not one.exists()]
    for directory in reversed(missing):
        try:
            directory.mkdir(mode=_MODE)
        except FileExistsError:
            if not directory.is_dir():
                raise
        else:
            # The umask may have removed the owner's own permissions from the mode.
            directory.chmod(_MODE)
    if sys.platform == "win32":
        return
    root = state_directory(environ)
    if path.is_relative_to(root):
        for directory in (*reversed([one for one in path.parents if one.is_relative_to(root)]), path):
            _tighten(directory)


def _tighten(directory: Path) -> None:
    found = directory.stat()
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(directory))
    is_own = found.st_uid == os.geteuid()
    # Container volumes may belong to root and be accessible through the group of the service.
    if not is_own and (found.st_uid != ROOT_UID or found.st_mode & _EVERYBODY):
        raise PermissionError(errno.EPERM, _NOT_OURS, str(directory))
    if is_own and stat.S_IMODE(found.st_mode) & _OTHERS:
        directory.chmod(_MODE)


def _state_home(environ: Mapping[str, str]) -> Path:
    chosen = environ.get("XDG_STATE_HOME", "")
    # The XDG specification says to ignore relative paths.
    if chosen and Path(chosen).is_absolute():
        return Path(chosen)
    home = Path(environ["HOME"]) if environ.get("HOME") else Path.home()
    if sys.platform == "win32":
        return Path(environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    if sys.platform == "darwin":
        return home / "Library" / "Application Support"
    return home / ".local" / "state"


# O_EXCL and O_NOFOLLOW: a link that another program creates meanwhile is not followed.
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)

# fdatasync writes the content and the length to the disk; the file's times are not needed.
_SYNC = getattr(os, "fdatasync", os.fsync)
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def is_own(found: os.stat_result) -> bool:
    """Return whether this is a regular file that belongs to the user."""
    return stat.S_ISREG(found.st_mode) and (not hasattr(os, "geteuid") or found.st_uid == os.geteuid())


def open_plain(path: Path) -> BinaryIO:
    """Open a regular file for reading. Raises `OSError` for a link, a pipe (without waiting), a directory, a device."""
    try:
        descriptor = os.open(path, _READ)
    except OSError as error:
        if error.errno == errno.ELOOP and path.is_symlink():
            # The system's words are of a circle of links.
            raise OSError(errno.ELOOP, "It is a symbolic link, which is not followed here", str(path)) from error
        raise
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise OSError(errno.EINVAL, "It is not a regular file", str(path))


def read_own(path: Path, limit: int) -> bytes:
    """Return the content of a file of the user.

    Raises `OSError` for anything but a regular file, another user's file, or more than ``limit`` bytes.
    """
    with open_plain(path) as stream:
        found = os.fstat(stream.fileno())
        if not is_own(found) or found.st_size > limit:
            message = "it is not a regular file, belongs to another user, or is too large"
            raise OSError(message)
        return stream.read(limit)


def write_new(path: Path, raw: bytes) -> None:
    """Create a file that only its owner can read, and sync it to disk. Raises `OSError`, also if the file exists."""
    descriptor = os.open(path, _NEW, 0o600)
    try:
        write_whole(descriptor, raw)
    finally:
        os.close(descriptor)


def write_whole(descriptor: int, raw: bytes) -> None:
    """Write all bytes at the position of an open file and sync them to disk. Raises `OSError`."""
    rest = memoryview(raw)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
    _SYNC(descriptor)


def sync_directory(path: Path) -> None:
    """Sync the entries of a directory to disk; do nothing on Windows and on file systems that cannot."""
    if sys.platform == "win32":
        return
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

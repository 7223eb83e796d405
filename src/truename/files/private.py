"""Directories of state: for their owner alone, whatever the umask is, and also where they were made before."""

from __future__ import annotations

import errno
import os
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["make_private", "state_directory"]

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

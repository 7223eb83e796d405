"""Check that a file may be replaced: no link, the user's own, writable, and unchanged since it was read."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from truename.errors import excerpt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["ReplacementObstacle", "absolute", "copy_metadata", "find_obstacle", "read_plain"]

_READ: Final = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_WRITABLE: Final = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH
_AGAIN: Final = "Nothing was changed; run the command again."
_LINKED: Final = "Nothing was changed; put a file in the link's place, or change the other file by hand."


class ReplacementObstacle(NamedTuple):
    """A reason not to replace a file, and a remedy; "" if the only remedy is to edit the file by hand."""

    problem: str
    remedy: str = ""


def find_obstacle(path: Path, expected: bytes | None) -> ReplacementObstacle | None:
    """Return the first reason not to replace a file that had the ``expected`` content (None: did not exist).

    Obstacles are a symbolic link, several hard links, anything but a regular file, a read-only file or directory, a
    file of another user, and a content that changed since it was read.
    """
    try:
        return next(_obstacles(path, expected), None)
    except OSError as error:
        return ReplacementObstacle(f"it cannot be changed ({error.strerror or error})")


def _obstacles(path: Path, expected: bytes | None) -> Iterator[ReplacementObstacle]:
    yield from _of_directory(_nearest(path.parent))
    try:
        found = path.lstat()
    except FileNotFoundError:
        if expected is not None:
            yield ReplacementObstacle("it was deleted meanwhile", _AGAIN)
        return
    if stat.S_ISLNK(found.st_mode):
        yield ReplacementObstacle(f"it is a symbolic link to {excerpt(str(path.readlink()), 200)}", _LINKED)
        return
    if not stat.S_ISREG(found.st_mode):
        yield ReplacementObstacle("it is not a regular file")
    if expected is None:
        yield ReplacementObstacle("another program created it meanwhile", _AGAIN)
    yield from (
        ReplacementObstacle(problem.format(count=found.st_nlink)) for wrong, problem in _OF_FILE if wrong(path, found)
    )
    if read_plain(path) != expected:
        yield ReplacementObstacle("another program changed it meanwhile", _AGAIN)


def _of_directory(directory: Path) -> Iterator[ReplacementObstacle]:
    mode = directory.stat().st_mode
    if not stat.S_ISDIR(mode):
        yield ReplacementObstacle(f"{excerpt(str(directory), 200)} is not a directory")
    elif not mode & _WRITABLE or not os.access(directory, os.W_OK | os.X_OK):
        yield ReplacementObstacle("its directory is read-only")


def _is_anothers(_path: Path, found: os.stat_result) -> bool:
    return hasattr(os, "geteuid") and found.st_uid != os.geteuid()


def _is_read_only(path: Path, found: os.stat_result) -> bool:
    # root may write a read-only file, but somebody made it read-only on purpose: it is an obstacle for root too.
    return not found.st_mode & stat.S_IWUSR or not os.access(path, os.W_OK)


def _has_names(_path: Path, found: os.stat_result) -> bool:
    return found.st_nlink > 1


_OF_FILE: Final[tuple[tuple[Callable[[Path, os.stat_result], bool], str], ...]] = (
    (_is_anothers, "it belongs to another user"),
    (_is_read_only, "it is read-only"),
    (_has_names, "it has {count} names (hard links), and replacing it would separate them"),
)


def read_plain(path: Path) -> bytes:
    """Return the content of a file without following a link. Raises `OSError`."""
    with os.fdopen(os.open(path, _READ), "rb") as stream:
        return stream.read()


def copy_metadata(new: Path, old: Path) -> None:
    """Copy group, mode and extended attributes from the old file to the new one.

    The times are not copied: programs that watch a file would not notice the change.
    """
    if hasattr(os, "chown"):
        owner = old.stat()
        if new.stat().st_gid != owner.st_gid:
            os.chown(new, -1, owner.st_gid)
    shutil.copystat(old, new)
    os.utime(new)


def absolute(path: Path) -> Path:
    """Return the absolute path without following links."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - links are not followed


def _nearest(directory: Path) -> Path:
    return next((one for one in (directory, *directory.parents) if os.path.lexists(one)), directory)

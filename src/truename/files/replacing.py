"""Decide whether a file may be replaced: no link, own file, writable, unchanged since it was read."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from truename.errors import excerpt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["ReplacementObstacle", "absolute", "dress", "obstacle", "read_plain"]

_READ: Final = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_WRITABLE: Final = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH
_AGAIN: Final = "Nothing was changed; run the command again."
_LINKED: Final = "Nothing was changed; put a file in the link's place, or change the other file by hand."


class ReplacementObstacle(NamedTuple):
    """Why a file is left alone, and what to do; "" where there is nothing better than to do it by hand."""

    problem: str
    remedy: str = ""


def obstacle(path: Path, expected: bytes | None) -> ReplacementObstacle | None:
    """Return what speaks against replacing a file that was read as these bytes (None: there was no file).

    That is a link (symbolic, or one of several names), no regular file, a read-only one, one in a read-only
    directory, somebody else's, or one that is no longer what was read.
    """
    try:
        return next(_obstacles(path, expected), None)
    except OSError as error:
        return ReplacementObstacle(f"it can't be changed ({error.strerror or error})")


def _obstacles(path: Path, expected: bytes | None) -> Iterator[ReplacementObstacle]:
    yield from _of_directory(_nearest(path.parent))
    try:
        found = path.lstat()
    except FileNotFoundError:
        if expected is not None:
            yield ReplacementObstacle("it is gone", _AGAIN)
        return
    if stat.S_ISLNK(found.st_mode):
        yield ReplacementObstacle(f"it is a symbolic link to {excerpt(str(path.readlink()), 200)}", _LINKED)
        return
    if not stat.S_ISREG(found.st_mode):
        yield ReplacementObstacle("it is no regular file")
    if expected is None:
        yield ReplacementObstacle("it was made by somebody else meanwhile", _AGAIN)
    yield from (
        ReplacementObstacle(problem.format(count=found.st_nlink)) for wrong, problem in _OF_FILE if wrong(path, found)
    )
    if read_plain(path) != expected:
        yield ReplacementObstacle("it was changed by somebody else meanwhile", _AGAIN)


def _of_directory(directory: Path) -> Iterator[ReplacementObstacle]:
    mode = directory.stat().st_mode
    if not stat.S_ISDIR(mode):
        yield ReplacementObstacle(f"{excerpt(str(directory), 200)} is no directory")
    elif not mode & _WRITABLE or not os.access(directory, os.W_OK | os.X_OK):
        yield ReplacementObstacle("its directory is read-only")


def _is_anothers(_path: Path, found: os.stat_result) -> bool:
    return hasattr(os, "geteuid") and found.st_uid != os.geteuid()


def _is_read_only(path: Path, found: os.stat_result) -> bool:
    # The system lets its administrator write what is read-only; whoever made it so meant something by it.
    return not found.st_mode & stat.S_IWUSR or not os.access(path, os.W_OK)


def _has_names(_path: Path, found: os.stat_result) -> bool:
    return found.st_nlink > 1


_OF_FILE: Final[tuple[tuple[Callable[[Path, os.stat_result], bool], str], ...]] = (
    (_is_anothers, "it belongs to another user"),
    (_is_read_only, "it is read-only"),
    (_has_names, "it has {count} names (hard links), and a change would part them"),
)


def read_plain(path: Path) -> bytes:
    """Return what a file holds, never through a link. Raises `OSError`."""
    with os.fdopen(os.open(path, _READ), "rb") as stream:
        return stream.read()


def dress(new: Path, old: Path) -> None:
    """Give a new file what the old one has besides its bytes, but not its times: programs watch those."""
    if hasattr(os, "chown"):
        owner = old.stat()
        if new.stat().st_gid != owner.st_gid:
            os.chown(new, -1, owner.st_gid)
    shutil.copystat(old, new)
    os.utime(new)


def absolute(path: Path) -> Path:
    """Return the path from the root; links in it are not followed."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - links are not followed


def _nearest(directory: Path) -> Path:
    return next((one for one in (directory, *directory.parents) if os.path.lexists(one)), directory)

"""Which files a migration looks into: all under the paths given, but machinery and history.

History says what was true when it was written, and stays: changelogs, decision records, lock files, recordings.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from truename.catalog.globs import fits
from truename.errors import MigrationError
from truename.files import absolute

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = ["HISTORY", "MACHINERY", "Found", "walk"]

MACHINERY: Final = (
    ".git",
    ".hg",
    ".svn",
    ".tox",
    ".venv",
    "venv",
    "node_modules",
    "__pycache__",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
)
HISTORY: Final = (
    "CHANGELOG*",
    "CHANGES*",
    "HISTORY*",
    "docs/adr/*",
    "docs/decisions/*",
    "*.lock",
    "*-lock.*",
    "*.ledger",
    "recordings/*",
)


class Found(NamedTuple):
    """A file to look into: its path as it is shown, and whether its name is a link to another."""

    path: Path
    is_link: bool


def walk(paths: Sequence[Path], exclude: Iterable[str] = HISTORY, skip: Iterable[Path] = ()) -> Iterator[Found]:
    """Yield the files under these paths, each once, a directory's own before those below it.

    Links to directories are not followed. ``exclude`` are globs (``*`` crosses ``/``): one without ``/`` is for the
    name of a file or directory, another for the path from here or from any directory below. ``skip`` are files and
    whole directories. Raises `MigrationError` for a path where nothing is.
    """
    excluded, skipped = tuple(exclude), frozenset(map(absolute, skip))
    seen: set[Path] = set()
    for path in paths:
        if not os.path.lexists(path):
            raise MigrationError(file=str(path), problem="there is nothing", remedy="Check the path.")
        root = absolute(path)
        for found in (
            _below(path, skipped) if path.is_dir() and not path.is_symlink() else [Found(path, path.is_symlink())]
        ):
            whole = absolute(found.path)
            if whole not in seen and whole not in skipped and not _is_excluded(whole, root, excluded):
                seen.add(whole)
                yield found


def _below(directory: Path, skipped: frozenset[Path]) -> Iterator[Found]:
    waiting = [directory]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            problem = f"it can't be looked into ({error.strerror or error})"
            raise MigrationError(file=str(error.filename), problem=problem, remedy="Check who may read it.") from error
        waiting += [
            Path(entry.path)
            for entry in reversed(entries)
            if entry.is_dir(follow_symlinks=False)
            and entry.name not in MACHINERY
            and absolute(Path(entry.path)) not in skipped
        ]
        for entry in entries:
            if entry.is_symlink():
                yield from [Found(Path(entry.path), is_link=True)] if entry.is_file() else []
            elif entry.is_file():
                yield Found(Path(entry.path), is_link=False)


def _is_excluded(path: Path, root: Path, globs: tuple[str, ...]) -> bool:
    """Match names below the root, its own too, and paths that may begin at any of them."""
    parts = path.relative_to(root.parent).parts
    shown = "/" + "/".join(parts)
    here = _from_here(path)
    return any(
        (fits(f"*/{glob}", shown) or fits(glob, here))
        if "/" in glob
        else any(fits(glob, part) for part in parts[1:] or parts)
        for glob in globs
    )


def _from_here(path: Path) -> str:
    try:
        return path.relative_to(absolute(Path())).as_posix()
    except ValueError:
        return ""

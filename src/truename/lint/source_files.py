"""Select the files to lint: the named ones, and the Python files of directories."""

from __future__ import annotations

import os
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["PYTHON", "is_excluded", "python_files", "relative_to_cwd"]

PYTHON: Final = (".py", ".pyi", ".pyw")
# Directories of third-party or generated files; hidden ones (.git, .venv, .tox) are skipped too.
_FOREIGN: Final = frozenset({"node_modules", "__pycache__", "site-packages", "__pypackages__"})
_ENVIRONMENT: Final = "pyvenv.cfg"


def relative_to_cwd(path: Path) -> Path:
    """Return a path relative to the working directory, if it is below it."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def python_files(path: Path, exclude: Sequence[str] = ()) -> Iterator[Path]:
    """Yield a file, or the sorted Python files below a directory; symbolic links are not followed.

    ``exclude`` has globs for the path below the directory, for any directory in it, and for the file's name.
    """
    if not path.is_dir():
        if not _is_excluded(path.as_posix(), exclude):
            yield path
        return
    for directory, below, names in os.walk(path):
        here = Path(directory)
        below[:] = sorted(one for one in below if _is_ours(here / one) and not _is_out(here / one, path, exclude))
        for name in sorted(names):
            file = here / name
            if file.suffix in PYTHON and not _is_out(file, path, exclude) and file.is_file() and not file.is_symlink():
                yield file


def _is_ours(directory: Path) -> bool:
    is_hidden = directory.name.startswith(".") or directory.name in _FOREIGN
    return not (is_hidden or directory.is_symlink() or (directory / _ENVIRONMENT).is_file())


def is_excluded(path: Path, base: Path, exclude: Sequence[str]) -> bool:
    """Return whether a file below a directory, or a directory that it is in, matches one of the globs."""
    below = path.relative_to(base)
    steps = (below, *below.parents[:-1])
    return any(_is_excluded(step.as_posix(), exclude) for step in steps)


def _is_out(path: Path, base: Path, exclude: Sequence[str]) -> bool:
    return _is_excluded(path.relative_to(base).as_posix(), exclude)


def _is_excluded(path: str, exclude: Sequence[str]) -> bool:
    name = path.rpartition("/")[2]
    return any(fnmatchcase(one, glob) for pattern in exclude for glob in [pattern.rstrip("/")] for one in (path, name))

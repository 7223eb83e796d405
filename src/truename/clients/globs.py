"""Globs below one folder, bounded: ``*`` in a name, ``**`` for folders of any depth.

``**`` does not follow links to folders, so a loop of them ends.
"""

from __future__ import annotations

import os
import re
from fnmatch import translate
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["is_glob", "like", "walk"]

_MOST_FOUND: Final = 500
_MOST_FOLDERS: Final = 5_000
_MOST_ENTRIES: Final = 10_000
_DEEPEST: Final = 8
# Where installed plugins keep what is not theirs: large, and never a configuration.
_SKIPPED: Final = frozenset({"node_modules", ".git", "__pycache__", ".venv"})


def is_glob(pattern: str) -> bool:
    """Tell whether a pattern has to be looked up."""
    return "*" in pattern


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(translate(pattern.replace("[", "[[]")), re.DOTALL)


def like(text: str, pattern: str) -> bool:
    """Tell whether a text is like a pattern in which ``*`` and ``?`` alone are special.

    >>> like("a[b]_c", "a[b]*"), like("abc", "a[b]c")
    (True, False)
    """
    return text == pattern or _compiled(pattern).fullmatch(text) is not None


def walk(base: Path, pattern: str) -> tuple[tuple[Path, ...], bool]:
    """Return the files below a folder that a pattern means, in order, and whether these are all.

    No more are found, and no more folders searched, than can be looked at in a moment.
    """
    budget = [_MOST_FOLDERS]
    found = tuple(islice(_below(base, pattern.split("/"), budget, 0), _MOST_FOUND + 1))
    return found[:_MOST_FOUND], len(found) <= _MOST_FOUND and budget[0] >= 0


def _below(base: Path, parts: list[str], budget: list[int], depth: int) -> Iterator[Path]:
    part, *rest = parts
    if part == "**":
        yield from _below(base, rest, budget, depth)
        if depth < _DEEPEST:
            for entry in _entries(base, budget):
                if entry.name not in _SKIPPED and _is_folder(entry, follow=False):
                    yield from _below(base / entry.name, parts, budget, depth + 1)
    elif not is_glob(part):
        yield from _next(base / part, rest, budget)
    else:
        for entry in _entries(base, budget):
            if like(entry.name, part) and (bool(rest) == _is_folder(entry, follow=True)):
                yield from _next(base / entry.name, rest, budget)


def _next(path: Path, rest: list[str], budget: list[int]) -> Iterator[Path]:
    if rest:
        yield from _below(path, rest, budget, 0)
    elif os.path.lexists(path):
        yield path


def _is_folder(entry: os.DirEntry[str], *, follow: bool) -> bool:
    try:
        return entry.is_dir(follow_symlinks=follow)
    except OSError:
        return False


def _entries(folder: Path, budget: list[int]) -> list[os.DirEntry[str]]:
    budget[0] -= 1
    if budget[0] < 0:
        return []
    found: list[os.DirEntry[str]] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                found.append(entry)
                if len(found) == _MOST_ENTRIES:
                    break
    except (OSError, ValueError):
        return []
    return sorted(found, key=lambda entry: entry.name)

"""The machine whose clients are examined (system, home, environment), and bounded expansion of path patterns."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from truename.files.user import at_home

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["Machine", "System", "is_glob", "is_there", "like"]

_MOST_FOUND: Final = 500
MAX_FOLDERS: Final = 5_000
_MOST_ENTRIES: Final = 10_000
_DEEPEST: Final = 8
# Directories inside plugins that are large and hold no configuration.
_SKIPPED: Final = frozenset({"node_modules", ".git", "__pycache__", ".venv"})


def is_glob(pattern: str) -> bool:
    """Return whether a pattern contains ``*``."""
    return "*" in pattern


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(translate(pattern.replace("[", "[[]")), re.DOTALL)


def like(text: str, pattern: str) -> bool:
    """Return whether a text matches a glob in which only ``*`` and ``?`` are special.

    >>> like("a[b]_c", "a[b]*"), like("abc", "a[b]c")
    (True, False)
    """
    return text == pattern or _compiled(pattern).fullmatch(text) is not None


def walk(base: Path, pattern: str) -> tuple[tuple[Path, ...], bool]:
    """Return the files below a directory that match a pattern, in order, and whether the search was complete.

    The number of results and of searched directories is limited.
    """
    budget = [MAX_FOLDERS]
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


System = Literal["linux", "macos", "windows"]

_SYSTEMS: Final[Mapping[str, System]] = {"win32": "windows", "darwin": "macos"}

_LONGEST: Final = 4096
_MOST_PARENTS: Final = 64
_WINDOWS: Final[Mapping[str, tuple[str, str]]] = {
    "%USERPROFILE%": ("home", ""),
    "%APPDATA%": ("home", "AppData/Roaming"),
    "%LOCALAPPDATA%": ("home", "AppData/Local"),
    "%ProgramFiles%": ("root", "Program Files"),
    "%ProgramData%": ("root", "ProgramData"),
}


@dataclass(frozen=True, kw_only=True)
class Machine:
    """The directories and the environment in which to look for clients' files; nothing else is consulted.

    ``root`` holds ``/etc``, ``/Library`` and ``Program Files``; ``project`` is the directory whose project files are
    read. A variable with a relative, overlong or invalid path is ignored, as the XDG specification requires.

    >>> machine = Machine(system="linux", home=Path("/h"), environ={"CODEX_HOME": "../x"}, project=Path("/p"))
    >>> [str(path) for path in machine.expand("${CODEX_HOME:-~/.codex}/config.toml")]
    ['/h/.codex/config.toml']
    """

    system: System
    home: Path
    environ: Mapping[str, str]
    project: Path
    root: Path = Path("/")

    @classmethod
    def here(cls, project: Path | None = None) -> Machine:
        """Return the present machine; the project defaults to the current directory."""
        home = Path.home()
        project = Path.cwd() if project is None else at_home(project).absolute()
        system = _SYSTEMS.get(sys.platform, "linux")
        return cls(system=system, home=home, environ=dict(os.environ), project=project, root=Path(home.anchor or "/"))

    def expand(self, pattern: str) -> tuple[Path, ...]:
        """Return the paths that match a pattern; a pattern without globs is returned whether the path exists or not."""
        return self.search(pattern)[0]

    def existing(self, pattern: str) -> tuple[Path, ...]:
        """Return the existing paths that match a pattern, including broken links and devices."""
        return tuple(path for path in self.expand(pattern) if is_there(path))

    def search(self, pattern: str) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
        """Return the paths as `expand` does, and the directories that were too large to search completely."""
        found: dict[Path, None] = {}
        unfinished: list[Path] = []
        for base, rest in self._bases(pattern):
            paths, whole = walk(base, rest) if is_glob(rest) else ((base / rest if rest else base,), True)
            found.update(dict.fromkeys(paths))
            if not whole:
                unfinished.append(base / rest.partition("*")[0].rpartition("/")[0])
        return tuple(found), tuple(unfinished)

    def _bases(self, pattern: str) -> Iterator[tuple[Path, str]]:
        """Yield each base directory of a pattern, with the rest of the pattern below it."""
        if pattern.startswith("${"):
            inside, rest = _braces(pattern)
            name, _, default = inside.partition(":-")
            if chosen := self._absolute(name):
                yield chosen, rest.removeprefix("/")
            elif default:
                yield from self._bases(default + rest)
        elif pattern.startswith(("<up>/", "<repo>/")):
            kind, _, rest = pattern.partition("/")
            yield from ((folder, rest) for folder in self._upwards(to_repo=kind == "<repo>"))
        elif pattern.startswith("%"):
            name, _, rest = pattern.partition("/")
            place, below = _WINDOWS[name]
            known = None if name == "%USERPROFILE%" else self._absolute(name.strip("%"))
            yield known or (self.home if place == "home" else self.root) / below, rest
        elif pattern == "~" or pattern.startswith("~/"):
            yield self.home, pattern[2:]
        elif pattern.startswith("/"):
            yield self.root, pattern[1:]
        else:
            yield self.project, pattern

    def _absolute(self, name: str) -> Path | None:
        # On Windows, os.environ has variable names in capitals.
        value = self.environ.get(name) or self.environ.get(name.upper(), "")
        if not value or len(value) > _LONGEST or "\0" in value or not Path(value).is_absolute():
            return None
        return Path(value)

    def _upwards(self, *, to_repo: bool) -> Iterator[Path]:
        """Yield the project and its parents, up to the machine's root or home."""
        limits = (limit for limit in (self.root, self.home) if self.project.is_relative_to(limit))
        limit = next(limits, self.project)
        folders = [self.project, *self.project.parents][:_MOST_PARENTS]
        folders = [folder for folder in folders if folder.is_relative_to(limit)]
        if to_repo:
            top = next((at for at, folder in enumerate(folders) if is_there(folder / ".git")), 0)
            folders = folders[: top + 1]
        yield from folders


def _braces(pattern: str) -> tuple[str, str]:
    depth = 0
    for at, character in enumerate(pattern):
        depth += (character == "{") - (character == "}")
        if character == "}" and not depth:
            return pattern[2:at], pattern[at + 1 :]
    return pattern[2:], ""


def is_there(path: Path) -> bool:
    """Return whether a path exists, even as a broken link."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    except OSError as error:
        # A path without permission counts as existing; a name too long for the file system does not.
        return isinstance(error, PermissionError)
    return True

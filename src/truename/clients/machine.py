"""The machine whose clients are looked at: its system, home and environment, and the paths that a pattern means there.

A pattern begins with ``~`` (the home), ``/`` (the machine's root), ``%APPDATA%`` and its like, ``${VAR:-pattern}`` (an
absolute path from the environment, or else the pattern), ``<up>`` (the project and every folder above), ``<repo>``
(the same, up to the top of the repository); else it is relative to the project. Below that, ``*`` and ``**`` are globs.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from truename.clients.globs import is_glob, walk
from truename.files.person import at_home

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["Machine", "System", "is_there"]

System = Literal["linux", "macos", "windows"]

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
    """Where to look. Everything comes from its fields: a made-up home with an empty environment is complete.

    ``root`` is where ``/etc``, ``/Library`` and ``Program Files`` hang, ``project`` the directory whose project files
    count. A relative, overlong or broken value of a variable is ignored, as the XDG specification asks.

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
        """Return the machine that this runs on; the project is the current directory unless another is given."""
        home = Path.home()
        project = Path.cwd() if project is None else at_home(project).absolute()
        system: System = {"win32": "windows", "darwin": "macos"}.get(sys.platform, "linux")  # type: ignore[assignment]
        return cls(system=system, home=home, environ=dict(os.environ), project=project, root=Path(home.anchor or "/"))

    def expand(self, pattern: str) -> tuple[Path, ...]:
        """Return the paths that a pattern means: one without globs whether it exists or not, others as they exist."""
        return self.search(pattern)[0]

    def existing(self, pattern: str) -> tuple[Path, ...]:
        """Return what a pattern means and is there: also a broken link or a device, which are for a reader to tell."""
        return tuple(path for path in self.expand(pattern) if is_there(path))

    def search(self, pattern: str) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
        """Return the paths that a pattern means as `expand`, and the folders with more in them than is searched."""
        found: dict[Path, None] = {}
        unfinished: list[Path] = []
        for base, rest in self._bases(pattern):
            paths, whole = walk(base, rest) if is_glob(rest) else ((base / rest if rest else base,), True)
            found.update(dict.fromkeys(paths))
            if not whole:
                unfinished.append(base / rest.partition("*")[0].rpartition("/")[0])
        return tuple(found), tuple(unfinished)

    def _bases(self, pattern: str) -> Iterator[tuple[Path, str]]:
        """Yield each beginning of a pattern as a path, and the rest that hangs below it."""
        if pattern.startswith("${"):
            yield from self._variable(pattern)
        elif pattern.startswith(("<up>/", "<repo>/")):
            kind, _, rest = pattern.partition("/")
            yield from ((folder, rest) for folder in self._upwards(to_repo=kind == "<repo>"))
        elif pattern.startswith("%"):
            name, _, rest = pattern.partition("/")
            yield self._known_folder(name), rest
        elif pattern == "~" or pattern.startswith("~/"):
            yield self.home, pattern[2:]
        elif pattern.startswith("/"):
            yield self.root, pattern[1:]
        else:
            yield self.project, pattern

    def _variable(self, pattern: str) -> Iterator[tuple[Path, str]]:
        inside, rest = _braces(pattern)
        name, _, default = inside.partition(":-")
        if chosen := self._absolute(name):
            yield chosen, rest.removeprefix("/")
        elif default:
            yield from self._bases(default + rest)

    def _absolute(self, name: str) -> Path | None:
        # Windows keeps the names of variables in capitals.
        value = self.environ.get(name) or self.environ.get(name.upper(), "")
        if not value or len(value) > _LONGEST or "\0" in value or not Path(value).is_absolute():
            return None
        return Path(value)

    def _known_folder(self, name: str) -> Path:
        place, below = _WINDOWS[name]
        base = self.home if place == "home" else self.root
        known = None if name == "%USERPROFILE%" else self._absolute(name.strip("%"))
        return known or base / below

    def _upwards(self, *, to_repo: bool) -> Iterator[Path]:
        """Yield the project and the folders above it, never beyond the machine's root or home."""
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
    """Tell whether there is anything at a path, if only a broken link."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    except OSError as error:
        # A name too long for the file system is nowhere; what may not be looked at is there for all we know.
        return isinstance(error, PermissionError)
    return True

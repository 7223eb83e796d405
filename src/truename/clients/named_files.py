"""Find and read the files that name tools: skills, agents, commands, permissions and instructions below a directory.

Nothing in them is run, and no YAML is constructed. A file that cannot be read has a problem, with its line.
"""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from truename.clients.kept_names import kept_names
from truename.clients.machine import is_glob
from truename.clients.reading import is_unended, read_frontmatter
from truename.clients.server_entries import entries_of, read_entry
from truename.clients.table import config_files, name_files
from truename.editing import Document
from truename.errors import ConfigError
from truename.files import absolute

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from truename.clients.kept_names import KeptName
    from truename.clients.table import ConfigFile
    from truename.config import ServerConfig

__all__ = ["NamedFile", "ProjectServers", "find_named_files", "is_named_file", "read_named_file"]

MAX_BYTES: Final = 16 * 1024 * 1024
_MOST_NAMES: Final = 1_000_000
_PROJECT: Final = "project"
_MARKDOWN: Final = "markdown"
_BOM: Final = "\ufeff"
_SHELL: Final = "shell"
_TEXTS: Final = (".md", ".mdc", ".markdown")
_SKILL: Final = "SKILL.md"
_SKILLS: Final = ".claude/skills/*/SKILL.md"
# Files of instructions for agents; only their text counts.
_INSTRUCTIONS: Final = frozenset({"AGENTS.md", "CLAUDE.md", "GEMINI.md", "copilot-instructions.md"})
# Directories of a plugin whose Markdown files have the form of Claude Code's agents and commands.
_PLUGIN: Final = ".claude-plugin"
_OF_PLUGIN: Final = ("agents", "commands")
_FOREIGN: Final = frozenset({"node_modules", "__pycache__", "site-packages", "__pypackages__"})
_PLACE: Final = re.compile(r"^(?:<\w+>/)?(?P<steps>(?![~%$/]).+)")


@dataclass(frozen=True, kw_only=True)
class NamedFile:
    """A file that names tools: the rows of the table that match it, its text, and the names in its lists by row.

    ``root`` is the directory of the project. ``places`` are the offsets of names in a Markdown file. ``problem`` tells
    why the file, or a part of it, cannot be read.
    """

    path: Path
    root: Path
    rows: tuple[ConfigFile, ...] = ()
    text: str = ""
    kept: tuple[tuple[ConfigFile, KeptName], ...] = ()
    places: dict[tuple[str | int, ...], int] | None = None
    document: Document | None = None
    problem: ConfigError | None = None

    @property
    def bom(self) -> str:
        """The byte order mark of a document, which its text lacks; "" if it has none."""
        return _BOM if self.document is not None and self.document.raw.startswith(_BOM.encode()) else ""

    @property
    def has_prose(self) -> bool:
        """Whether the text of the file counts as well as its lists."""
        return self.document is None


class _Pattern(NamedTuple):
    """A path of the table, of a project's file, and its row."""

    regex: re.Pattern[str]
    row: ConfigFile


@cache
def _patterns() -> tuple[_Pattern, ...]:
    pairs = ((_PLACE.match(place), row) for row in _rows() for place in _places(row))
    return tuple(_Pattern(_compiled(steps["steps"]), row) for steps, row in pairs if steps)


def _rows() -> Iterator[ConfigFile]:
    """Yield the rows of projects' files that have names; a script of a client is not read."""
    rows = (row for row in (*name_files(), *config_files()) if row.scope == _PROJECT and row.format != _SHELL)
    return (row for row in rows if row.kept or row.entry)


def _places(row: ConfigFile) -> Iterable[str]:
    return dict.fromkeys(place for places in row.paths.values() for place in places)


def _compiled(place: str) -> re.Pattern[str]:
    body = re.escape(place).replace(r"\*\*/", "(?:[^/]+/)*").replace(r"\*", "[^/]*")
    return re.compile(f"(?P<root>(?:.*/)?){body}", re.DOTALL)


@cache
def _names() -> re.Pattern[str]:
    """Return the pattern of the files' own names, which decides on most files at once."""
    steps = sorted({place.rpartition("/")[2] for row in _rows() for place in _places(row)})
    return re.compile("|".join(re.escape(step).replace(r"\*", ".*") for step in steps), re.DOTALL)


@cache
def _hidden() -> frozenset[str]:
    """Return the hidden directories in which clients keep such files."""
    places = (place for row in _rows() for place in _places(row))
    return frozenset(step for place in places for step in place.split("/")[:-1] if step.startswith("."))


@cache
def _claude() -> tuple[ConfigFile, ...]:
    return tuple(row for row in name_files("claude-code") if any(_SKILLS in many for many in row.paths.values()))


def _rows_of(path: Path) -> tuple[Path | None, tuple[ConfigFile, ...]]:
    """Return the rows of the table that match a file, and the root of the project if they tell it."""
    text = path.as_posix()
    patterns = _patterns() if _names().fullmatch(path.name) else ()
    found = [(match["root"], one.row) for one in patterns if (match := one.regex.fullmatch(text))]
    if found:
        # The longest ending of a path tells most of it.
        root = min((root for root, _ in found), key=len)
        return Path(root), tuple(row for at, row in found if at == root)
    if path.name == _SKILL:
        return None, _claude()
    if path.suffix in _TEXTS:
        for folder in path.parents:
            if folder.name in _OF_PLUGIN and (folder.parent / _PLUGIN).is_dir():
                return folder.parent, _claude()
    return None, ()


def _root_of(path: Path) -> Path:
    """Return the directory whose project a file belongs to: above a client's directory, or of a plugin."""
    for folder in path.parents:
        if folder.name in _hidden():
            return folder.parent
        if (folder / _PLUGIN).is_dir():
            return folder
    return path.parent


def is_named_file(path: Path) -> bool:
    """Return whether a file named on the command line is one that names tools: Markdown, or a row of such files.

    >>> is_named_file(Path("AGENTS.md")), is_named_file(Path(".claude/settings.json")), is_named_file(Path("a.json"))
    (True, True, False)
    """
    if path.suffix in _TEXTS:
        return True
    return any(not row.shape for row in _rows_of(path.absolute())[1])


def find_named_files(directory: Path) -> Iterator[Path]:
    """Yield the files below a directory that name tools, sorted; links to directories are not followed.

    Hidden directories are left out, except those of clients; so are virtual environments and ``node_modules``.
    """
    skills: set[Path] = set()
    for name, below, files in os.walk(directory):
        here = Path(name)
        below[:] = sorted(one for one in below if _is_searched(here / one))
        if _SKILL in files or here.parent in skills:
            skills.add(here)
        for file in sorted(files):
            path = here / file
            is_reference = here in skills and path.suffix in _TEXTS
            if is_reference or file in _INSTRUCTIONS or _rows_of(path.absolute())[1]:
                yield path


def _is_searched(directory: Path) -> bool:
    name = directory.name
    is_ours = name in _hidden() if name.startswith(".") else name not in _FOREIGN
    return is_ours and not directory.is_symlink() and not (directory / "pyvenv.cfg").is_file()


def read_named_file(path: Path, servers: ProjectServers, inside: Path | None = None) -> NamedFile:
    """Read one file. With ``inside``, a link to a file outside of that directory is a problem."""
    above, rows = _rows_of(absolute(path))
    root = _root_of(absolute(path)) if above is None else above
    try:
        text = _text(path, inside)
        if not rows or rows[0].format == _MARKDOWN:
            return _of_markdown(path, root, rows, text, servers)
        document = Document.parse(text.encode(), path, rows[0].format)
    except ConfigError as problem:
        return NamedFile(path=path, root=root, rows=rows, problem=problem)
    kept: list[tuple[ConfigFile, KeptName]] = []
    for row in rows:
        entries = [(key, where) for where, key, _ in entries_of(row, document.value)] if row.shape else []
        known = servers.keys(row.client, root)
        kept += ((row, one) for one in kept_names(row, path, document.value, entries, known, most=_MOST_NAMES))
    return NamedFile(path=path, root=root, rows=rows, text=document.text, kept=tuple(kept), document=document)


def _of_markdown(path: Path, root: Path, rows: tuple[ConfigFile, ...], text: str, servers: ProjectServers) -> NamedFile:
    problem = None
    if rows and is_unended(text):
        remedy = "End it with a line of three hyphens."
        problem = ConfigError(file=str(path), key=_at(1, 1), problem="its frontmatter does not end", remedy=remedy)
    found = read_frontmatter(text)
    kept: list[tuple[ConfigFile, KeptName]] = []
    for row in rows:
        known = servers.keys(row.client, root)
        kept += ((row, one) for one in kept_names(row, path, found.fields, (), known, most=_MOST_NAMES))
    return NamedFile(path=path, root=root, rows=rows, text=text, kept=tuple(kept), places=found.places, problem=problem)


def _at(line: int, column: int) -> str:
    return f"line {line}, column {column}"


def _text(path: Path, inside: Path | None) -> str:
    try:
        if inside is not None and path.is_symlink() and not path.resolve().is_relative_to(inside.resolve()):
            raise _refused(path, "it is a link to a file outside of the directory", "Name that file itself.")
        if not stat.S_ISREG(path.stat().st_mode):
            raise _refused(path, "it is not a regular file", "Give a file or a directory.")
        with path.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise _refused(path, f"it cannot be read ({reason})", "Check the path.") from error
    if len(raw) > MAX_BYTES:
        raise _refused(path, f"it is larger than {MAX_BYTES:,} bytes", "Split it, or exclude it with --exclude.")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        start = raw.rfind(b"\n", 0, error.start) + 1
        place = _at(raw.count(b"\n", 0, error.start) + 1, error.start - start + 1)
        raise _refused(path, f"it is not UTF-8 (byte {error.start})", "Save it as UTF-8.", place) from error


def _refused(path: Path, problem: str, remedy: str, key: str = "") -> ConfigError:
    return ConfigError(file=str(path), key=key, problem=problem, remedy=remedy)


class ProjectServers:
    """The servers in the files of clients, by client and project; each file is read once.

    ``known`` are keys of other servers, which a client may have from elsewhere: names of them are parsed too.
    """

    def __init__(self, known: Iterable[str] = ()) -> None:
        self._known = tuple(known)
        self._of = cache(self._at)
        self._in = cache(_servers_in)

    def of(self, client: str, root: Path) -> Mapping[str, ServerConfig]:
        """Return the servers of one client, by key; of all clients if none is named. Broken files have none.

        The servers are those at the root and above it, up to the working directory.
        """
        return self._of(client, root)

    def _at(self, client: str, root: Path) -> Mapping[str, ServerConfig]:
        found: dict[str, ServerConfig] = {}
        here = Path.cwd()
        above = [one for one in root.parents if one.is_relative_to(here)] if root.is_relative_to(here) else []
        for folder in (root, *above):
            found = {**self._in(client, folder), **found}
        return found

    def keys(self, client: str, root: Path) -> tuple[str, ...]:
        """Return the keys of all servers that names in a project's files may have."""
        return tuple(dict.fromkeys((*self.of(client, root), *self._known)))


def _servers_in(client: str, root: Path) -> dict[str, ServerConfig]:
    found: dict[str, ServerConfig] = {}
    for row in config_files(client or None):
        if row.scope != _PROJECT or not row.shape or row.format == _SHELL:
            continue
        for place in _places(row):
            steps = _PLACE.match(place)
            if steps is not None and not is_glob(place):
                for key, raw in _entries(row, root / steps["steps"]):
                    found.setdefault(key, read_entry(row.shape, key, raw))
    return found


def _entries(row: ConfigFile, path: Path) -> Iterator[tuple[str, object]]:
    if path.is_file():
        with suppress(ConfigError):
            yield from ((key, raw) for _, key, raw in entries_of(row, Document.read(path, row.format).value))

"""Survey the files of a project for a rename: compute all changes before anything is written."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final, NamedTuple

from truename.catalog.globs import fits
from truename.errors import MigrationError, excerpt
from truename.files import absolute, read_plain
from truename.migration.protocol_versions import DEFAULT_PATTERN, ProtocolStatement, pattern_for, stated_versions
from truename.migration.rewrite import Leftover, TextEdit, kind_of, rewrite
from truename.migration.search_patterns import Lexicon

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from truename.migration.plan import RenamePlan
    from truename.migration.rewrite import FunctionTool, ReadFunctions

__all__ = ["HISTORY", "MAX_FILE", "FileRewrite", "LeftMention", "Survey", "survey", "walk"]

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


class ProjectFile(NamedTuple):
    """A file to read: its path as messages show it (not made absolute), and whether it is a symbolic link."""

    path: Path
    is_link: bool


def walk(paths: Sequence[Path], exclude: Iterable[str] = HISTORY, skip: Iterable[Path] = ()) -> Iterator[ProjectFile]:
    """Yield the files under these paths, each once, a directory's own before those below it.

    Links to directories are not followed. ``exclude`` are globs (``*`` also matches ``/``): one without ``/`` applies
    to the name of a file or directory, another to the path from the working directory or from any directory below.
    ``skip`` are files and whole directories. Raises `MigrationError` for a missing path.
    """
    excluded, skipped = tuple(exclude), frozenset(map(absolute, skip))
    seen: set[Path] = set()
    for path in paths:
        if not os.path.lexists(path):
            raise MigrationError(file=str(path), problem="it does not exist", remedy="Check the path.")
        root = absolute(path)
        for found in (
            _below(path, skipped) if path.is_dir() and not path.is_symlink() else [ProjectFile(path, path.is_symlink())]
        ):
            whole = absolute(found.path)
            if whole not in seen and whole not in skipped and not _is_excluded(whole, root, excluded):
                seen.add(whole)
                yield found


def _below(directory: Path, skipped: frozenset[Path]) -> Iterator[ProjectFile]:
    waiting = [directory]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            problem = f"the directory is not readable ({error.strerror or error})"
            raise MigrationError(file=str(error.filename), problem=problem, remedy="Check its permissions.") from error
        waiting += [
            Path(entry.path)
            for entry in reversed(entries)
            if entry.is_dir(follow_symlinks=False)
            and entry.name not in MACHINERY
            and absolute(Path(entry.path)) not in skipped
        ]
        for entry in entries:
            if entry.is_symlink():
                yield from [ProjectFile(Path(entry.path), is_link=True)] if entry.is_file() else []
            elif entry.is_file():
                yield ProjectFile(Path(entry.path), is_link=False)


def _is_excluded(path: Path, root: Path, globs: tuple[str, ...]) -> bool:
    """Return whether a glob matches a name from the root on, or a path that starts at any of them."""
    parts = path.relative_to(root.parent).parts
    shown = "/" + "/".join(parts)
    working = absolute(Path())
    here = path.relative_to(working).as_posix() if path.is_relative_to(working) else ""
    return any(
        (fits(f"*/{glob}", shown) or fits(glob, here))
        if "/" in glob
        else any(fits(glob, part) for part in parts[1:] or parts)
        for glob in globs
    )


# Files that are identified by path only; the name of a module is also used in code.
_MOVABLE: Final = frozenset({".json", ".jsonl", ".yaml", ".yml", ".md", ".txt", ".xml", ".csv", ".snap", ".golden"})


@dataclass(frozen=True)
class FileNames:
    """The file names before and after a migration; with ``is_asked`` files are moved."""

    lexicon: Lexicon
    is_asked: bool

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        # "_" and "-" separate words in a file name, but belong to a word in a text.
        inner = self.lexicon.names.pattern.removeprefix(r"(?<![\w-])").removesuffix(r"(?![\w-])")
        return re.compile(rf"(?<![^\W_]){inner}(?![^\W_])")

    def new(self, name: str) -> str:
        """Return the new name of a file; "" if it does not change.

        >>> from truename.migration.search_patterns import Lexicon
        >>> FileNames(Lexicon.of({"fs.list": "fs_list"}), is_asked=True).new("request_fs.list.json")
        'request_fs_list.json'
        """
        return self._renamed(name) if self.is_asked and PurePath(name).suffix.lower() in _MOVABLE else ""

    def kept(self, name: str) -> str:
        """Return the old name in a file name that does not change; "" if there is none."""
        if not self._renamed(name) or self.new(name):
            return ""
        return next(found["text"] for found in self._pattern.finditer(name) if self._in_place(name, found) != found[0])

    def _renamed(self, name: str) -> str:
        new = self._pattern.sub(lambda found: self._in_place(name, found), name)
        return "" if new == name else new

    def _in_place(self, name: str, found: re.Match[str]) -> str:
        # A continuation with "_" or "-" may be the longer name of another tool.
        is_whole = name[found.end() : found.end() + 1] in {"", "."}
        return self.lexicon.meanings.get(found["text"], found[0]) if is_whole else found[0]


# Larger files are not sources; they are searched and reported, but not changed.
MAX_FILE: Final = 16 * 1024 * 1024
_PIECE: Final = 4 * 1024 * 1024
_CODES: Final = ("utf-8", "utf-16-le", "utf-16-be")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRewrite:
    """The change of one file: its content before and after (None: no file), and ``target``, its path afterwards."""

    path: Path
    before: bytes | None
    after: bytes | None
    target: Path
    edits: tuple[TextEdit, ...] = ()


@dataclass(frozen=True, slots=True)
class LeftMention:
    """A remaining old name in a file."""

    path: Path
    leftover: Leftover

    def __str__(self) -> str:
        place = f"{self.path}:{self.leftover.line}:{self.leftover.column}" if self.leftover.line else str(self.path)
        return f"{place}: {self.leftover.name}"


@dataclass(frozen=True, slots=True)
class SurveyedFile:
    """A file that was read: its change, if any, the remaining old names, and the protocol versions it states."""

    path: Path
    change: FileRewrite | None
    left: tuple[LeftMention, ...]
    versions: tuple[str, ...] = ()
    raw: bytes = b""
    taken: tuple[LeftMention, ...] = ()


@dataclass(frozen=True)
class FileSurvey:
    """The search of a rename; ``pattern`` is the way in which files state a protocol version, "" to ignore it.

    ``news`` are the new names, whose earlier uses are reported. ``functions`` finds the functions that declare
    tools.
    """

    lexicon: Lexicon
    news: tuple[str, ...] = ()
    rename_files: bool = False
    pattern: str = ""
    functions: ReadFunctions | None = None

    def with_moves(self, names: Iterator[str]) -> FileSurvey:
        """Return a copy that also replaces mentions of files which are moved."""
        moves = {name: new for name in names if (new := self._file_names.new(name))}
        return replace(self, lexicon=self.lexicon.with_files(moves))

    @cached_property
    def _file_names(self) -> FileNames:
        return FileNames(self.lexicon, is_asked=self.rename_files)

    def survey_file(self, found: ProjectFile) -> SurveyedFile:
        """Read a file, and compute its change. Raises `MigrationError` for an unreadable one."""
        path = found.path
        kept = self._file_names.kept(path.name)
        left = [LeftMention(path, Leftover(0, 0, kept, "file name", path.name))] if kept else []
        raw = self._raw(found)
        text = None if raw is None else _decoded(raw)
        if raw is None or text is None:
            held = self._held(raw) if raw is not None else self._held_by(path)
            left += [LeftMention(path, Leftover(0, 0, held, "encoding"))] if held else []
            return SurveyedFile(path, self._moved(path, raw), tuple(left))
        done = rewrite(text, self.lexicon, kind_of(path.name), functions=self._functions(text, path.name))
        left += [LeftMention(path, leftover) for leftover in done.leftovers]
        versions = stated_versions(text, pattern_for(path.name, self.pattern)) if self.pattern else ()
        if not done.edits:
            return SurveyedFile(path, self._moved(path, raw), tuple(left), versions, raw if versions else b"")
        target = self._target(path)
        change = FileRewrite(path=absolute(path), before=raw, after=done.text.encode(), target=target, edits=done.edits)
        # The places where a new name is already in quotes.
        taken = tuple(
            LeftMention(path, Leftover(edit.line, edit.column, edit.old, "taken"))
            for edit in rewrite(text, self._new_names).edits
        )
        return SurveyedFile(path, change, tuple(left), versions, raw, taken)

    def _functions(self, text: str, name: str) -> tuple[FunctionTool, ...]:
        if self.functions is None or self.lexicon.names.search(text) is None:
            return ()
        return self.functions(text, name)

    @cached_property
    def _new_names(self) -> Lexicon:
        return Lexicon.of({new: f"{new}_" for new in self.news})

    def with_protocol_version(self, seen: SurveyedFile, protocol: ProtocolStatement) -> FileRewrite | None:
        """Return the change of a file, including the new protocol version."""
        if protocol.old not in seen.versions:
            return seen.change
        name = seen.path.name
        stating = replace(protocol, pattern=pattern_for(name, protocol.pattern))
        text = seen.raw.decode()
        functions = self._functions(text, name)
        done = rewrite(text, self.lexicon, kind_of(name), protocol=stating, functions=functions)
        target = self._target(seen.path)
        after = done.text.encode()
        return FileRewrite(path=absolute(seen.path), before=seen.raw, after=after, target=target, edits=done.edits)

    def _target(self, path: Path) -> Path:
        return absolute(path.with_name(self._file_names.new(path.name) or path.name))

    def _moved(self, path: Path, raw: bytes | None) -> FileRewrite | None:
        target = self._target(path)
        if raw is None or target == absolute(path):
            return None
        return FileRewrite(path=absolute(path), before=raw, after=raw, target=target)

    def _raw(self, found: ProjectFile) -> bytes | None:
        try:
            if found.path.stat().st_size > MAX_FILE:
                return None
            return found.path.read_bytes() if found.is_link else read_plain(found.path)
        except OSError as error:
            raise _unreadable(found.path, error) from error

    @cached_property
    def _spelled(self) -> re.Pattern[bytes]:
        spelled = {name.encode(code, "surrogatepass") for name in self.lexicon.meanings for code in _CODES}
        return re.compile(b"|".join(map(re.escape, sorted(spelled, key=len, reverse=True))) or b"(?!)")

    def _held(self, raw: bytes) -> str:
        """Return an old name in bytes that are not UTF-8 text; "" if there is none."""
        found = self._spelled.search(raw)
        return "" if found is None else found[0].replace(b"\0", b"").decode("utf-8", "replace")

    def _held_by(self, path: Path) -> str:
        """Return an old name in a file that is too large to read at once; "" if there is none."""
        overlap = 4 * max(map(len, self.lexicon.meanings), default=0)
        last = b""
        try:
            with path.open("rb") as stream:
                while piece := stream.read(_PIECE):
                    if held := self._held(last + piece):
                        return held
                    last = piece[-overlap:]
        except OSError as error:
            raise _unreadable(path, error) from error
        return ""


def _decoded(raw: bytes) -> str | None:
    try:
        return None if b"\0" in raw else raw.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _unreadable(path: Path, error: OSError) -> MigrationError:
    problem = f"it is not readable ({error.strerror or error})"
    return MigrationError(
        file=str(path), problem=problem, remedy="Check its permissions, or exclude it with --exclude."
    )


@dataclass(frozen=True, kw_only=True)
class Survey:
    """The planned changes, the remaining old names, the number of files read, and the excluded patterns.

    ``taken`` are the places in changed files that already had a new name, with another meaning or from a partial
    rename.
    """

    changes: tuple[FileRewrite, ...]
    leftovers: tuple[LeftMention, ...]
    files: int
    excluded: tuple[str, ...]
    protocol: ProtocolStatement | None = None
    taken: tuple[LeftMention, ...] = ()

    @property
    def edits(self) -> int:
        """The number of places that change."""
        return sum(len(change.edits) for change in self.changes)

    @property
    def moved(self) -> tuple[FileRewrite, ...]:
        """The files that are moved."""
        return tuple(change for change in self.changes if change.path != change.target)

    @property
    def is_clean(self) -> bool:
        """Whether no file has an old name."""
        return not self.changes and not self.leftovers

    def with_file(self, path: Path, text: str) -> Survey:
        """Return the survey with a new file, which is written together with the changes."""
        made = FileRewrite(path=path, before=None, after=text.encode(), target=path)
        return replace(self, changes=(*self.changes, made))


def survey(
    plan: RenamePlan,
    paths: Sequence[Path],
    *,
    exclude: Iterable[str] = HISTORY,
    skip: Iterable[Path] = (),
    rename_files: bool = False,
    count_up: bool = False,
    pattern: str = DEFAULT_PATTERN,
    pattern_file: str = "*",
    functions: ReadFunctions | None = None,
    on_file: Callable[[int, int], None] | None = None,
) -> Survey:
    """Read all files, and compute the changes of a plan. Nothing is written.

    ``exclude`` are patterns as in `walk`, ``skip`` files and directories. ``rename_files`` moves files whose own name
    contains an old name. ``count_up`` increments the protocol version in files that match the glob ``pattern_file``, if
    any name changes, so a second run increments nothing. ``functions`` finds the functions that declare tools: if a
    tool takes its name from the function, the new name is written into the declaration. ``on_file`` receives the number
    of files read so far, and the total.

    Raises `MigrationError` for a plan with refusals, a missing path, an unreadable file, two files with the same new
    path, or two protocol versions. A file that is not UTF-8 is reported if it contains an old name.
    """
    excluded = tuple(exclude)
    news = tuple(plan.renames.values())
    look = FileSurvey(
        plan.lexicon(), news, rename_files=rename_files, pattern=pattern if count_up else "", functions=functions
    )
    found = tuple(walk(paths, excluded, skip))
    if any(each.is_link for each in found):
        # Links to files that are surveyed themselves change with those.
        real = {each.path.resolve() for each in found if not each.is_link}
        found = tuple(each for each in found if not each.is_link or each.path.resolve() not in real)
    if rename_files:
        look = look.with_moves(each.path.name for each in found)
    seen: list[SurveyedFile] = []
    for number, each in enumerate(found, 1):
        one = look.survey_file(each)
        seen += [one] if one.change or one.left or one.versions else []
        if on_file is not None:
            on_file(number, len(found))
    changes = [one.change for one in seen if one.change is not None]
    stating = [one for one in seen if one.versions and fits(pattern_file, one.path.as_posix())] if changes else []
    protocol = _protocol(stating, pattern)
    if protocol is not None:
        counted = {one.path: look.with_protocol_version(one, protocol) for one in stating}
        rest = [one.change for one in seen if one.path not in counted]
        changes = [change for change in (*rest, *counted.values()) if change is not None]
    _check_apart(changes)
    return Survey(
        changes=tuple(sorted(changes, key=lambda change: change.path)),
        leftovers=tuple(left for one in seen for left in one.left),
        files=len(found),
        excluded=excluded,
        protocol=protocol,
        taken=tuple(left for one in seen if one.change is not None for left in one.taken),
    )


def _protocol(stating: Sequence[SurveyedFile], pattern: str) -> ProtocolStatement | None:
    """Return the step from the version that all files state. Raises `MigrationError` if they differ."""
    places = {version: one.path for one in stating for version in one.versions}
    if not places:
        return None
    if len(places) > 1:
        told = " and ".join(f"{version} in {places[version]}" for version in sorted(places)[:3])
        raise MigrationError(
            problem=f"the protocol version is {told}",
            remedy="Make them equal first, or name the file that counts (protocol.file).",
        )
    return ProtocolStatement.after(next(iter(places)), pattern=pattern)


def _check_apart(changes: Iterable[FileRewrite]) -> None:
    """Raise `MigrationError` if a moved file would replace another."""
    moved = [change for change in changes if change.target != change.path]
    taken: dict[Path, Path] = {}
    for change in moved:
        other = taken.setdefault(change.target, change.path)
        if other != change.path or change.target.exists():
            there = f"{excerpt(change.target.name)}, which already exists"
            raise MigrationError(
                file=str(change.path), problem=f"it would become {there}", remedy="Move one of them by hand first."
            )

"""Looking into one file: what a migration changes in it, and what is left."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from truename.errors import MigrationError
from truename.files import absolute, read_plain
from truename.migration.file_names import FileNames
from truename.migration.lexicon import Lexicon
from truename.migration.plain import kind_of
from truename.migration.protocol import pattern_for, stated
from truename.migration.rewrite import Edit, Leftover, rewrite

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from truename.migration.functions import FunctionTool, ReadFunctions
    from truename.migration.protocol import Protocol
    from truename.migration.tree import Found

__all__ = ["MAX_FILE", "Change", "Left", "Look", "Seen"]

# Larger files are no sources; they are searched, and reported.
MAX_FILE: Final = 16 * 1024 * 1024
_PIECE: Final = 4 * 1024 * 1024
_CODES: Final = ("utf-8", "utf-16-le", "utf-16-be")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One file: what it holds and will hold (None: no file), and ``target``, its path after the change."""

    path: Path
    before: bytes | None
    after: bytes | None
    target: Path
    edits: tuple[Edit, ...] = ()


@dataclass(frozen=True, slots=True)
class Left:
    """An old name left in a file."""

    path: Path
    leftover: Leftover

    def __str__(self) -> str:
        place = f"{self.path}:{self.leftover.line}:{self.leftover.column}" if self.leftover.line else str(self.path)
        return f"{place}: {self.leftover.name}"


@dataclass(frozen=True, slots=True)
class Seen:
    """A file that was looked into: its change, if there is one, what is left, the protocol versions it states."""

    path: Path
    change: Change | None
    left: tuple[Left, ...]
    versions: tuple[str, ...] = ()
    raw: bytes = b""
    taken: tuple[Left, ...] = ()


@dataclass(frozen=True)
class Look:
    """What to look for; ``pattern`` is how files state a protocol version, "" where that is not asked.

    ``news`` are the new names, whose places before the change are told. ``functions`` reads the functions of
    a text that are tools.
    """

    lexicon: Lexicon
    news: tuple[str, ...] = ()
    rename_files: bool = False
    pattern: str = ""
    functions: ReadFunctions | None = None

    def with_moves(self, names: Iterator[str]) -> Look:
        """Return the look that also finds the names of files which move, wherever texts mention them."""
        moves = {name: new for name in names if (new := self._file_names.new(name))}
        return replace(self, lexicon=self.lexicon.with_files(moves))

    @cached_property
    def _file_names(self) -> FileNames:
        return FileNames(self.lexicon, is_asked=self.rename_files)

    def into(self, found: Found) -> Seen:
        """Look into a file. Raises `MigrationError` for one that can't be read."""
        path = found.path
        kept = self._file_names.kept(path.name)
        left = [Left(path, Leftover(0, 0, kept, "file name", path.name))] if kept else []
        raw = self._raw(found)
        text = None if raw is None else _decoded(raw)
        if raw is None or text is None:
            held = self._held(raw) if raw is not None else self._held_by(path)
            left += [Left(path, Leftover(0, 0, held, "encoding"))] if held else []
            return Seen(path, self._moved(path, raw), tuple(left))
        done = rewrite(text, self.lexicon, kind_of(path.name), functions=self._functions(text, path.name))
        left += [Left(path, leftover) for leftover in done.leftovers]
        versions = stated(text, pattern_for(path.name, self.pattern)) if self.pattern else ()
        if not done.edits:
            return Seen(path, self._moved(path, raw), tuple(left), versions, raw if versions else b"")
        target = self._target(path)
        change = Change(path=absolute(path), before=raw, after=done.text.encode(), target=target, edits=done.edits)
        return Seen(path, change, tuple(left), versions, raw, tuple(self._taken(path, text)))

    def _functions(self, text: str, name: str) -> tuple[FunctionTool, ...]:
        if self.functions is None or self.lexicon.names.search(text) is None:
            return ()
        return self.functions(text, name)

    @cached_property
    def _new_names(self) -> Lexicon:
        return Lexicon.of({new: f"{new}_" for new in self.news})

    def _taken(self, path: Path, text: str) -> Iterator[Left]:
        """Yield where a new name stands in quotes already."""
        for edit in rewrite(text, self._new_names).edits:
            yield Left(path, Leftover(edit.line, edit.column, edit.old, "taken"))

    def counted_up(self, seen: Seen, protocol: Protocol) -> Change | None:
        """Return the change of a file with the protocol version in it."""
        if protocol.old not in seen.versions:
            return seen.change
        name = seen.path.name
        stating = replace(protocol, pattern=pattern_for(name, protocol.pattern))
        text = seen.raw.decode()
        functions = self._functions(text, name)
        done = rewrite(text, self.lexicon, kind_of(name), protocol=stating, functions=functions)
        target = self._target(seen.path)
        after = done.text.encode()
        return Change(path=absolute(seen.path), before=seen.raw, after=after, target=target, edits=done.edits)

    def _target(self, path: Path) -> Path:
        return absolute(path.with_name(self._file_names.new(path.name) or path.name))

    def _moved(self, path: Path, raw: bytes | None) -> Change | None:
        target = self._target(path)
        if raw is None or target == absolute(path):
            return None
        return Change(path=absolute(path), before=raw, after=raw, target=target)

    def _raw(self, found: Found) -> bytes | None:
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
        """Return an old name in bytes that are no UTF-8 text, "" if there is none."""
        found = self._spelled.search(raw)
        return "" if found is None else found[0].replace(b"\0", b"").decode("utf-8", "replace")

    def _held_by(self, path: Path) -> str:
        """Search a file too large to be held at once."""
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
    problem = f"it can't be read ({error.strerror or error})"
    return MigrationError(file=str(path), problem=problem, remedy="Check who may read it, or --exclude it.")

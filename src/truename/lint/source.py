"""A Python source as text and tree, with the places in it: it is parsed, and never imported or run."""

from __future__ import annotations

import ast
import codecs
import re
import tokenize
import warnings
from io import BytesIO
from typing import TYPE_CHECKING, Final

from truename.conventions import Location

if TYPE_CHECKING:
    from truename.lint.scope import Function, Text

__all__ = ["MAX_SOURCE", "Source", "Unreadable"]

# No source written by people is half as large; a parser takes a thousand bytes of memory for each.
MAX_SOURCE: Final = 4 * 1024 * 1024
# The names that Python's own table has for them. Some codecs are no text, and some take a time that grows as a square.
_ENCODINGS: Final = re.compile(
    r"utf-8(-sig)?|ascii|iso8859-\d{1,2}|cp\d{3,5}|koi8-[rtu]|mac-\w{1,20}|gb\w{1,8}|big5\w{0,8}|shift_jis\w{0,8}|euc_\w{1,12}"
)
# What may stand before a name in a literal: rb"""
_PREFIX: Final = 5


class Unreadable(ValueError):
    """A source can't be read: what is wrong with it, and the line (0: unknown) and column."""

    def __init__(self, problem: str, remedy: str, line: int = 0, column: int = 0) -> None:
        super().__init__(problem)
        self.problem = problem
        self.remedy = remedy
        self.line = line
        self.column = column


class Source:
    """One source: its text with plain line ends, its tree, and what it is called. Raises `Unreadable`."""

    def __init__(self, raw: bytes, file: str) -> None:
        self.file = file
        self.text = _decoded(raw)
        self.tree = _parsed(self.text)
        # Form feeds and the like end no line for the parser; only these do.
        self._lines = self.text.split("\n")

    def is_literal(self, text: Text, place: Location) -> bool:
        """Tell whether a text stands at its place letter by letter."""
        line = self._line(place.line)
        return isinstance(text.node, ast.Constant) and line.startswith(text.value, place.column - 1)

    def _line(self, number: int) -> str:
        return self._lines[number - 1] if 0 < number <= len(self._lines) else ""

    def place(self, node: ast.expr, name: str) -> Location:
        """Return where the name begins; where it is not written letter by letter, where the expression does."""
        line = self._line(node.lineno)
        _, start = self.point(node.lineno, node.col_offset)
        found = line.find(name, start, start + len(name) + _PREFIX) if name else -1
        return Location(file=self.file, line=node.lineno, column=(found if found >= 0 else start) + 1)

    def point(self, line: int, offset: int) -> tuple[int, int]:
        """Return the line and the column, from 0 and in characters, of a place that the parser counts in bytes."""
        text = self._line(line)
        if text.isascii():
            return line, offset
        return line, len(text[:offset].encode("utf-8", "surrogatepass")[:offset].decode("utf-8", "ignore"))

    def ends_at(self, point: tuple[int, int]) -> bool:
        """Tell whether nothing but blanks and a comment follows on the line."""
        rest = self._line(point[0])[point[1] :].strip()
        return not rest or rest.startswith("#")

    def place_of_function(self, function: Function) -> Location:
        """Return where the name of a function stands."""
        line = self._line(function.lineno)
        found = re.compile(rf"\b{re.escape(function.name)}\b").search(line, line.find("def") + 3)
        return Location(file=self.file, line=function.lineno, column=found.start() + 1 if found else 1)


def _decoded(raw: bytes) -> str:
    if len(raw) > MAX_SOURCE:
        raise Unreadable(f"it is larger than {MAX_SOURCE:,} bytes", "Split it, or leave it out with --exclude.")
    try:
        encoding, _ = tokenize.detect_encoding(BytesIO(raw).readline)
    except SyntaxError as error:
        raise Unreadable(f"it has no encoding that can be read ({error.msg})", "Save it as UTF-8.", 1) from error
    if not _ENCODINGS.fullmatch(codecs.lookup(encoding).name):
        raise Unreadable(f"its encoding {encoding[:40]!r} is not read here", "Save it as UTF-8.", 1)
    try:
        return raw.decode(encoding).replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise Unreadable(f"it is not {encoding} (byte {error.start})", "Save it as UTF-8.", line) from error


def _parsed(text: str) -> ast.Module:
    try:
        with warnings.catch_warnings():
            # What the compiler dislikes in somebody's source is not ours to tell.
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        problem = f"it is not Python ({error.msg})"
        raise Unreadable(problem, "Mend the file there.", error.lineno or 0, error.offset or 0) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise Unreadable(f"it can't be parsed ({str(error)[:80] or 'nested too deeply'})", "Mend it.") from error

"""Types for edits of a text, shared by JSON, TOML and YAML; adding to and removing from bracketed containers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

__all__ = [
    "MAX_DEPTH",
    "BracketLayout",
    "InvalidSyntax",
    "KeyPath",
    "Language",
    "Mark",
    "ParsedText",
    "Splice",
    "SyntaxContainer",
    "SyntaxEntry",
    "TooDeep",
    "add",
    "apply_splices",
    "begins_line",
    "drop",
    "is_deep",
    "line_and_column",
    "line_indent",
    "newline_of",
]

KeyPath = tuple[str | int, ...]
# Start, end, and the text that replaces what is between them.
Splice = tuple[int, int, str]
# The kind of a `Quirk`, and its offset.
Mark = tuple[str, int]

# Far deeper than any configuration of a client, and far below Python's recursion limit.
MAX_DEPTH: Final = 100
_NEWLINE: Final = re.compile(r"\r\n|\n|\r")
_INDENT: Final = re.compile(r"[ \t]*")


class InvalidSyntax(ValueError):
    """A text is invalid: the problem and its offset; `Document` turns it into a `ConfigError`."""

    def __init__(self, problem: str, offset: int | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.offset = offset


class TooDeep(InvalidSyntax):
    """A text is nested too deeply."""

    def __init__(self, offset: int | None = None) -> None:
        super().__init__("it is nested too deeply", offset)


@dataclass(frozen=True, slots=True)
class SyntaxEntry:
    """A member of an object or an item of a list: offsets where it starts, where its value starts, where it ends."""

    key: object
    start: int
    value: int
    end: int


@dataclass(frozen=True, slots=True)
class SyntaxContainer:
    """A bracketed container: offsets of the opening bracket and after the closing one, and its entries."""

    start: int
    end: int
    entries: tuple[SyntaxEntry, ...]


@dataclass(frozen=True, slots=True)
class ParsedText:
    """A parsed text: its value, its quirks, and the tree that its language needs for edits."""

    text: str
    value: object
    marks: tuple[Mark, ...] = ()
    tree: Any = None


class Language(Protocol):
    """The interface of a file format. Edits are proposals, best first: the document checks the result of each."""

    title: str

    def read(self, text: str) -> ParsedText:
        """Parse the text. Raises `InvalidSyntax`."""
        ...

    def offset(self, reading: ParsedText, where: KeyPath) -> int:
        """Return the offset of a key or item; for a missing one, that of its nearest existing parent."""
        ...

    def put(self, reading: ParsedText, where: KeyPath, value: object) -> Iterator[Sequence[Splice]]:
        """Yield proposals to set a value; all parents in the path exist and are objects or lists."""
        ...

    def drop(self, reading: ParsedText, where: KeyPath) -> Iterator[Sequence[Splice]]:
        """Yield proposals to remove a value."""
        ...


def apply_splices(text: str, splices: Iterable[Splice]) -> str:
    """Apply edits to a text; they may touch, but not overlap.

    >>> apply_splices("abc", [(1, 2, "-"), (3, 3, "!")])
    'a-c!'
    """
    parts: list[str] = []
    done = 0
    for start, end, new in sorted(splices, key=lambda splice: splice[:2]):
        if start < done:
            raise InvalidSyntax("two edits overlap")
        parts += text[done:start], new
        done = end
    return "".join([*parts, text[done:]])


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    r"""Return line and column, both counted from 1.

    >>> line_and_column("a\nbc", 3)
    (2, 2)
    """
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def newline_of(text: str) -> str:
    """Return the line end of the first line; a line feed if there is only one line."""
    found = _NEWLINE.search(text)
    return found[0] if found else "\n"


def line_indent(text: str, offset: int) -> str:
    """Return the indentation of the line that holds this offset."""
    start = max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1
    found = _INDENT.match(text, start, offset)
    return found[0] if found else ""


def is_deep(value: object) -> bool:
    """Return whether a value is nested deeper than `MAX_DEPTH`."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for item in level
            if isinstance(item, dict | list)
            for child in (item.values() if isinstance(item, dict) else item)
        ]
        if not level:
            return False
    return True


_LINE_END: Final = re.compile(r"(?:\r\n|\n|\r)[ \t]*")
_LINE_ENDS: Final = "\r\n"
_LINE_COMMENTS: Final = ("//", "#")


@dataclass(frozen=True, slots=True)
class BracketLayout:
    """The layout of the bracketed containers in a text.

    ``gap`` matches comments and commas, ``unit`` is one step of indentation, ``apart`` follows a comma on one line.
    ``is_inline``: the first entry of an empty container is written on the container's line.
    """

    text: str
    gap: re.Pattern[str]
    newline: str
    unit: str
    is_inline: bool
    apart: str


@dataclass(frozen=True, slots=True)
class _Gap:
    """The text between two values: the comma's offset (-1: none), the end of the last token, and its comments."""

    comma: int
    edge: int
    has_comments: bool
    ends_in_line_comment: bool


def _gap(text: str, pattern: re.Pattern[str], start: int, end: int) -> _Gap:
    comma, edge, has_comments, is_line = -1, start, False, False
    for token in pattern.finditer(text, start, end):
        edge = token.end()
        is_line = token[0].startswith(_LINE_COMMENTS)
        if token[0] == ",":
            comma = token.start()
        else:
            has_comments = True
    return _Gap(comma, edge, has_comments, is_line)


def begins_line(text: str, offset: int) -> bool:
    """Return whether only blanks precede this offset on its line."""
    start = max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1
    return not text[start:offset].strip(" \t")


def add(layout: BracketLayout, box: SyntaxContainer, piece: Callable[[str | None], str]) -> list[Splice]:
    """Append to a container; ``piece`` formats the new entry for an indentation, or on one line for None."""
    if not box.entries:
        return _fill(layout, box, piece)
    text, last = layout.text, box.entries[-1]
    tail = _gap(text, layout.gap, last.end, box.end - 1)
    before = box.entries[-2].end if len(box.entries) > 1 else box.start + 1
    lead = text[_gap(text, layout.gap, before, last.start).edge : last.start]
    breaks = _LINE_END.findall(lead)
    if breaks:
        between, indent = breaks[-1], breaks[-1].lstrip(_LINE_ENDS)
    elif tail.ends_in_line_comment:
        indent = line_indent(text, box.start) + layout.unit
        between = layout.newline + indent
    else:
        between, indent = (lead if len(box.entries) > 1 else layout.apart), None
    if tail.comma >= 0:
        return [(tail.edge, tail.edge, f"{between}{piece(indent)},")]
    if tail.edge == last.end:
        return [(tail.edge, tail.edge, f",{between}{piece(indent)}")]
    return [(last.end, last.end, ","), (tail.edge, tail.edge, between + piece(indent))]


def _fill(layout: BracketLayout, box: SyntaxContainer, piece: Callable[[str | None], str]) -> list[Splice]:
    text, at = layout.text, box.start + 1
    inner = _gap(text, layout.gap, at, box.end - 1)
    outer = line_indent(text, box.start)
    indent = outer + layout.unit
    if inner.has_comments:
        rest = text[inner.edge : box.end - 1]
        if not _LINE_END.search(rest):
            return [(inner.edge, inner.edge, f" {piece(None)}")]
        return [(inner.edge, inner.edge, layout.newline + indent + piece(indent))]
    if layout.is_inline and not _LINE_END.search(text, at, box.end - 1):
        return [(at, at, text[at : box.end - 1] + piece(None))]
    return [(at, at, layout.newline + indent + piece(indent) + layout.newline + outer)]


def drop(text: str, gap: re.Pattern[str], box: SyntaxContainer, index: int) -> list[Splice]:
    """Remove one entry with its comma and blanks."""
    entries, entry = box.entries, box.entries[index]
    is_first, is_last = index == 0, index == len(entries) - 1
    before = _gap(text, gap, box.start + 1 if is_first else entries[index - 1].end, entry.start)
    following = box.end - 1 if is_last else entries[index + 1].start
    after = _gap(text, gap, entry.end, following)
    is_spread = _LINE_END.search(text, before.edge, entry.start) is not None
    if is_first and is_last and not before.has_comments and not after.has_comments:
        return _empty(text, box, after.comma)
    if not is_last and not is_spread and not after.has_comments:
        return [(entry.start, following, "")]
    comma = after.comma if after.comma >= 0 or is_first else before.comma
    end = after.comma + 1 if after.comma >= 0 and not text[entry.end : after.comma].strip() else entry.end
    # A line comment must keep its line end.
    keeps = before.ends_in_line_comment and not _LINE_END.match(text, end)
    removed = [(entry.start if keeps else before.edge, end, "")]
    if comma >= 0 and not entry.start <= comma < end:
        removed.append((comma, comma + 1, ""))
    return removed


def _empty(text: str, box: SyntaxContainer, comma: int) -> list[Splice]:
    """Remove the only entry, as the inverse of `add`."""
    (entry,) = box.entries
    end = comma + 1 if comma >= 0 else entry.end
    lead, rest = text[box.start + 1 : entry.start], text[end : box.end - 1]
    if _LINE_END.search(lead):
        # Only the line end and indentation that `add` inserted before the bracket; other blanks were there before.
        closing = re.match(rf"(?:\r\n|\n|\r)(?:{line_indent(text, box.start)})?", rest)
        return [(box.start + 1, end + (closing.end() if closing else 0), "")]
    return [(entry.start, box.end - 1 if lead == rest else end, "")]

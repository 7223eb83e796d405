"""Represent places in a text and edits of it, alike for JSON, TOML and YAML; add to and remove from brackets."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

__all__ = [
    "MAX_DEPTH",
    "BracketLayout",
    "KeyPath",
    "Language",
    "Mark",
    "ParsedText",
    "Splice",
    "SyntaxContainer",
    "SyntaxEntry",
    "SyntaxFault",
    "TooDeep",
    "add",
    "begins_line",
    "drop",
    "is_deep",
    "line_indent",
    "newline_of",
    "place",
    "spliced",
]

KeyPath = tuple[str | int, ...]
# From, to, and what stands there instead.
Splice = tuple[int, int, str]
# What is noted about a place: a kind of `Quirk`, and the offset.
Mark = tuple[str, int]

# No configuration of a client is half as deep; what recurses over a value stays far from the interpreter's limit.
MAX_DEPTH: Final = 100
_NEWLINE: Final = re.compile(r"\r\n|\n|\r")
_INDENT: Final = re.compile(r"[ \t]*")


class SyntaxFault(ValueError):
    """A text is not what it should be: what is wrong, and the offset where; `Document` makes a ConfigError of it."""

    def __init__(self, problem: str, offset: int | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.offset = offset


class TooDeep(SyntaxFault):
    """A text is nested too deeply to be read on."""

    def __init__(self, offset: int | None = None) -> None:
        super().__init__("it is nested too deeply", offset)


@dataclass(frozen=True, slots=True)
class SyntaxEntry:
    """A member of an object or an item of a list: where its key (or itself) starts, its value starts, and it ends."""

    key: object
    start: int
    value: int
    end: int


@dataclass(frozen=True, slots=True)
class SyntaxContainer:
    """What stands between brackets: offsets of the opening one and after the closing one, and what is in it."""

    start: int
    end: int
    entries: tuple[SyntaxEntry, ...]


@dataclass(frozen=True, slots=True)
class ParsedText:
    """A text that was read: its value, what is noted about it, and what its language needs in order to edit it."""

    text: str
    value: Any
    marks: tuple[Mark, ...] = ()
    tree: Any = None


class Language(Protocol):
    """What `Document` asks of a language. Edits are proposals, best first: the document checks what each leads to."""

    title: str

    def read(self, text: str) -> ParsedText:
        """Return the value of the text. Raises `SyntaxFault`."""
        ...

    def offset(self, reading: ParsedText, where: KeyPath) -> int:
        """Return where a key or item starts; of one that is not there, the nearest thing above it that is."""
        ...

    def put(self, reading: ParsedText, where: KeyPath, value: Any) -> Iterator[Sequence[Splice]]:
        """Propose edits that set the value; all but the last step of the path exist, and are objects or lists."""
        ...

    def drop(self, reading: ParsedText, where: KeyPath) -> Iterator[Sequence[Splice]]:
        """Propose edits that remove what is there."""
        ...


def spliced(text: str, splices: Iterable[Splice]) -> str:
    """Return the text with these edits made; they may touch, but not overlap.

    >>> spliced("abc", [(1, 2, "-"), (3, 3, "!")])
    'a-c!'
    """
    parts: list[str] = []
    done = 0
    for start, end, new in sorted(splices, key=lambda splice: splice[:2]):
        if start < done:
            raise SyntaxFault("two edits overlap")
        parts += text[done:start], new
        done = end
    return "".join([*parts, text[done:]])


def place(text: str, offset: int) -> tuple[int, int]:
    r"""Return line and column, both counted from 1.

    >>> place("a\nbc", 3)
    (2, 2)
    """
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def newline_of(text: str) -> str:
    """Return what ends the first line, or a line feed if there is only one."""
    found = _NEWLINE.search(text)
    return found[0] if found else "\n"


def line_indent(text: str, offset: int) -> str:
    """Return the blanks that the line of this offset begins with."""
    start = max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1
    found = _INDENT.match(text, start, offset)
    return found[0] if found else ""


def is_deep(value: Any) -> bool:
    """Tell whether a value is nested too deeply to be worked with."""
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
    """The text, what else than blanks stands between values (comments and commas), and how the text is laid out.

    ``is_inline`` tells that an empty container is filled on its own line; ``apart`` follows a comma on one line.
    """

    text: str
    gap: re.Pattern[str]
    newline: str
    unit: str
    is_inline: bool
    apart: str


@dataclass(frozen=True, slots=True)
class _Gap:
    """What is between two values: the comma (-1: none), where the last token ends, and whether comments are there."""

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
    """Tell whether only blanks stand before this offset on its line."""
    start = max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1
    return not text[start:offset].strip(" \t")


def add(layout: BracketLayout, box: SyntaxContainer, piece: Callable[[str | None], str]) -> list[Splice]:
    """Append to a container; ``piece`` writes what is new for an indentation, or on one line for None."""
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
    """Take one entry out, with the comma and the blanks that belong to it."""
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
    # A comment that ends with its line needs the line's end.
    keeps = before.ends_in_line_comment and not _LINE_END.match(text, end)
    removed = [(entry.start if keeps else before.edge, end, "")]
    if comma >= 0 and not entry.start <= comma < end:
        removed.append((comma, comma + 1, ""))
    return removed


def _empty(text: str, box: SyntaxContainer, comma: int) -> list[Splice]:
    """Take the only entry out as if it had been put in by `add`."""
    (entry,) = box.entries
    end = comma + 1 if comma >= 0 else entry.end
    lead, rest = text[box.start + 1 : entry.start], text[end : box.end - 1]
    if _LINE_END.search(lead):
        # The line end and indentation that were put before the bracket, and no more: the rest was there.
        closing = re.match(rf"(?:\r\n|\n|\r)(?:{line_indent(text, box.start)})?", rest)
        return [(box.start + 1, end + (closing.end() if closing else 0), "")]
    return [(entry.start, box.end - 1 if lead == rest else end, "")]

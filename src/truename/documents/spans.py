"""What the languages of configuration have in common: places in a text, and the edits of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = [
    "MAX_DEPTH",
    "Broken",
    "Container",
    "Entry",
    "Language",
    "Mark",
    "Reading",
    "Splice",
    "TooDeep",
    "Where",
    "is_deep",
    "line_indent",
    "newline_of",
    "place",
    "spliced",
]

Where = tuple[str | int, ...]
# From, to, and what stands there instead.
Splice = tuple[int, int, str]
# What is noted about a place: a kind of `Quirk`, and the offset.
Mark = tuple[str, int]

# No configuration of a client is half as deep; what recurses over a value stays far from the interpreter's limit.
MAX_DEPTH: Final = 100
_NEWLINE: Final = re.compile(r"\r\n|\n|\r")
_INDENT: Final = re.compile(r"[ \t]*")


class Broken(ValueError):
    """A text is not what it should be: what is wrong, and the offset where; `Document` makes a ConfigError of it."""

    def __init__(self, problem: str, offset: int | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.offset = offset


class TooDeep(Broken):
    """A text is nested too deeply to be read on."""

    def __init__(self, offset: int | None = None) -> None:
        super().__init__("it is nested too deeply", offset)


@dataclass(frozen=True, slots=True)
class Entry:
    """A member of an object or an item of a list: where its key (or itself) starts, its value starts, and it ends."""

    key: object
    start: int
    value: int
    end: int


@dataclass(frozen=True, slots=True)
class Container:
    """What stands between brackets: offsets of the opening one and after the closing one, and what is in it."""

    start: int
    end: int
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """A text that was read: its value, what is noted about it, and what its language needs in order to edit it."""

    text: str
    value: Any
    marks: tuple[Mark, ...] = ()
    tree: Any = None


class Language(Protocol):
    """What `Document` asks of a language. Edits are proposals, best first: the document checks what each leads to."""

    title: str

    def read(self, text: str) -> Reading:
        """Return the value of the text. Raises `Broken`."""
        ...

    def offset(self, reading: Reading, where: Where) -> int:
        """Return where a key or item starts; of one that is not there, the nearest thing above it that is."""
        ...

    def put(self, reading: Reading, where: Where, value: Any) -> Iterator[Sequence[Splice]]:
        """Propose edits that set the value; all but the last step of the path exist, and are objects or lists."""
        ...

    def drop(self, reading: Reading, where: Where) -> Iterator[Sequence[Splice]]:
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
            raise Broken("two edits overlap")
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

"""The functions of a Python text that are tools, with the places where a name of their own can be written."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from truename.lint.python import Named, read_python
from truename.lint.source import Unreadable
from truename.lint.walk import PYTHON
from truename.migration import FunctionTool, Gap

if TYPE_CHECKING:
    from truename.lint.gaps import Point, Room

__all__ = ["read_functions"]

_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_MARK: Final = "\ufeff"


def read_functions(text: str, file: str) -> tuple[FunctionTool, ...]:
    r"""Return the functions that are tools, with offsets in the text; none for what is no Python or can't be read.

    >>> source = "@mcp.tool\ndef search(): ..."
    >>> (found,) = read_functions(source, "server.py")
    >>> (gap,) = found.gaps
    >>> source[: gap.start] + gap.before + "find" + gap.after + source[gap.end :]
    '@mcp.tool(name="find")\ndef search(): ...'
    """
    if not file.endswith(PYTHON):
        return ()
    try:
        found, _ = read_python(text.encode(), file)
    except (Unreadable, UnicodeEncodeError):
        return ()
    places = _Places(text)
    return tuple(
        FunctionTool(
            name=one.name,
            start=places.at((one.function.line, one.function.column - 1)),
            gaps=tuple(places.gap(room) for room in one.rooms),
            has_name=not one.is_functions,
        )
        for one in found
        if isinstance(one, Named) and one.function is not None
    )


class _Places:
    """The offsets of lines and columns in a text with any line ends."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(one.end() for one in _LINE_END.finditer(text))]
        # The parser does not count it.
        self._marked = text.startswith(_MARK)

    def at(self, point: Point) -> int:
        line, column = point
        return self._starts[line - 1] + column + (self._marked and line == 1)

    def gap(self, room: Room) -> Gap:
        return Gap(self.at(room.start), self.at(room.end), room.before, room.after)

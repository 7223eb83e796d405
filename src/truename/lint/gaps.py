"""Where a declaration that takes a tool's name from its function has room for a name of its own.

``@mcp.tool`` becomes ``@mcp.tool(name="new")``: the tool gets the name, and the function keeps its own for whoever
calls it. A declaration that takes no name has no room.
"""

from __future__ import annotations

import ast
import io
import token
import tokenize
from bisect import bisect_left
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from truename.lint.calls import at, keyword

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from truename.lint.source import Source
    from truename.lint.ways import Way

__all__ = ["Gaps", "Room"]

_SILENT: Final = frozenset({token.COMMENT, token.NL})
_OPENING: Final = frozenset("([{")
_CLOSING: Final = frozenset(")]}")

# Line from 1, column from 0, in characters.
Point = tuple[int, int]


class Room(NamedTuple):
    """What a name takes the place of, from one point to another, and what is written around it."""

    start: Point
    end: Point
    before: str
    after: str


class _Inside(NamedTuple):
    token: tokenize.TokenInfo
    depth: int


class Gaps:
    """The places for names in one source."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def of_decorator(self, node: ast.expr, known: Way) -> Room | None:
        """Return where a decorator has room for a name; None where the library takes none there."""
        if isinstance(node, ast.Call):
            return self.of_call(node, known)
        line = self._from(self._source.point(node.lineno, node.col_offset))
        last = None
        for one in line:
            if one.type == token.NEWLINE:
                break
            last = one if one.type not in _SILENT else last
        if last is None or not known.takes_name:
            return None
        return _room(last.end, f'({_keyword(known)}"', '")')

    def of_call(self, call: ast.Call, known: Way) -> Room | None:
        """Return where a call has room for a name; None where the library takes none there."""
        given, placed = keyword(call, known.name), at(call, known.name_at)
        if given is None and (isinstance(placed, ast.Constant) or not known.name):
            given = placed
        if known.takes_name and isinstance(given, ast.Constant) and given.value is None:
            return Room(self._source.point(given.lineno, given.col_offset), self._end(given), '"', '"')
        is_full = given is not None or any(isinstance(one, ast.Starred) for one in call.args)
        inside = () if is_full or not known.takes_name else tuple(self._inside(call))
        if inside and call.args:
            return self._behind(call.args[-1], inside, known) if known.name else None
        return self._in_front(call, inside[0].token.end, known) if inside else None

    def _in_front(self, call: ast.Call, point: Point, known: Way) -> Room:
        """Return the room behind the parenthesis that opens a call without places."""
        space = "" if self._source.ends_at(point) else " "
        return _room(point, f'{_keyword(known)}"', f'",{space}' if call.keywords else '"')

    def _behind(self, argument: ast.expr, inside: Iterable[_Inside], known: Way) -> Room | None:
        """Return the room behind the last argument that is given by place."""
        behind = self._end(argument)
        for last, one in pairwise(inside):
            if one.token.start >= behind and (one.depth == 0 or (one.depth == 1 and one.token.string == ",")):
                return _room(last.token.end, f', {_keyword(known)}"', '"')
        return None

    def _inside(self, call: ast.Call) -> Iterator[_Inside]:
        """Yield what is inside of a call's parentheses, and these, each with how many are open after it."""
        depth = 0
        for one in self._from(self._end(call.func)):
            if one.type in _SILENT:
                continue
            is_opening = one.type == token.OP and one.string in _OPENING
            if depth == 0 and not is_opening:
                # What closes here was opened around the function.
                continue
            depth += is_opening - (one.type == token.OP and one.string in _CLOSING)
            yield _Inside(one, depth)
            if depth == 0:
                return

    def _end(self, node: ast.expr) -> Point:
        return self._source.point(node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)

    def _from(self, point: Point) -> Iterator[tokenize.TokenInfo]:
        starts = self._starts
        return iter(self._tokens[bisect_left(starts, point) :])

    @cached_property
    def _starts(self) -> list[Point]:
        return [one.start for one in self._tokens]

    @cached_property
    def _tokens(self) -> list[tokenize.TokenInfo]:
        try:
            return list(tokenize.generate_tokens(io.StringIO(self._source.text).readline))
        except (tokenize.TokenError, SyntaxError):
            return []


def _keyword(known: Way) -> str:
    return f"{known.name}=" if known.name else ""


def _room(point: Point, before: str, after: str) -> Room:
    return Room(point, point, before, after)

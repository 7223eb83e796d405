"""Edits of a YAML text: whole lines in block style, what is between brackets in flow style."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from truename.documents import brackets
from truename.documents.spans import Broken, Container, Entry, newline_of
from truename.documents.yaml_write import flow, items, member, members, name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from truename.documents.spans import Splice, Where
    from truename.documents.yaml_nodes import Node, Pair

__all__ = ["drop", "offset", "put"]

_GAP: Final = re.compile(r"(?<![^\s\[{,])#[^\r\n]*|,")
_LINE_END: Final = re.compile(r"\r\n|\n|\r|\Z")
_COLON: Final = re.compile(r"[ \t]*:(?:[ \t]+[&!][^\s]*)*")
_BLANKS: Final = " \t\r\n"


def offset(root: Node | None, where: Where) -> int:
    """Return where a key or item starts, or the nearest thing above it that is there."""
    at, node = (root.start if root else 0), root
    for step in where:
        pair = node.child(step) if node else None
        if pair is None:
            return at
        at, node = pair.start, pair.node
    return at


def put(text: str, root: Node | None, where: Where, value: Any) -> Iterator[Sequence[Splice]]:
    """Propose edits that set a value."""
    yield _Edit(text, root).put(where, value)


def drop(text: str, root: Node | None, where: Where) -> Iterator[Sequence[Splice]]:
    """Propose edits that remove one."""
    yield _Edit(text, root).drop(where)


class _Edit:
    def __init__(self, text: str, root: Node | None) -> None:
        self.text = text
        self.root = root
        self.newline = newline_of(text)
        self.unit = " " * ((_step(root) if root else 0) or 2)

    def put(self, where: Where, value: Any) -> list[Splice]:
        if self.root is None:
            return [self._begun(_lines({where[-1]: value}, self.unit))]
        if not where:
            return [(self.root.start, self._end(self.root), self._spread(_lines(value, self.unit), 0))]
        above, holder = self._way(where[:-1])
        pair = holder.child(where[-1])
        if pair is not None:
            return self._replaced(holder, pair, value)
        if holder.kind not in {"map", "list"}:
            raise Broken("what is above it is written elsewhere")
        if holder.is_flow:
            return self._filled(above, holder, where[-1], value)
        end = self._end(holder)
        return [(end, end, self._below(_entry(where[-1], value, self.unit), holder.column))]

    def drop(self, where: Where) -> list[Splice]:
        above, holder = self._way(where[:-1])
        pair = holder.child(where[-1])
        if pair is None:
            raise Broken("it is not there under a key of its own")
        if holder.is_flow:
            return brackets.drop(self.text, _GAP, _box(holder), holder.pairs.index(pair))
        if len(holder.pairs) == 1 and holder is not self.root:
            return self._emptied(above, holder, pair)
        start = pair.start if holder.kind == "map" else self._dash(holder, pair)
        if start is None or not brackets.begins_line(self.text, start):
            return [self._shared(holder, pair)]
        return [self._cut(start, self._line_end(self._end(pair.node)))]

    def _shared(self, holder: Node, pair: Pair) -> Splice:
        """Take out what begins on the line of a dash that is not its own: the next one moves there."""
        index = holder.pairs.index(pair) + 1
        following = holder.pairs[index].start if index < len(holder.pairs) else pair.start
        if following == pair.start or "#" in self.text[self._line_end(self._end(pair.node)) : following]:
            raise Broken("it shares its line")
        return pair.start, following, ""

    def _way(self, where: Where) -> tuple[tuple[Node, Pair] | None, Node]:
        """Return the container of a path, and what it stands in."""
        node, above = self.root, None
        for step in where:
            pair = node.child(step) if node else None
            if node is None or pair is None:
                raise Broken("what is above it is written elsewhere")
            above, node = (node, pair), pair.node
        if node is None:
            raise Broken("there is nothing")
        return above, node

    def _replaced(self, holder: Node, pair: Pair, value: Any) -> list[Splice]:
        node, end = pair.node, self._end(pair.node)
        is_spread = isinstance(value, dict | list) and bool(value) and not node.is_flow
        if holder.is_flow or not (is_spread or node.is_block):
            lead = " " if node.start == node.end else ""
            return [(node.start, end, lead + flow(value))]
        if holder.kind == "list":
            return [(node.start, end, self._spread(_lines(value, self.unit), self._column(node.start)))]
        colon = self._colon(pair)
        line = self._line_end(colon)
        new = self._below(_lines(value, self.unit), self._column(pair.start) + len(self.unit)) if is_spread else ""
        if node.is_block:
            said = "" if is_spread else f" {flow(value)}"
            return [(colon, colon, said), (line, end, new)]
        return [(colon, end, ""), (self._line_end(end),) * 2 + (new,)]

    def _filled(self, above: tuple[Node, Pair] | None, holder: Node, step: str | int, value: Any) -> list[Splice]:
        """Add to a list or object in flow style; one that is empty gets lines, where it can."""
        text = self.text
        if above and not holder.pairs and above[0].kind == "map" and not above[0].is_flow:
            colon = self._colon(above[1])
            if text[colon : holder.end] in {" {}", " []"}:
                column = self._column(above[1].start) + len(self.unit)
                end = self._line_end(holder.end)
                return [(colon, holder.end, ""), (end, end, self._below(_entry(step, value, self.unit), column))]
        new = flow(value) if isinstance(step, int) else f"{name(step)}: {flow(value)}"
        layout = brackets.Layout(text, _GAP, self.newline, self.unit, is_inline=True, apart=" ")
        return brackets.add(layout, _box(holder), lambda _: new)

    def _emptied(self, above: tuple[Node, Pair] | None, holder: Node, pair: Pair) -> list[Splice]:
        """Take the only entry out; what held it is then written as empty."""
        empty = "{}" if holder.kind == "map" else "[]"
        if above is None or above[0].kind != "map":
            return [(holder.pairs[0].start if holder.kind == "map" else holder.start, self._end(holder), empty)]
        colon = self._colon(above[1])
        start = pair.start if holder.kind == "map" else self._dash(holder, pair)
        if start is None:
            raise Broken("its dash shares a line")
        return [(colon, colon, f" {empty}"), self._cut(start, self._end(holder))]

    def _begun(self, lines: list[str]) -> Splice:
        at = len(self.text.rstrip(_BLANKS))
        new = self._spread(lines, 0)
        if not at:
            return 0, 0, new + self.newline
        return at, at, self.newline + new

    def _cut(self, start: int, end: int) -> Splice:
        """Return the lines from here to there, with the line end before them or, at the very top, after them."""
        begin = start - self._column(start)
        if begin:
            return begin - (2 if self.text[:begin].endswith("\r\n") else 1), end, ""
        found = _LINE_END.match(self.text, end)
        return 0, found.end() if found else end, ""

    def _dash(self, holder: Node, pair: Pair) -> int | None:
        """Return where the dash of an item stands, if it is the first on its line."""
        before = holder.pairs[int(pair.key) - 1].node.end if pair.key else holder.start
        at = pair.start
        while at >= before:
            begin = at - self._column(at)
            dash = begin + holder.column
            if dash <= pair.start and self.text[dash : dash + 1] == "-" and not self.text[begin:dash].strip(" "):
                return dash
            at = begin - 1
        return None

    def _colon(self, pair: Pair) -> int:
        """Return where the value of a member could begin."""
        found = _COLON.match(self.text, pair.end)
        if found is None:
            raise Broken("its colon stands apart")
        return found.end()

    def _end(self, node: Node) -> int:
        """Return the end of the last line of a node; of one that stands between others, its own end."""
        last = node
        while last.is_block and last.pairs:
            last = last.pairs[-1].node
        end = last.end
        if last.is_literal:
            end = len(self.text[:end].rstrip(_BLANKS))
        return self._line_end(end) if node.is_block or last.is_literal else end

    def _below(self, lines: list[str], column: int) -> str:
        return "".join(f"{self.newline}{' ' * column}{line}" for line in lines)

    def _spread(self, lines: list[str], column: int) -> str:
        return self._below(lines, column)[len(self.newline) + column :]

    def _line_end(self, at: int) -> int:
        found = _LINE_END.search(self.text, at)
        return found.start() if found else len(self.text)

    def _column(self, at: int) -> int:
        return at - max(self.text.rfind("\n", 0, at), self.text.rfind("\r", 0, at)) - 1


def _lines(value: Any, unit: str) -> list[str]:
    if not value or not isinstance(value, dict | list):
        return [flow(value)]
    return members(value, unit) if isinstance(value, dict) else items(value, unit)


def _entry(step: str | int, value: Any, unit: str) -> list[str]:
    return items([value], unit) if isinstance(step, int) else member(step, value, unit)


def _box(node: Node) -> Container:
    """Return what brackets hold; an anchor may stand before them."""
    entries = tuple(Entry(pair.key, pair.start, pair.node.start, pair.node.end) for pair in node.pairs)
    return Container(node.start, node.end, entries)


def _step(node: Node) -> int:
    """Return how far the first object within another is indented."""
    for pair in node.pairs:
        below = pair.node
        if below.is_block and below.kind == "map" and node.kind == "map" and below.column > node.column:
            return below.column - node.column
        if found := _step(below) if below.is_block else 0:
            return found
    return 0

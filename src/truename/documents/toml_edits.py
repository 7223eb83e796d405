"""Edits of a TOML text: lines for pairs and sections, what is between brackets for inline tables and arrays."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from truename.documents import brackets
from truename.documents.spans import Broken, line_indent, newline_of
from truename.documents.toml_scan import Statement, container
from truename.documents.toml_write import dotted, inline, pair, sections

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from truename.documents.spans import Container, Reading, Splice, Where

__all__ = ["drop", "offset", "put"]

_GAP: Final = re.compile(r"#[^\n]*|,")
_LINE_END: Final = re.compile(r"\r?\n|\Z")
_COMMENT_LINES: Final = re.compile(r"(?:\r?\n[ \t]*#[^\r\n]*)*")
_BLANKS: Final = " \t\r\n"


def offset(reading: Reading, where: Where) -> int:
    """Return where a key or item starts, or the nearest thing above it that is there."""
    statements: tuple[Statement, ...] = reading.tree
    for length in range(len(where), 0, -1):
        part = where[:length]
        for statement in statements:
            if statement.path[:length] == part:
                return statement.start
            if statement.kind == "pair" and statement.path == part[: len(statement.path)]:
                return _Inside(reading.text, statement, where).start
    return 0


def put(reading: Reading, where: Where, value: Any) -> Iterator[Sequence[Splice]]:
    """Propose edits that set a value."""
    text, statements = reading.text, reading.tree
    if (holder := _pair_above(statements, where)) is not None:
        inside = _Inside(text, holder, where)
        if inside.is_there:
            yield [(inside.value, inside.end, inline(value))]
        else:
            yield inside.added(text, where[-1], value)
        return
    runs = _runs(statements, where)
    removed = [_region(text, run) for run in runs]
    left = tuple(one for one in statements if one.path[: len(where)] != where)
    if isinstance(value, dict) or (isinstance(value, list) and value and all(isinstance(one, dict) for one in value)):
        parts = sections(where[:-1], [value]) if isinstance(where[-1], int) else sections(where, value)
        if runs:
            start, end, _ = removed[0]
            lead = text[start : runs[0][0].start]
            yield [(start, end, lead + _joined(text, parts) + _tail(text, start, end)), *removed[1:]]
        yield [*removed, _section(text, left, where[:-1], parts)]
    if isinstance(where[-1], str):
        yield [*removed, _line(text, left, where, value)]


def drop(reading: Reading, where: Where) -> Iterator[Sequence[Splice]]:
    """Propose edits that remove something: the table that it was the last of stays, empty."""
    text, statements = reading.text, reading.tree
    if (holder := _pair_above(statements, where)) is not None and holder.path != where:
        yield _Inside(text, holder, where).dropped(text)
        return
    above = where[:-1]
    if (late := _late_header(statements, where)) is not None:
        yield [_region(text, late)]
    runs = _runs(statements, where)
    removed = [_region(text, run) for run in runs]
    left = tuple(one for one in statements if one.path[: len(where)] != where)
    if above and runs and all(one.path[: len(above)] != above for one in left):
        start, end, _ = removed[0]
        first = runs[0][0]
        lead, tail = text[start : first.start], _tail(text, start, end)
        if isinstance(where[-1], int):
            yield [*removed, _line(text, left, above, [])]
        elif first.kind != "pair":
            yield [(start, end, f"{lead}[{dotted(above)}]{tail}"), *removed[1:]]
        elif len(above) > len(first.body):
            yield [(start, end, f"{lead}{dotted(above[len(first.body) :])} = {{}}{tail}"), *removed[1:]]
    yield removed


def _late_header(statements: Sequence[Statement], where: Where) -> list[Statement] | None:
    """Return a header and its only pair, if tables inside of the table come before it: it is there for the pair."""
    above = where[:-1]
    for number, (header, only) in enumerate(pairwise(statements)):
        if header.kind == "table" and header.path == above and only.kind == "pair" and only.path == where:
            is_only = statements[number + 2 : number + 3] == () or statements[number + 2].kind != "pair"
            is_late = any(one.path[: len(above)] == above for one in statements[:number])
            return [header, only] if is_only and is_late else None
    return None


class _Inside:
    """A place in the value of a pair, as far as it exists."""

    def __init__(self, text: str, statement: Statement, where: Where) -> None:
        self.start, self.value, self.end = statement.start, statement.value, statement.end
        self.box: Container | None = None
        self.index = -1
        rest = where[len(statement.path) :]
        self.is_there = True
        for step in rest:
            self.box = container(text, self.value)
            entries = self.box.entries if self.box else ()
            self.index = next((number for number, entry in enumerate(entries) if entry.key == step), -1)
            if self.index < 0:
                self.is_there = False
                return
            entry = entries[self.index]
            self.start, self.value, self.end = entry.start, entry.value, entry.end

    def added(self, text: str, step: str | int, value: Any) -> list[Splice]:
        """Add a member, or an item, to the container that was reached."""
        if self.box is None:
            raise Broken("what is above it holds nothing")
        new = pair((step,), value) if isinstance(step, str) else inline(value)
        layout = brackets.Layout(text, _GAP, newline_of(text), "  ", is_inline=True, apart=" ")
        return brackets.add(layout, self.box, lambda _: new)

    def dropped(self, text: str) -> list[Splice]:
        """Take out what was reached."""
        if self.box is None or not self.is_there:
            raise Broken("it is not there under a key of its own")
        return brackets.drop(text, _GAP, self.box, self.index)


def _pair_above(statements: Sequence[Statement], where: Where) -> Statement | None:
    found = (one for one in statements if one.kind == "pair" and where[: len(one.path)] == one.path)
    return next(found, None)


def _runs(statements: Sequence[Statement], where: Where) -> list[list[Statement]]:
    """Return the statements about a path and what is under it, those next to each other together."""
    runs: list[list[Statement]] = []
    last = -2
    for number, statement in enumerate(statements):
        if statement.path[: len(where)] == where:
            if number == last + 1:
                runs[-1].append(statement)
            else:
                runs.append([statement])
            last = number
    return runs


def _region(text: str, run: list[Statement]) -> Splice:
    """Return what goes when statements go: their lines, and the blank lines above a header."""
    first, last = run[0], run[-1]
    end = _line_end(text, last.end)
    before = text[: first.start].rstrip(_BLANKS if first.kind != "pair" else " \t")
    start = len(before)
    if first.kind == "pair" and before:
        start -= 2 if before.endswith("\r\n") else 1
    if text[:start].strip(_BLANKS):
        return start, end, ""
    start = first.start - len(line_indent(text, first.start)) if first.kind == "pair" else first.start
    rest = text[end:]
    if rest.strip(_BLANKS) and first.kind != "pair":
        return start, end + len(rest) - len(rest.lstrip(_BLANKS)), ""
    return start, _after_line(text, end), ""


def _tail(text: str, start: int, end: int) -> str:
    """Return the blanks at the end of a region: they stay when something comes in its place."""
    removed = text[start:end]
    return removed[len(removed.rstrip(_BLANKS)) :]


def _joined(text: str, parts: list[list[str]]) -> str:
    newline = newline_of(text)
    return f"{newline}{newline}".join(newline.join(lines) for lines in parts)


def _section(text: str, statements: Sequence[Statement], above: Where, parts: list[list[str]]) -> Splice:
    """Put sections after the last statement of the table that they belong to."""
    new, newline = _joined(text, parts), newline_of(text)
    at = len(text.rstrip(_BLANKS))
    inside = [number for number, one in enumerate(statements) if one.path[: len(above)] == above]
    if above and inside:
        last = inside[-1]
        # What follows without a header of its own would belong to the new section.
        while last + 1 < len(statements) and statements[last + 1].kind == "pair":
            last += 1
        end = _line_end(text, statements[last].end)
        found = _COMMENT_LINES.match(text, end)
        at = found.end() if found else end
    if not text[:at].strip(_BLANKS):
        return 0, 0, new + newline
    return at, at, newline * 2 + new


def _line(text: str, statements: Sequence[Statement], where: Where, value: Any) -> Splice:
    """Put a pair after the last one of its table, under a key with dots where the table has no header."""
    above, newline = where[:-1], newline_of(text)
    headers = [number for number, one in enumerate(statements) if one.kind != "pair" and one.path == above]
    inside = [number for number, one in enumerate(statements) if one.kind == "pair" and one.body == above]
    apart = [one for one in statements if one.kind == "pair" and one.path[: len(above)] == above]
    apart = [one for one in apart if len(one.body) < len(above) < len(one.path)]
    if above and not headers:
        if not apart:
            return _section(text, statements, above, [[f"[{dotted(above)}]", pair(where[-1:], value)]])
        last = apart[-1]
        where = where[len(last.body) :]
    elif headers or inside:
        last = statements[[*headers, *inside][-1]]
        where = where[-1:]
    else:
        return 0, 0, pair(where, value) + newline
    at = _line_end(text, last.end)
    return at, at, newline + line_indent(text, last.start) + pair(where, value)


def _line_end(text: str, at: int) -> int:
    found = _LINE_END.search(text, at)
    return found.start() if found else len(text)


def _after_line(text: str, at: int) -> int:
    found = _LINE_END.match(text, at)
    return found.end() if found else at

"""Read and edit TOML: the standard library parses the value, a scanner finds the offset of each part."""

from __future__ import annotations

import json
import math
import re
import tomllib
from dataclasses import dataclass
from datetime import date, datetime, time
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from truename.editing import syntax
from truename.editing.syntax import (
    MAX_DEPTH,
    InvalidSyntax,
    KeyPath,
    ParsedText,
    SyntaxContainer,
    SyntaxEntry,
    TooDeep,
    is_deep,
    line_indent,
    newline_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from truename.editing.syntax import Splice

__all__ = ["TOML", "dotted", "inline"]

_TRIPLE: Final = r'"""(?:[^"\\]|\\.|"{1,2}(?!"))*+"{3,5}' + r"|'''(?:[^']|'{1,2}(?!'))*+'{3,5}"
_STRING: Final = _TRIPLE + r'|"(?:[^"\\\n]|\\.)*+"' + r"|'[^'\n]*+'"
_VALUE: Final = re.compile(_STRING + r"|\d{4}-\d\d-\d\d [^\s,\]}#]++|[^\s,\[\]{}#\"']++", re.DOTALL)
_TOKEN: Final = re.compile(_STRING + r"|#[^\n]*+|[\[\]{}]|[^\"'#\[\]{}]++", re.DOTALL)
_KEY: Final = re.compile(r"""[A-Za-z0-9_-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+'""")
_DOT: Final = re.compile(r"[ \t]*+\.[ \t]*+")
_BLANK: Final = re.compile(r"(?:[ \t\r\n]|#[^\n]*+)*+")
_EQUALS: Final = re.compile(r"[ \t]*+=[ \t]*+")
_NOT_TOML: Final = "it is not valid TOML"


@dataclass(frozen=True, slots=True)
class Statement:
    """A header or a key-value pair: its path (with indexes of tables in arrays) and its offsets.

    ``kind`` is ``table``, ``array`` (one table of an array) or ``pair``. ``body`` is the path of the nearest header
    above; ``value`` is the offset of a pair's value.
    """

    kind: str
    path: KeyPath
    body: KeyPath
    start: int
    value: int
    end: int


def scan(text: str) -> tuple[Statement, ...]:
    """Return the statements. Raises `InvalidSyntax` at the first text that is neither a header nor a pair."""
    found: list[Statement] = []
    counts: dict[KeyPath, int] = {}
    body: KeyPath = ()
    at = _skip(text, 0)
    while at < len(text):
        if text[at] == "[":
            statement = _header(text, at, counts)
            body = statement.path
        else:
            keys, after = _keys(text, at)
            value = _match(_EQUALS, text, after)
            statement = Statement("pair", body + keys, body, at, value, _value_end(text, value))
        found.append(statement)
        at = _skip(text, statement.end)
    return tuple(found)


def container(text: str, start: int) -> SyntaxContainer | None:
    """Return the entries of an array or inline table, without nested ones; None for a plain value."""
    if text[start] not in "[{":
        return None
    entries: list[SyntaxEntry] = []
    at = _skip(text, start + 1)
    while text[at] not in "]}":
        begin = at
        key: object = len(entries)
        if text[start] == "{":
            keys, after = _keys(text, at)
            key = keys[0] if len(keys) == 1 else keys
            at = _match(_EQUALS, text, after)
        end = _value_end(text, at)
        entries.append(SyntaxEntry(key, begin, at, end))
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return SyntaxContainer(start, at + 1, tuple(entries))


def _header(text: str, start: int, counts: dict[KeyPath, int]) -> Statement:
    brackets = 2 if text.startswith("[[", start) else 1
    keys, after = _keys(text, _match(re.compile(r"[ \t]*+"), text, start + brackets))
    end = _match(re.compile(r"[ \t]*+" + r"\]" * brackets), text, after)
    path: KeyPath = ()
    for number, key in enumerate(keys):
        path += (key,)
        is_last = number == len(keys) - 1
        if brackets == 2 and is_last:
            counts[path] = counts.get(path, 0) + 1
        if path in counts:
            path += (counts[path] - 1,)
    return Statement("array" if brackets > 1 else "table", path, path, start, end, end)


def _keys(text: str, at: int) -> tuple[tuple[str, ...], int]:
    keys: list[str] = []
    while len(keys) < MAX_DEPTH:
        end = _match(_KEY, text, at)
        keys.append(_plain(text[at:end]))
        dot = _DOT.match(text, end)
        if dot is None:
            return tuple(keys), end
        at = dot.end()
    raise TooDeep(at)


def _plain(key: str) -> str:
    if key[0] not in "\"'":
        return key
    if key[0] == "'" or "\\" not in key:
        return key[1:-1]
    try:
        return str(tomllib.loads(f"key = {key}")["key"])
    except tomllib.TOMLDecodeError as error:
        raise InvalidSyntax(_NOT_TOML) from error


def _value_end(text: str, start: int) -> int:
    """Return the offset after a value and everything nested in it."""
    if text[start : start + 1] not in {"[", "{"}:
        return _match(_VALUE, text, start)
    depth, at = 0, start
    while True:
        token = _TOKEN.match(text, at)
        if token is None:
            raise InvalidSyntax(_NOT_TOML, at)
        if depth > MAX_DEPTH:
            raise TooDeep(at)
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token[0], 0)
        at = token.end()
        if depth == 0:
            return at


def _skip(text: str, at: int) -> int:
    return _match(_BLANK, text, at)


def _match(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    if found is None:
        raise InvalidSyntax(_NOT_TOML, at)
    return found.end()


_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_SPECIAL: Final = {float("inf"): "inf", float("-inf"): "-inf"}


def dotted(path: KeyPath) -> str:
    """Return a path as a dotted key; indexes of arrays of tables are left out.

    >>> dotted(("mcp_servers", 0, "my server"))
    'mcp_servers."my server"'
    """
    return ".".join(_key(step) for step in path if isinstance(step, str))


def pair(path: KeyPath, value: object) -> str:
    """Return the line ``key = value``."""
    return f"{dotted(path)} = {inline(value)}"


def sections(path: KeyPath, value: Any) -> list[list[str]]:
    """Return the lines of the sections that define a table, or an array of tables, at this path."""
    if isinstance(value, list):
        return [[f"[[{dotted(path)}]]", *_body(item)] for item in value]
    if value and all(isinstance(item, dict) for item in value.values()):
        return [part for key, item in value.items() for part in sections((*path, key), item)]
    return [[f"[{dotted(path)}]", *_body(value)]]


def inline(value: object) -> str:
    """Format a value on one line. Raises `InvalidSyntax` for null, which TOML does not have."""
    for kind, write in _WRITERS:
        if isinstance(value, kind):
            return write(value)
    raise InvalidSyntax("TOML has no way to write null" if value is None else "TOML has no way to write this")


def _body(table: dict[str, object]) -> list[str]:
    return [pair((key,), item) for key, item in table.items()]


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _text(key)


def _text(text: str) -> str:
    # JSON's escapes are valid in TOML; the only character that JSON allows unescaped and TOML forbids is DEL.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _table(value: dict[str, object]) -> str:
    inside = ", ".join(pair((key,), item) for key, item in value.items())
    return f"{{ {inside} }}" if inside else "{}"


# The first match is used: bool before int, of which it is a subclass, datetime before date.
_WRITERS: Final[tuple[tuple[type | tuple[type, ...], Callable[[Any], str]], ...]] = (
    (bool, lambda value: str(value).lower()),
    (str, _text),
    (int, str),
    (float, lambda value: _SPECIAL.get(value, "nan" if math.isnan(value) else repr(value))),
    ((datetime, date, time), lambda value: str(value.isoformat())),
    (dict, _table),
    ((list, tuple), lambda value: f"[{', '.join(map(inline, value))}]"),
)


_GAP: Final = re.compile(r"#[^\n]*|,")
_LINE_END: Final = re.compile(r"\r?\n|\Z")
_COMMENT_LINES: Final = re.compile(r"(?:\r?\n[ \t]*#[^\r\n]*)*")
_BLANKS: Final = " \t\r\n"


def _late_header(statements: Sequence[Statement], where: KeyPath) -> list[Statement] | None:
    """Return a header and its only pair, if the header follows its own subtables and so exists only for the pair."""
    above = where[:-1]
    for number, (header, only) in enumerate(pairwise(statements)):
        if header.kind == "table" and header.path == above and only.kind == "pair" and only.path == where:
            is_only = statements[number + 2 : number + 3] == () or statements[number + 2].kind != "pair"
            is_late = any(one.path[: len(above)] == above for one in statements[:number])
            return [header, only] if is_only and is_late else None
    return None


class _TomlPosition:
    """A path followed into the value of a pair, as far as the path exists."""

    def __init__(self, text: str, statement: Statement, where: KeyPath) -> None:
        self.start, self.value, self.end = statement.start, statement.value, statement.end
        self.box: SyntaxContainer | None = None
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

    def added(self, text: str, step: str | int, value: object) -> list[Splice]:
        """Append a member or an item to the container at the end of the path."""
        if self.box is None:
            raise InvalidSyntax("its parent is neither an object nor a list")
        new = pair((step,), value) if isinstance(step, str) else inline(value)
        layout = syntax.BracketLayout(text, _GAP, newline_of(text), "  ", is_inline=True, apart=" ")
        return syntax.add(layout, self.box, lambda _: new)

    def dropped(self, text: str) -> list[Splice]:
        """Remove the value at the end of the path."""
        if self.box is None or not self.is_there:
            raise InvalidSyntax("the key does not exist in this table")
        return syntax.drop(text, _GAP, self.box, self.index)


def _pair_above(statements: Sequence[Statement], where: KeyPath) -> Statement | None:
    found = (one for one in statements if one.kind == "pair" and where[: len(one.path)] == one.path)
    return next(found, None)


def _runs(statements: Sequence[Statement], where: KeyPath) -> list[list[Statement]]:
    """Return the statements at or below a path, grouped into runs of adjacent ones."""
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
    """Return the edit that removes statements: their lines, and the blank lines above a header."""
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
    found = _LINE_END.match(text, end)
    return start, found.end() if found else end, ""


def _tail(text: str, start: int, end: int) -> str:
    """Return the blanks at the end of a region; they are kept when the region is replaced."""
    removed = text[start:end]
    return removed[len(removed.rstrip(_BLANKS)) :]


def _joined(text: str, parts: list[list[str]]) -> str:
    newline = newline_of(text)
    return f"{newline}{newline}".join(newline.join(lines) for lines in parts)


def _section(text: str, statements: Sequence[Statement], above: KeyPath, parts: list[list[str]]) -> Splice:
    """Return the edit that inserts sections after the last statement of their table."""
    new, newline = _joined(text, parts), newline_of(text)
    at = len(text.rstrip(_BLANKS))
    inside = [number for number, one in enumerate(statements) if one.path[: len(above)] == above]
    if above and inside:
        last = inside[-1]
        # Pairs that follow would become part of the new section.
        while last + 1 < len(statements) and statements[last + 1].kind == "pair":
            last += 1
        end = _line_end(text, statements[last].end)
        found = _COMMENT_LINES.match(text, end)
        at = found.end() if found else end
    if not text[:at].strip(_BLANKS):
        return 0, 0, new + newline
    return at, at, newline * 2 + new


def _line(text: str, statements: Sequence[Statement], where: KeyPath, value: object) -> Splice:
    """Return the edit that inserts a pair after the last one of its table, with a dotted key if it has no header."""
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


_PLACE: Final = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)\Z")


class _Toml:
    title = "TOML"

    def read(self, text: str) -> ParsedText:
        """Parse the text.

        The scanner runs first: it refuses dotted keys so long that the standard library would take hours.
        """
        try:
            statements = scan(text)
        except TooDeep:
            raise
        except InvalidSyntax as error:
            # If the standard library refuses the text too, its message is better.
            end = text.find("\n", error.offset or 0)
            _loaded(text if end < 0 else text[:end])
            raise
        value = _loaded(text)
        if is_deep(value):
            raise TooDeep
        return ParsedText(text, value, (), statements)

    def offset(self, reading: ParsedText, where: KeyPath) -> int:
        statements: tuple[Statement, ...] = reading.tree
        for length in range(len(where), 0, -1):
            part = where[:length]
            for statement in statements:
                if statement.path[:length] == part:
                    return statement.start
                if statement.kind == "pair" and statement.path == part[: len(statement.path)]:
                    return _TomlPosition(reading.text, statement, where).start
        return 0

    def put(self, reading: ParsedText, where: KeyPath, value: object) -> Iterator[Sequence[Splice]]:
        text, statements = reading.text, reading.tree
        if (holder := _pair_above(statements, where)) is not None:
            inside = _TomlPosition(text, holder, where)
            if inside.is_there:
                yield [(inside.value, inside.end, inline(value))]
            else:
                yield inside.added(text, where[-1], value)
            return
        runs = _runs(statements, where)
        removed = [_region(text, run) for run in runs]
        left = tuple(one for one in statements if one.path[: len(where)] != where)
        # An item of an array of tables is a table: a list in its place cannot be written there.
        is_item = isinstance(where[-1], int)
        tables = value if isinstance(value, list) and not is_item else [value]
        if tables and all(isinstance(one, dict) for one in tables):
            parts = sections(where[:-1], [value]) if is_item else sections(where, value)
            if runs:
                start, end, _ = removed[0]
                lead = text[start : runs[0][0].start]
                yield [(start, end, lead + _joined(text, parts) + _tail(text, start, end)), *removed[1:]]
            yield [*removed, _section(text, left, where[:-1], parts)]
        if isinstance(where[-1], str):
            yield [*removed, _line(text, left, where, value)]

    def drop(self, reading: ParsedText, where: KeyPath) -> Iterator[Sequence[Splice]]:
        """Yield proposals to remove a value; a table that becomes empty is kept."""
        text, statements = reading.text, reading.tree
        if (holder := _pair_above(statements, where)) is not None and holder.path != where:
            yield _TomlPosition(text, holder, where).dropped(text)
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


TOML: Final = _Toml()


def _loaded(text: str) -> dict[str, object]:
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise TooDeep from error
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        place = _PLACE.search(message)
        problem = f"it is not TOML ({_PLACE.sub('', message)})"
        raise InvalidSyntax(problem, _offset(text, place)) from error
    except ValueError as error:
        raise InvalidSyntax("it is not TOML (a number has too many digits)") from error


def _offset(text: str, place: re.Match[str] | None) -> int | None:
    if place is None or place[1] is None:
        return len(text) if place else None
    start = 0
    for _ in range(int(place[1]) - 1):
        start = text.find("\n", start) + 1
    return start + int(place[2]) - 1

"""Read and edit JSON with comments and trailing commas; text outside of an edit stays unchanged.

Comments and trailing commas are overwritten with blanks, character by character, and the standard library parses the
rest: so offsets in the cleaned text are offsets in the file, and parsing runs in C.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from truename.editing import syntax
from truename.editing.syntax import (
    InvalidSyntax,
    ParsedText,
    SyntaxContainer,
    SyntaxEntry,
    TooDeep,
    is_deep,
    line_indent,
    newline_of,
)
from truename.files.json_syntax import json_problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from truename.editing.syntax import KeyPath, Mark, Splice

__all__ = ["JSON"]

# Possessive, and ended by the end of the text too: a missing closing quote must not cause quadratic backtracking.
_STRING: Final = r'"(?:[^"\\]|\\(?:.|\Z))*+(?:"|\Z)'
_COMMENT: Final = re.compile(rf"{_STRING}|//[^\r\n]*|/\*(?:.*?\*/|.*\Z)", re.DOTALL)
_TRAILING: Final = re.compile(rf"{_STRING}|(?P<comma>,)(?=[ \t\r\n]*+[}}\]])", re.DOTALL)
_TOKEN: Final = re.compile(rf"{_STRING}|[{{}}\[\],:]", re.DOTALL)
_CONSTANT: Final = re.compile(rf"{_STRING}|(?P<constant>NaN|-?Infinity)", re.DOTALL)
_BLANK: Final = re.compile(r"[ \t\r\n]*")
_INDENTED: Final = re.compile(r'[\r\n]([ \t]{1,16})["\[{]')
_GAP: Final = re.compile(r"//[^\r\n]*|/\*.*?\*/|,", re.DOTALL)
_NOT_JSON: Final = "it is not JSON ({})"
_DECODER: Final = json.JSONDecoder()


class _Json:
    title = "JSON"

    def read(self, text: str) -> ParsedText:
        """Return the value; for duplicate keys the last one is used, as clients do."""
        if not text.strip():
            return ParsedText(text, {}, (("empty", 0),))
        clean = text
        marks: tuple[Mark, ...] = ()
        pairs = _Pairs()
        try:
            value = _decode(text, pairs)
        except json.JSONDecodeError:
            clean, marks = _blank_out(text)
            pairs = _Pairs()
            if not clean.strip():
                return ParsedText(text, {}, (("empty", 0), *marks))
            try:
                value = _decode(clean, pairs)
            except json.JSONDecodeError as error:
                raise InvalidSyntax(_NOT_JSON.format(json_problem(error)), error.pos) from error
        if is_deep(value):
            raise TooDeep
        if pairs.repeated:
            marks = tuple(sorted((*marks, *_find_duplicates(clean)), key=lambda mark: mark[1]))
        return ParsedText(text, value, marks, clean)

    def offset(self, reading: ParsedText, where: KeyPath) -> int:
        return 0 if reading.tree is None else _JsonPath(reading, where).start

    def put(self, reading: ParsedText, where: KeyPath, value: object) -> Iterator[Sequence[Splice]]:
        form = _Form.of(reading)
        if reading.tree is None:
            whole = {where[-1]: value} if where else value
            yield [(len(reading.text), len(reading.text), form.whole(reading.text, whole))]
            return
        walk = _JsonPath(reading, where)
        if walk.reached == len(where):
            yield [(walk.value, walk.end, form.text(value, walk.indent(reading.text)))]
            return
        box = walk.box
        if box is None:
            raise InvalidSyntax("its parent is neither an object nor a list")
        name = where[-1] if isinstance(where[-1], str) else None
        layout = syntax.BracketLayout(
            reading.text, _GAP, form.newline, form.unit, walk.is_inline(reading.text), form.apart
        )
        yield syntax.add(layout, box, partial(form.piece, name, value))

    def drop(self, reading: ParsedText, where: KeyPath) -> Iterator[Sequence[Splice]]:
        walk = _JsonPath(reading, where)
        box = walk.above
        if box is None or walk.reached < len(where):
            raise InvalidSyntax("the key does not exist")
        places = [number for number, entry in enumerate(box.entries) if entry.key == where[-1]]
        yield syntax.drop(reading.text, _GAP, box, places[-1])


JSON: Final = _Json()


class _Pairs:
    """A hook for the JSON decoder that builds objects and records whether any key was duplicate."""

    def __init__(self) -> None:
        self.repeated = False

    def __call__(self, pairs: list[tuple[str, object]]) -> dict[str, object]:
        found = dict(pairs)
        self.repeated |= len(found) != len(pairs)
        return found


def _decode(text: str, pairs: _Pairs) -> object:
    def constant(name: str) -> object:
        at = next((match.start() for match in _CONSTANT.finditer(text) if match["constant"]), None)
        raise InvalidSyntax(_NOT_JSON.format(f"{name} is not allowed"), at)

    try:
        return json.loads(text, object_pairs_hook=pairs, parse_constant=constant)
    except (json.JSONDecodeError, InvalidSyntax):
        raise
    except RecursionError as error:
        raise TooDeep from error
    except ValueError as error:
        raise InvalidSyntax(_NOT_JSON.format("a number has too many digits")) from error


def _blank_out(text: str) -> tuple[str, tuple[Mark, ...]]:
    """Return the text with comments and trailing commas overwritten by blanks, and their offsets."""
    marks: list[Mark] = []

    def comment(match: re.Match[str]) -> str:
        found = match[0]
        if found.startswith('"') or (found.startswith("/*") and not found.endswith("*/")) or found == "/*/":
            return found
        marks.append(("comment", match.start()))
        return re.sub(r"[^\r\n]", " ", found)

    bare = _COMMENT.sub(comment, text)

    def comma(match: re.Match[str]) -> str:
        # A trailing comma follows a value: the commas in "[,]" and "[1,,]" are errors in every dialect of JSON.
        if match["comma"] is None or _before(bare, match.start()) in "[{,:":
            return match[0]
        marks.append(("trailing-comma", match.start()))
        return " "

    clean = _TRAILING.sub(comma, bare)
    return clean, tuple(sorted(marks, key=lambda mark: mark[1]))


def _before(text: str, offset: int) -> str:
    while offset and text[offset - 1] in " \t\r\n":
        offset -= 1
    return text[offset - 1 : offset] or "["


def _find_duplicates(clean: str) -> Iterator[Mark]:
    """Yield the later one of each two equal keys in an object."""
    open_: list[set[str] | None] = []
    found: re.Match[str] | None = None
    for token in _TOKEN.finditer(clean):
        match token[0]:
            case "{":
                open_.append(set())
            case "[":
                open_.append(None)
            case "}" | "]":
                open_.pop()
            case ":":
                keys = open_[-1] if open_ else None
                if found is not None and keys is not None:
                    key = json.loads(found[0])
                    if key in keys:
                        yield "duplicate-key", found.start()
                    keys.add(key)
        found = token if token[0].startswith('"') else None


class _JsonPath:
    """A path followed into the text, as far as the path exists."""

    def __init__(self, reading: ParsedText, where: KeyPath) -> None:
        clean: str = reading.tree
        self.start = self.value = _skip(clean, 0)
        self.end = len(clean.rstrip(" \t\r\n"))
        self.reached = 0
        # `box` is the container at the end of the path (None for a plain value), `above` the one that holds it.
        self.above: SyntaxContainer | None = None
        self.box = _container(clean, self.value)
        for step in where:
            entries = [entry for entry in self.box.entries if entry.key == step] if self.box else []
            if not entries:
                return
            self.above, entry = self.box, entries[-1]
            self.start, self.value, self.end = entry.start, entry.value, entry.end
            self.reached += 1
            self.box = _container(clean, self.value)

    def is_inline(self, text: str) -> bool:
        """Return whether the value stands on one line with its neighbours."""
        return self.above is not None and not syntax.begins_line(text, self.start)

    def indent(self, text: str) -> str | None:
        """Return the indentation of the value, None if it is written on one line."""
        if self.is_inline(text) and not re.search(r"[\r\n]", text[self.value : self.end]):
            return None
        return line_indent(text, self.start)


def _skip(clean: str, offset: int) -> int:
    found = _BLANK.match(clean, offset)
    return found.end() if found else offset


def _container(clean: str, start: int) -> SyntaxContainer | None:
    """Return the entries of an object or list in valid JSON, without nested ones; None for a plain value."""
    if clean[start : start + 1] not in {"{", "["}:
        return None
    entries: list[SyntaxEntry] = []
    offset = _skip(clean, start + 1)
    while clean[offset] not in "}]":
        begin, key = offset, len(entries)
        if clean[start] == "{":
            key, after = _DECODER.raw_decode(clean, offset)
            offset = _skip(clean, _skip(clean, after) + 1)
        _, end = _DECODER.raw_decode(clean, offset)
        entries.append(SyntaxEntry(key, begin, offset, end))
        offset = _skip(clean, end)
        if clean[offset] == ",":
            offset = _skip(clean, offset + 1)
    return SyntaxContainer(start, offset + 1, tuple(entries))


@dataclass(frozen=True, slots=True)
class _Form:
    """The layout of a JSON file: line end, unit of indentation, and the blank after a colon or comma on one line."""

    newline: str
    unit: str
    apart: str

    @classmethod
    def of(cls, reading: ParsedText) -> _Form:
        indented = _INDENTED.search(reading.text)
        is_tight = '":' in reading.text and '": ' not in reading.text
        return cls(newline_of(reading.text), indented[1] if indented else "  ", "" if is_tight else " ")

    def text(self, value: object, indent: str | None) -> str:
        """Format a value: on several lines if an indentation is given, else on one."""
        try:
            return self._text(value, indent, plain=True)
        except UnicodeEncodeError:
            return self._text(value, indent, plain=False)

    def _text(self, value: object, indent: str | None, *, plain: bool) -> str:
        dumps = partial(json.dumps, value, ensure_ascii=not plain, allow_nan=False)
        if indent is None:
            text = dumps(separators=(f",{self.apart}", f":{self.apart}"))
        else:
            text = dumps(indent=self.unit).replace("\n", self.newline + indent)
        # A lone surrogate can only be written as an escape; encoding raises for it.
        text.encode()
        return text

    def piece(self, name: str | None, value: object, indent: str | None) -> str:
        """Format an object's member or, without a name, a list's item."""
        text = self.text(value, indent)
        return (
            text if name is None else f"{self.text(name, None)}:{self.apart or ('' if indent is None else ' ')}{text}"
        )

    def whole(self, before: str, value: object) -> str:
        """Format the whole value of a file that is empty or has only comments."""
        start = self.newline if before.strip() and before[-1] not in "\r\n" else ""
        return f"{start}{self.text(value, '')}{self.newline}"

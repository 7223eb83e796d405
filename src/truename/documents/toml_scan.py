"""Where each statement of a TOML text stands, and what it is about."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from typing import Final

from truename.documents.spans import MAX_DEPTH, Broken, Container, Entry, TooDeep, Where

__all__ = ["Statement", "container", "scan"]

_TRIPLE: Final = r'"""(?:[^"\\]|\\.|"{1,2}(?!"))*+"{3,5}' + r"|'''(?:[^']|'{1,2}(?!'))*+'{3,5}"
_STRING: Final = _TRIPLE + r'|"(?:[^"\\\n]|\\.)*+"' + r"|'[^'\n]*+'"
_VALUE: Final = re.compile(_STRING + r"|\d{4}-\d\d-\d\d [^\s,\]}#]++|[^\s,\[\]{}#\"']++", re.DOTALL)
_TOKEN: Final = re.compile(_STRING + r"|#[^\n]*+|[\[\]{}]|[^\"'#\[\]{}]++", re.DOTALL)
_KEY: Final = re.compile(r"""[A-Za-z0-9_-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+'""")
_DOT: Final = re.compile(r"[ \t]*+\.[ \t]*+")
_BLANK: Final = re.compile(r"(?:[ \t\r\n]|#[^\n]*+)*+")
_EQUALS: Final = re.compile(r"[ \t]*+=[ \t]*+")
_NOT_TOML: Final = "it is not TOML as far as it can be followed"


@dataclass(frozen=True, slots=True)
class Statement:
    """A header or a pair: what it is about (an array's tables counted), and where it stands.

    ``kind`` is ``table``, ``array`` (one table of an array) or ``pair``. ``body`` is the table whose header stands
    above it; ``value`` is where a pair's value starts.
    """

    kind: str
    path: Where
    body: Where
    start: int
    value: int
    end: int


def scan(text: str) -> tuple[Statement, ...]:
    """Return the statements. Raises `Broken` where it can't follow."""
    found: list[Statement] = []
    counts: dict[Where, int] = {}
    body: Where = ()
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


def container(text: str, start: int) -> Container | None:
    """Return one level of what stands between brackets, or None for a plain value."""
    if text[start] not in "[{":
        return None
    entries: list[Entry] = []
    at = _skip(text, start + 1)
    while text[at] not in "]}":
        begin = at
        key: object = len(entries)
        if text[start] == "{":
            keys, after = _keys(text, at)
            key = keys[0] if len(keys) == 1 else keys
            at = _match(_EQUALS, text, after)
        end = _value_end(text, at)
        entries.append(Entry(key, begin, at, end))
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return Container(start, at + 1, tuple(entries))


def _header(text: str, start: int, counts: dict[Where, int]) -> Statement:
    brackets = 2 if text.startswith("[[", start) else 1
    keys, after = _keys(text, _match(re.compile(r"[ \t]*+"), text, start + brackets))
    end = _match(re.compile(r"[ \t]*+" + r"\]" * brackets), text, after)
    path: Where = ()
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
        raise Broken(_NOT_TOML) from error


def _value_end(text: str, start: int) -> int:
    """Return where a value ends, over all that is nested in it."""
    if text[start : start + 1] not in {"[", "{"}:
        return _match(_VALUE, text, start)
    depth, at = 0, start
    while True:
        token = _TOKEN.match(text, at)
        if token is None:
            raise Broken(_NOT_TOML, at)
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
        raise Broken(_NOT_TOML, at)
    return found.end()

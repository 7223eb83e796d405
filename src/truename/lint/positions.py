"""Where the names of tools stand in a dump, so that a finding can point at the line."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["places_of"]

_DECODER: Final = json.JSONDecoder()
_BLANK: Final = re.compile(r"[ \t\r\n]*")
_NAME: Final = "name"
_INNER: Final = ("result", "tools")
_DEEPEST: Final = 8

# A name as it stands there, and the offset of its first character.
Place = tuple[Any, int]


def places_of(text: str) -> list[tuple[Any, int, int]]:
    """Return the entries of a dump in their order: the name, and the line and column where it is written.

    The shapes are those of the reader of dumps. What is no dump, or broken, has no places.
    """
    try:
        found = list(_whole(text))
    except (ValueError, RecursionError, IndexError):
        return []
    return list(_lined(text, found))


def _whole(text: str) -> Iterator[Place]:
    start = _skip(text, 0)
    _, end = _DECODER.raw_decode(text, start)
    yield from _entries(text, start)
    start = _skip(text, end)
    # One document a line.
    while start < len(text):
        _, end = _DECODER.raw_decode(text, start)
        yield from _entries(text, start)
        start = _skip(text, end)


def _entries(text: str, start: int, depth: int = 0) -> Iterator[Place]:
    """Yield the entries in the value that begins here: it is one, or lists and objects around some."""
    if depth > _DEEPEST or text[start] not in "{[":
        return
    if text[start] == "[":
        for item in _items(text, start):
            if text[item] == '"':
                yield _DECODER.raw_decode(text, item)[0], item + 1
            elif text[item] == "{" and not any(key in _INNER for key, _ in _members(text, item)):
                yield _named(text, item)
            else:
                yield from _entries(text, item, depth + 1)
        return
    members = dict(_members(text, start))
    inner = next((members[key] for key in _INNER if key in members), None)
    if inner is not None:
        yield from _entries(text, inner, depth + 1)
    elif _NAME in members and text[members[_NAME]] == '"':
        yield _named(text, start)
    else:
        for value in members.values():
            yield from _entries(text, value, depth + 1)


def _named(text: str, start: int) -> Place:
    at = dict(_members(text, start)).get(_NAME)
    if at is None or text[at] != '"':
        return None, start
    return _DECODER.raw_decode(text, at)[0], at + 1


def _items(text: str, start: int) -> Iterator[int]:
    offset = _skip(text, start + 1)
    while text[offset] != "]":
        yield offset
        _, end = _DECODER.raw_decode(text, offset)
        offset = _after_comma(text, end)


def _members(text: str, start: int) -> Iterator[tuple[str, int]]:
    offset = _skip(text, start + 1)
    while text[offset] != "}":
        key, end = _DECODER.raw_decode(text, offset)
        value = _skip(text, _skip(text, end) + 1)
        yield key, value
        _, end = _DECODER.raw_decode(text, value)
        offset = _after_comma(text, end)


def _after_comma(text: str, offset: int) -> int:
    offset = _skip(text, offset)
    return _skip(text, offset + 1) if text[offset] == "," else offset


def _skip(text: str, offset: int) -> int:
    found = _BLANK.match(text, offset)
    return found.end() if found else offset


def _lined(text: str, places: list[Place]) -> Iterator[tuple[Any, int, int]]:
    line, start = 1, 0
    for name, offset in sorted(places, key=lambda place: place[1]):
        line += text.count("\n", start, offset)
        start = offset
        yield name, line, offset - text.rfind("\n", 0, offset)

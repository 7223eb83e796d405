"""Read the arguments of a call strictly and within limits, and digest them by value."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any, Final, NoReturn

import rfc8785

from truename.errors import InvalidCall

__all__ = ["MAX_ARGUMENTS", "MAX_DEPTH", "MAX_ENTRIES", "is_large", "json_digest", "read_arguments"]

MAX_ARGUMENTS: Final = 4 * 1024 * 1024
MAX_DEPTH: Final = 64
MAX_ENTRIES: Final = 200_000
_LARGE_ENTRIES: Final = 500
_LARGE_TEXT: Final = 64 * 1024
_EXACT: Final = 2**53
_WHERE: Final = "arguments"
# The most characters of JSON for one character of text: "\\u0001", plus a member's quotes, colon, comma and blanks.
_MOST_WRITTEN: Final = 8
_JSON: Final = json.JSONEncoder(ensure_ascii=False)
# Python's default limit for converting integers to text and back.
_MOST_DIGITS: Final = 4_300
_TOO_LARGE: Final = 10**_MOST_DIGITS


def read_arguments(value: object) -> dict[str, Any]:
    r"""Read the arguments of a call from JSON text or an object, and return a deep copy.

    An empty text counts as no arguments, since some models send that. Raises `InvalidCall`, with the path of the field,
    for missing arguments, anything but a JSON object, more than 4 MiB, 64 levels or 200,000 keys and items, a duplicate
    key, a key that is not text, NaN and infinity.

    >>> read_arguments('{"to": "me", "to": "you"}')
    Traceback (most recent call last):
        ...
    truename.errors.InvalidCall: Invalid call: arguments.to occurs twice; nothing was run. ...
    """
    if value is None:
        raise InvalidCall(field=_WHERE, problem="is missing")
    found = value
    if isinstance(value, str):
        _require_short(len(value))
        found = _parsed(value) if value.strip() else {}
    if not isinstance(found, (dict, Mapping)):
        raise InvalidCall(field=_WHERE, problem=f"is of type {type(found).__name__}, not an object")
    try:
        copy: dict[str, object] = _copied(found, 0, [MAX_ENTRIES])
    except _ArgumentError as error:
        raise error.call() from error.__cause__
    if found is value and not _is_short(copy):
        _require_short(len(_JSON.encode(copy)))
    return copy


def json_digest(value: Any) -> str:
    """Return ``sha256:`` and 64 hexadecimal digits over a JSON value, canonicalised by RFC 8785: 1 equals 1.0.

    A value outside that standard (an integer over 2^53, a lone surrogate) is hashed as Python writes it. Its digest
    begins with ``sha256-plain:`` and never equals a canonical digest.
    """
    try:
        return f"sha256:{hashlib.sha256(rfc8785.dumps(value)).hexdigest()}"
    except (rfc8785.CanonicalizationError, ValueError):
        plain = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return f"sha256-plain:{hashlib.sha256(plain.encode()).hexdigest()}"


def _require_short(length: int) -> None:
    if length > MAX_ARGUMENTS:
        raise InvalidCall(field=_WHERE, problem=f"has {length:,} characters, more than {MAX_ARGUMENTS:,}")


def _is_short(flat: dict[str, object]) -> bool:
    """Return whether all arguments are texts, as in most calls, and short even if every character is escaped."""
    length = 0
    for key, value in flat.items():
        if type(value) is not str:
            return False
        length += len(key) + len(value) + 1
    return length * _MOST_WRITTEN < MAX_ARGUMENTS


def _parsed(source: str) -> object:
    try:
        found: object = json.loads(source, object_pairs_hook=_unique, parse_constant=_not_a_number)
    except RecursionError as error:
        raise InvalidCall(field=_WHERE, problem=f"is nested deeper than {MAX_DEPTH} levels") from error
    except InvalidCall:
        raise
    except ValueError as error:
        raise InvalidCall(field=_WHERE, problem=f"is not JSON ({getattr(error, 'msg', error)})") from error
    return found


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise InvalidCall(field=f"{_WHERE}.{key}", problem="occurs twice")
        found[key] = value
    return found


def _not_a_number(word: str) -> NoReturn:
    raise InvalidCall(field=_WHERE, problem=f"contains {word}, which is not a JSON number")


class _ArgumentError(Exception):
    """The problem of a value and its path; the keys are added while the error is raised through the levels."""

    def __init__(self, problem: str, *, is_whole: bool = False) -> None:
        self.problem = problem
        self.is_whole = is_whole
        self.path: list[str] = []

    def call(self) -> InvalidCall:
        where = "" if self.is_whole else "".join(reversed(self.path))
        return InvalidCall(field=_WHERE + where, problem=self.problem)


def _copied(value: object, depth: int, room: list[int]) -> Any:
    if type(value) is str or value is None:
        # Checked first, since most values are texts, and checking for a mapping takes ten times as long.
        return value
    if isinstance(value, dict | list | tuple | Mapping):
        if depth >= MAX_DEPTH and value:
            raise _ArgumentError(f"is nested deeper than {MAX_DEPTH} levels", is_whole=True)
        room[0] -= len(value)
        if room[0] < 0:
            raise _ArgumentError(f"contains more than {MAX_ENTRIES:,} keys and items", is_whole=True)
        return (
            _copied_list(value, depth, room) if isinstance(value, list | tuple) else _copied_table(value, depth, room)
        )
    if isinstance(value, float) and not math.isfinite(value):
        raise _ArgumentError(f"is {value}, which is not a JSON number")
    if isinstance(value, int) and abs(value) >= _TOO_LARGE:
        raise _ArgumentError(f"is an integer of more than {_MOST_DIGITS:,} digits")
    if isinstance(value, str | int | float):
        return value
    raise _ArgumentError(f"is of type {type(value).__name__}, which JSON does not have")


def _is_plain(value: object) -> bool:
    """Return whether a value is a text, boolean, null or small integer: nothing to copy or to check."""
    kind = type(value)
    return kind is str or kind is bool or value is None or (kind is int and -_EXACT < value < _EXACT)  # type: ignore[operator]


def _copied_table(table: Mapping[object, object], depth: int, room: list[int]) -> dict[str, object]:
    copy: dict[str, object] = {}
    for key, item in table.items():
        if not isinstance(key, str):
            raise _ArgumentError(f"has a key of type {type(key).__name__}, not text")
        try:
            copy[key] = item if _is_plain(item) else _copied(item, depth + 1, room)
        except _ArgumentError as error:
            error.path.append(f".{key}")
            raise
    return copy


def _copied_list(items: list[object] | tuple[object, ...], depth: int, room: list[int]) -> list[object]:
    copy: list[object] = []
    for number, item in enumerate(items):
        try:
            copy.append(item if _is_plain(item) else _copied(item, depth + 1, room))
        except _ArgumentError as error:
            error.path.append(f"[{number}]")
            raise
    return copy


def is_large(arguments: Mapping[str, Any]) -> bool:
    """Return whether digesting these arguments takes milliseconds, so that it should not block other callers.

    >>> is_large({"text": "x"}), is_large({"rows": [[1, 2]] * 200}), is_large({"text": "x" * 100_000})
    (False, True, True)
    """
    entries, text, rest = 0, 0, list[Any]([arguments])
    while rest and entries <= _LARGE_ENTRIES and text <= _LARGE_TEXT:
        outer = rest.pop()
        entries += len(outer)
        if entries > _LARGE_ENTRIES:
            break
        for inner in outer if isinstance(outer, list) else outer.values():
            if type(inner) is str:
                text += len(inner)
            elif isinstance(inner, dict | list):
                rest.append(inner)
    return entries > _LARGE_ENTRIES or text > _LARGE_TEXT

"""The arguments of a call: read strictly, within bounds, and digested so that only their meaning counts."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any, Final, NoReturn

import rfc8785

from truename.policy.faults import InvalidCall

__all__ = ["MAX_ARGUMENTS", "MAX_DEPTH", "arguments_of", "json_digest"]

MAX_ARGUMENTS: Final = 4 * 1024 * 1024
MAX_DEPTH: Final = 64
_WHERE: Final = "arguments"
# Characters for one: "\\u0001", and a member's quotes, colon and comma with the blanks behind them.
_MOST_WRITTEN: Final = 8
_JSON: Final = json.JSONEncoder(ensure_ascii=False)
# What Python writes and reads unless it is told otherwise.
_MOST_DIGITS: Final = 4_300
_TOO_LARGE: Final = 10**_MOST_DIGITS


def arguments_of(value: object) -> dict[str, Any]:
    r"""Return the arguments of a call, from JSON text or an object, as a copy that nobody else can change.

    An empty text is what some models send for no arguments. Raises `InvalidCall`, with the path of the field, for
    what is missing, no JSON object, over 4 MiB or 64 levels, a key that stands twice or is no text, NaN and infinity.

    >>> arguments_of('{"to": "me", "to": "you"}')
    Traceback (most recent call last):
        ...
    truename.policy.faults.InvalidCall: This is no call: arguments.to stands twice; nothing was run. ...
    """
    if value is None:
        raise InvalidCall(field=_WHERE, problem="is missing")
    found = value
    if isinstance(value, str):
        _require_short(len(value))
        found = _parsed(value) if value.strip() else {}
    if not isinstance(found, Mapping):
        raise InvalidCall(field=_WHERE, problem=f"is of type {type(found).__name__}, not an object")
    copy = _copied(found, _WHERE, 0)
    assert isinstance(copy, dict)  # noqa: S101 - a copy of a mapping
    if found is value and not _is_short(copy):
        _require_short(len(_JSON.encode(copy)))
    return copy


def json_digest(value: Any) -> str:
    """Return ``sha256:`` and 64 hexadecimal digits over a JSON value, canonicalised by RFC 8785: 1 equals 1.0.

    What is outside that standard (an integer over 2^53, a lone surrogate) is hashed as Python writes it, under
    ``sha256-plain:``, and so never equals a canonical digest.
    """
    try:
        return f"sha256:{hashlib.sha256(rfc8785.dumps(value)).hexdigest()}"
    except (rfc8785.CanonicalizationError, ValueError):
        plain = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return f"sha256-plain:{hashlib.sha256(plain.encode()).hexdigest()}"


def _require_short(length: int) -> None:
    if length > MAX_ARGUMENTS:
        raise InvalidCall(field=_WHERE, problem=f"has {length:,} characters, more than {MAX_ARGUMENTS:,}")


def _is_short(flat: dict[str, Any]) -> bool:
    """Tell of texts, as most calls have nothing else, that they can't be too long, however they are written."""
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
        raise InvalidCall(field=_WHERE, problem=f"is no JSON ({getattr(error, 'msg', error)})") from error
    return found


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise InvalidCall(field=f"{_WHERE}.{key}", problem="stands twice")
        found[key] = value
    return found


def _not_a_number(word: str) -> NoReturn:
    raise InvalidCall(field=_WHERE, problem=f"holds {word}, which is no JSON number")


def _copied(value: object, where: str, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise InvalidCall(field=_WHERE, problem=f"is nested deeper than {MAX_DEPTH} levels")
    if type(value) is str or value is None:
        # First, for nearly all are: to ask whether something is a mapping costs ten times as much.
        return value
    if isinstance(value, Mapping):
        return {_key(key, where): _copied(item, f"{where}.{key}", depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_copied(item, f"{where}[{number}]", depth + 1) for number, item in enumerate(value)]
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidCall(field=where, problem=f"is {value}, which is no JSON number")
    if isinstance(value, int) and abs(value) >= _TOO_LARGE:
        raise InvalidCall(field=where, problem=f"is an integer of more than {_MOST_DIGITS:,} digits")
    if value is None or isinstance(value, str | int | float):
        return value
    raise InvalidCall(field=where, problem=f"is of type {type(value).__name__}, which JSON has not")


def _key(key: object, where: str) -> str:
    if not isinstance(key, str):
        raise InvalidCall(field=where, problem=f"has a key of type {type(key).__name__}, not text")
    return key

"""What cannot be sent on: parsers take texts, numbers and depths that no JSON text of the other side can have."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import msgspec
from pydantic_core import PydanticSerializationError, to_json

from truename.gateway.protocol.json_text import depth_of

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["DEEPEST", "is_deeper", "unwritable"]

_TOO_DEEP: Final = "are nested deeper than the {most} levels of max_depth"
_CONSTANTS: Final = (b"NaN", b"Infinity")
# What parsers of the other side take of a whole message, less what stands around its parameters or its result.
DEEPEST: Final = 190


def unwritable(params: Mapping[str, Any], deepest: int) -> str | None:
    r"""Say why these parameters cannot be written as JSON for a server, None if they can.

    A half of a character, ``NaN`` and a number beyond all numbers (``1e999``) come through Python's parser, and what
    cannot be written would end the connection that all clients share; ``deepest`` is how many objects and lists may
    stand in one another.

    >>> unwritable({"arguments": {"text": "whole"}}, 64)
    >>> unwritable({"text": "\ud83d"}, 64)
    'contain half of a character (a lone surrogate), which is not valid text'
    >>> unwritable({"ratio": float("inf")}, 64), unwritable({"a": [[]]}, 2)
    ('contain a number that JSON does not have (NaN, or too large)', 'are nested deeper than the 2 levels of max_depth')
    """
    most = min(deepest, DEEPEST)
    arguments = params.get("arguments")
    if isinstance(arguments, msgspec.Raw):
        # Whatever stands in it was checked when it came, but for its depth.
        params = {key: value for key, value in params.items() if key != "arguments"}
        if depth_of(arguments, most - 1) >= most:
            return _TOO_DEEP.format(most=most)
        if not params.keys() - {"name"}:
            return None
    if is_deeper(params, most):
        return _TOO_DEEP.format(most=most)
    try:
        text = to_json(params, inf_nan_mode="constants")
    except (PydanticSerializationError, ValueError):
        return "contain half of a character (a lone surrogate), which is not valid text"
    if any(constant in text for constant in _CONSTANTS) and not _has_numbers_only(params):
        return "contain a number that JSON does not have (NaN, or too large)"
    return None


def is_deeper(content: Mapping[str, Any], deepest: int) -> bool:
    """Tell whether more objects and lists than this stand in one another."""
    level: list[Any] = [content]
    for _ in range(deepest):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True


def _has_numbers_only(params: Mapping[str, Any]) -> bool:
    try:
        json.dumps(params, allow_nan=False)
    except ValueError:
        return False
    return True

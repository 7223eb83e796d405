"""Canonical JSON (RFC 8785) of records: what nearly all are made of is written by the encoder in C, and in one go."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import rfc8785

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["canonical"]

_EXACT: Final = 2**53
# Python and ECMAScript write the same of such numbers: no exponent, and no ".0" at the end.
_LEAST, _MOST = 1e-4, 1e15
_ENCODER: Final = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, sort_keys=True, separators=(",", ":")
)


def canonical(plain: Mapping[str, Any]) -> bytes:
    r"""Return the one form that a table has. Raises `ValueError` for what is no JSON of RFC 8785.

    Tables in tables, keys beyond ASCII (the order of which is another one in UTF-16) and numbers that Python writes in
    another way are left to `rfc8785`.

    >>> canonical({"seconds": 1e-7, "name": "é", "is_last": True})
    b'{"is_last":true,"name":"\xc3\xa9","seconds":1e-7}'
    """
    for key, value in plain.items():
        if type(key) is str and key.isascii() and (type(value) is str or _is_alike(value)):
            continue
        return rfc8785.dumps(dict(plain))
    return _ENCODER.encode(plain).encode()


def _is_alike(value: object) -> bool:
    """Tell whether a value that is no text is written alike."""
    if type(value) is int:
        return -_EXACT < value < _EXACT
    if type(value) is float:
        return _LEAST <= value < _MOST and not value.is_integer()
    return value is None or value is True or value is False

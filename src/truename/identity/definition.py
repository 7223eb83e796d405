"""Compute the digest of a tool's definition. Approvals are bound to it, and drift is a change of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

import rfc8785

__all__ = ["DIGESTED_FIELDS", "definition_digest"]

DIGESTED_FIELDS: Final = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")


def definition_digest(definition: Mapping[str, Any]) -> str:
    """Return ``sha256:`` and 64 hexadecimal digits over name, title, description, schemas and annotations.

    The JSON is canonicalised by RFC 8785, so neither the order of keys nor white space counts, and 1 equals 1.0.
    Numbers outside that standard's range (an integer over 2^53, NaN) are hashed as Python writes them; such a digest
    begins with ``sha256-plain:`` and never equals a canonical one. So does the digest of a definition that is nested
    too deep to recurse.

    >>> definition_digest({"name": "a", "_meta": {"x": 1}}) == definition_digest({"name": "a"})
    True
    """
    part = {key: definition[key] for key in DIGESTED_FIELDS if key in definition}
    try:
        return f"sha256:{hashlib.sha256(_canonical(part)).hexdigest()}"
    except (rfc8785.CanonicalizationError, RecursionError, ValueError):
        return f"sha256-plain:{hashlib.sha256(_plain(part)).hexdigest()}"


def _canonical(part: dict[str, Any]) -> bytes:
    """Return the JSON of RFC 8785. Raises what `rfc8785.dumps` raises.

    Python's encoder is twice as fast, and writes the same where there are no floats, no integers over 2^53, and no
    keys that UTF-16 sorts otherwise than code points.
    """
    if not _is_simple(part):
        return rfc8785.dumps(part)
    text = _ENCODE(part)
    return text.encode() if text.isascii() or max(text) < _FIRST_SURROGATE else rfc8785.dumps(part)


def _is_simple(item: object) -> bool:
    kind = type(item)
    if kind is str or item is None or kind is bool:
        return True
    if kind is dict:
        return all(type(key) is str for key in item) and all(map(_is_simple, item.values()))  # type: ignore[attr-defined]
    if kind is list or kind is tuple:
        return all(map(_is_simple, item))  # type: ignore[call-overload]
    return kind is int and -_MOST <= item <= _MOST  # type: ignore[operator]


_ENCODE: Final = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, sort_keys=True, separators=(",", ":")
).encode
_MOST: Final = 2**53 - 1
_FIRST_SURROGATE: Final = "\ud800"


def _plain(part: Mapping[str, object]) -> bytes:
    # An explicit stack, because a hostile definition may exceed Python's recursion limit.
    tokens: list[str] = []
    stack: list[object] = [part]
    while stack:
        item = stack.pop()
        if isinstance(item, Mapping):
            tokens.append(f"{{{len(item)}")
            for key in sorted(item, key=str):
                stack += (item[key], str(key))
        elif isinstance(item, list | tuple):
            tokens.append(f"[{len(item)}")
            stack += reversed(item)
        else:
            tokens.append(hex(item) if isinstance(item, int) and not isinstance(item, bool) else repr(item))
    return "\0".join(tokens).encode("utf-8", "surrogatepass")

"""Compute the digest of a tool's definition. Approvals are bound to it, and drift is a change of it."""

from __future__ import annotations

import hashlib
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
        return f"sha256:{hashlib.sha256(rfc8785.dumps(part)).hexdigest()}"
    except (rfc8785.CanonicalizationError, RecursionError, ValueError):
        return f"sha256-plain:{hashlib.sha256(_plain(part)).hexdigest()}"


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

"""Real catalogues for laws: the whole shared collection where it is, else the sample of the tests' own data.

The sample has names only; its definitions are made of the words of each name, so that no two tools have the same.
"""

from __future__ import annotations

import gzip
import json
from functools import cache
from typing import Any

from tests.shared import data, found
from truename.naming.words import words

__all__ = ["catalogues", "is_whole"]


def is_whole() -> bool:
    """Tell whether the shared collection is there."""
    return found("corpus", "open.jsonl.gz") is not None


@cache
def catalogues() -> list[dict[str, Any]]:
    """Return the servers: ``id``, ``server``, ``family`` and ``tools``, with definitions."""
    whole = found("corpus", "open.jsonl.gz")
    if whole is not None:
        with gzip.open(whole, "rt", encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]
    rows: list[dict[str, Any]] = json.loads(data("corpus", "sample.json").read_bytes())
    return [row | {"tools": [_defined(name) for name in row["tools"]]} for row in rows]


def _defined(name: str) -> dict[str, Any]:
    parts = words(name) or [name]
    properties = {part: {"type": "string", "description": f"The {part}."} for part in parts}
    return {
        "name": name,
        "description": f"Do {' '.join(parts)}, as asked.",
        "inputSchema": {"type": "object", "properties": properties, "required": list(parts[:1])},
    }

"""The servers that are measured, under two kinds of keys: package names, and short keys as people write them."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from typing import Any, Final

from bench.names import SHARED, Pairs

__all__ = ["KINDS", "servers"]

KINDS: Final = ("package names", "short keys")
_NOISE: Final = frozenset({"mcp", "server"})


def servers(kind: str) -> Pairs:
    """Return the open part of the collection under keys of this kind, which are unique as in a configuration.

    Raises `FileNotFoundError` without the shared collection.
    """
    with gzip.open(SHARED / "corpus" / "open.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows: list[dict[str, Any]] = [row for row in map(json.loads, lines) if row["split"] == "open"]
    seen: Counter[str] = Counter()
    pairs: Pairs = []
    for row in rows:
        key = _short(row["server"]) if kind == "short keys" else row["server"]
        seen[key.lower()] += 1
        tools = {tool["name"]: tool for tool in row["tools"]}
        pairs.append((key if seen[key.lower()] == 1 else f"{key}-{seen[key.lower()]}", list(tools.values())))
    return pairs


def _short(key: str) -> str:
    """Return a key without its organisation, "mcp" and "server", as a person would write it down."""
    own = [word for word in re.split(r"[^a-z0-9]+", key.rpartition("/")[2].lower()) if word]
    return "-".join([word for word in own if word not in _NOISE] or own)

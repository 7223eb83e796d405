"""The names that are measured with: real ones, repeated under other labels until there are enough."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any, Final

__all__ = ["SHARED", "Pairs", "real_pairs"]

Pairs = list[tuple[str, list[dict[str, Any]]]]
_ROOT: Final = Path(__file__).resolve().parent.parent
SHARED: Final = Path(os.environ.get("TRUENAME_SHARED") or _ROOT.parent / "shared")


def real_pairs(count: int) -> Pairs:
    """Return servers with ``count`` tools in all. Raises `FileNotFoundError` without the shared collection."""
    with gzip.open(SHARED / "corpus" / "open.jsonl.gz", "rt", encoding="utf-8") as lines:
        servers = [(server["id"], server["tools"]) for server in map(json.loads, lines)]
    pairs: Pairs = []
    left, copy = count, 0
    while left > 0:
        copy += 1
        for label, tools in servers:
            names = {tool["name"]: tool for tool in tools}
            part = list(names.values())[:left]
            if part:
                pairs.append((label if copy == 1 else f"{label}-{copy}", part))
                left -= len(part)
    return pairs

"""Test support: connect, used by tests of several modules."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


def servers(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))["mcpServers"]
    return found


def words(text: str) -> str:
    """Return the text in one line, as it was before a terminal broke it."""
    return " ".join(text.split())

"""Claude Code's plugins: where one begins, and the other files that its ``plugin.json`` names."""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["PLUGIN", "files_of_plugin", "root_of_plugin"]

PLUGIN: Final = "plugin.json"
_MARK: Final = ".claude-plugin"
_MOST: Final = 100
_LONGEST: Final = 1_000


def root_of_plugin(file: Path) -> Path:
    """Return the folder of the plugin that a file belongs to: what ``${CLAUDE_PLUGIN_ROOT}`` means in it."""
    return next((folder for folder in file.parents if (folder / _MARK).is_dir()), file.parent)


def files_of_plugin(file: Path, value: Any) -> tuple[Path, ...]:
    """Return the JSON files that stand in place of servers in a ``plugin.json``; only those inside the plugin."""
    named = value.get("mcpServers") if isinstance(value, dict) else None
    texts = named[:_MOST] if isinstance(named, list) else [named]
    root = root_of_plugin(file)
    paths = (_inside(root, text) for text in texts if isinstance(text, str))
    return tuple(path for path in paths if path is not None and os.path.lexists(path))


def _inside(root: Path, text: str) -> Path | None:
    if len(text) > _LONGEST or "\0" in text or not text.endswith(".json"):
        return None
    path = root / os.path.normpath(text)
    return path if path.is_relative_to(root) and ".." not in path.relative_to(root).parts else None

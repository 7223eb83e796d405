"""Where a client's file may speak of a server in a place that is not understood: its key, or a pattern of names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from truename.clients.find import Found
    from truename.editing import KeyPath

__all__ = ["mentions"]

_LONGEST: Final = 200
# Paths and prose: a directory of projects may be called as a server is.
_PROSE: Final = re.compile(r"[/\\\s]")
# A hook's pattern that is about all tools of all servers holds for a common entry too.
_EVERYTHING: Final = frozenset({"", "mcp__"})
_PATTERN: Final = "matcher"
_JOIN: Final = "__"


def mentions(files: Sequence[Found], key: str) -> bool:
    """Tell whether files may be about a server beyond its entry and the names that are known to be kept there.

    Clients keep lists that no table has. A text that has the key as a word is taken for a mention, and so is a hook
    whose pattern has the sign in it by which clients join key and name.
    """
    spelt = "|".join(re.escape(one) for one in {key, re.sub(r"[^A-Za-z0-9]", "_", key)})
    word = re.compile(rf"(?<![A-Za-z0-9])(?:{spelt})(?![A-Za-z0-9])", re.IGNORECASE)
    # One file is found once for each row that is about it.
    known = {(kept.path, kept.where) for found in files for kept in found.kept}
    entries = {(one.path, one.where) for found in files for one in found.servers}
    values = {found.path: found.document.value for found in files if found.document is not None}
    for path, value in values.items():
        for where, text in _texts(value, (), {place for file, place in entries if file == path}):
            if (path, where) in known or len(text) > _LONGEST or _PROSE.search(text):
                continue
            is_pattern = _PATTERN in where and _JOIN in text and text.strip("^.*$") not in _EVERYTHING
            if is_pattern or word.search(text):
                return True
    return False


def _texts(value: Any, where: KeyPath, entries: set[KeyPath]) -> Iterator[tuple[KeyPath, str]]:
    """Yield the texts of a tree, keys of objects too, with their places; those of servers' entries are left out."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in pairs:
        place = (*where, key)
        if place in entries:
            continue
        if isinstance(key, str):
            yield place, key
        if isinstance(item, str):
            yield place, item
        yield from _texts(item, place, entries)

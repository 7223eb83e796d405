"""Files that say which names change: TOML with a table ``[renames]``, or JSON, from old name to new."""

from __future__ import annotations

import json
import re
import tomllib
from typing import TYPE_CHECKING, Any, Final

from truename.errors import ConfigError, excerpt

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["MAX_MAP", "read_map"]

MAX_MAP: Final = 16 * 1024 * 1024
_TABLE: Final = "renames"
_SHAPE: Final = 'Write [renames] with "old" = "new" lines in TOML, or {"old": "new"} in JSON.'
_PLACE: Final = re.compile(r" \(at (line \d+, column \d+)\)\Z")


def read_map(raw: bytes, file: str) -> Mapping[str, str]:
    r"""Return the renames that a file holds; ``file`` is its name, whose ending tells TOML from JSON.

    Raises `ConfigError` with the line for what can't be read, with the key for what is no pair of names: two lines
    for one old name are refused, since the later one would win silently.

    >>> dict(read_map(b'[renames]\n"fs.list" = "fs_list"', "renames.toml"))
    {'fs.list': 'fs_list'}
    """
    if len(raw) > MAX_MAP:
        raise _fault(file, "", f"it is larger than {MAX_MAP:,} bytes")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _fault(file, "", f"it is not UTF-8 (byte {error.start})") from error
    try:
        content = _toml(text, file) if file.lower().endswith(".toml") else _json(text, file)
    except RecursionError as error:
        raise _fault(file, "", "it is nested too deeply") from error
    found = content.get(_TABLE, content if not file.lower().endswith(".toml") else None)
    if not isinstance(found, dict) or not found:
        raise _fault(file, _TABLE, "it says no renames")
    for old, new in found.items():
        if not isinstance(new, str):
            raise _fault(file, excerpt(old), "the new name is no text")
    return found


def _toml(text: str, file: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = _PLACE.search(str(error))
        where = place[1] if place else f"line {text.count(chr(10)) + 1} (the end)"
        raise _fault(file, where, f"it is not TOML ({_PLACE.sub('', str(error))})") from error


def _json(text: str, file: str) -> dict[str, Any]:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            keys = [key for key, _ in pairs]
            raise _fault(file, excerpt(next(key for key in keys if keys.count(key) > 1)), "it stands there twice")
        return found

    try:
        content = json.loads(text, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        raise _fault(file, f"line {error.lineno}, column {error.colno}", f"it is not JSON ({error.msg})") from error
    except ValueError as error:
        raise _fault(file, "", f"it is not JSON ({error})") from error
    if not isinstance(content, dict):
        raise _fault(file, "", "it is no object")
    return content


def _fault(file: str, key: str, problem: str) -> ConfigError:
    return ConfigError(file=file, key=key, problem=problem, remedy=_SHAPE)

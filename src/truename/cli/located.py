"""In which line of a configuration file something is wrong, as far as its key tells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from truename.editing import Document
from truename.errors import ConfigError, TruenameError

__all__ = ["line_of"]

# Where settings stand under a key of their own.
_SECTIONS: tuple[tuple[str, ...], ...] = ((), ("truename",))


def line_of(error: Exception) -> int | None:
    """Return the line of the key that an error names; None if there is none, or the error tells its line itself."""
    if not isinstance(error, ConfigError) or not error.key or error.key.startswith("line "):
        return None
    path = Path(error.file)
    try:
        document = Document.read(path, "toml" if path.suffix.lower() == ".toml" else "jsonc")
    except TruenameError:
        return None
    found = [where for section in _SECTIONS if (where := _path(document.value, section, error.key))]
    return document.position(max(found, key=len))[0] if found else None


def _path(value: Any, section: tuple[str, ...], key: str) -> tuple[str | int, ...]:
    """Return the path to a dotted key, as far as it is there; keys may have dots themselves."""
    for step in section:
        value = value.get(step) if isinstance(value, dict) else None
    where: tuple[str | int, ...] = ()
    rest = key
    while isinstance(value, dict) and rest:
        name = next((name for name in sorted(value, key=len, reverse=True) if _begins(rest, name)), "")
        if not name:
            break
        where, value, rest = (*where, name), value[name], rest[len(name) :].lstrip(".")
    return (*section, *where) if where else ()


def _begins(rest: str, name: str) -> bool:
    return bool(name) and rest.startswith(name) and rest[len(name) : len(name) + 1] in {"", ".", "["}

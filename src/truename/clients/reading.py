"""Reading the files of a machine once each, whatever they are: no error leaves here, and nothing waits."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from truename.clients.frontmatter import frontmatter
from truename.clients.shell import mcp_additions
from truename.editing import Document
from truename.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

__all__ = ["Loaded", "Reader"]

# Only the beginning of a text file can matter here: a frontmatter, or a script of hand-written lines.
_MOST_TEXT: Final = 1024 * 1024
_TEXTS: Final[Mapping[str, Callable[[str], dict[str, Any]]]] = {"markdown": frontmatter, "shell": mcp_additions}


class Loaded(NamedTuple):
    """What a file holds: its value, with its document if it is one; or the problem."""

    value: Any = None
    document: Document | None = None
    problem: ConfigError | None = None


class Reader:
    """Reads each file once, however many clients have it."""

    def __init__(self) -> None:
        self._loaded: dict[tuple[Path, str], Loaded] = {}

    def load(self, path: Path, format: str) -> Loaded:  # noqa: A002 - the house's word
        """Return what the file holds."""
        key = (path, format)
        if key not in self._loaded:
            self._loaded[key] = _load(path, format)
        return self._loaded[key]


def _load(path: Path, format: str) -> Loaded:  # noqa: A002
    try:
        if format in _TEXTS:
            return Loaded(_TEXTS[format](_text(path)))
        document = Document.read(path, format)
    except ConfigError as problem:
        return Loaded(problem=problem)
    return Loaded(document.value, document)


def _text(path: Path) -> str:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise ConfigError(file=str(path), key="", problem="it is not a regular file", remedy="Give a file.")
        with path.open("rb") as stream:
            return stream.read(_MOST_TEXT).decode("utf-8", "replace")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        problem = f"it can't be read ({reason})"
        raise ConfigError(file=str(path), key="", problem=problem, remedy="Check the path.") from error

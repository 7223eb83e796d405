"""Find the lines of keys in configuration files, for errors that know only a key's dotted path."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from truename.config.files import read_text
from truename.editing.document import Document
from truename.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from truename.conventions import Finding, Location
    from truename.editing.syntax import KeyPath

__all__ = ["SourceLines", "key_path"]

_PLACED: Final = re.compile(r"line [0-9]")
_INDEX: Final = re.compile(r"\[([0-9]{1,9})\]")
_ENDS: Final = re.compile(r"[.\[]|\Z")
_LONGEST: Final = 2_000
# Each look-up may read the text from its beginning.
_MOST_CHARACTERS: Final = 1 << 26
_REPEATED: Final = "duplicate-key"


class SourceLines:
    """The lines of keys in files; ``texts`` has contents of files that are not on this machine.

    A place that cannot be found stays without a line. Large files with thousands of places get only the first ones.
    """

    def __init__(self, texts: Mapping[str, str] = MappingProxyType({})) -> None:
        self._texts = texts
        self._documents: dict[str, Document | None] = {}
        self._left = _MOST_CHARACTERS

    def found(self, location: Location, *, is_whole: bool = False) -> Location:
        """Return a location with line and column; one without a key has none, unless the whole file is meant."""
        line, column = self._position(location.file, location.key) if location.key or is_whole else (0, 0)
        return replace(location, line=line, column=column) if line else location

    def all(self, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        """Return findings with lines and columns."""
        return tuple(
            one if one.location is None else replace(one, location=self.found(one.location)) for one in findings
        )

    def told(self, error: ConfigError) -> ConfigError:
        """Return an error with line and column in front of its key, as errors of syntax have them."""
        if not error.key or _PLACED.match(error.key):
            return error
        line, column = self._repeated(error) or self._position(error.file, error.key)
        return replace(error, key=f"line {line}, column {column}: {error.key}") if line else error

    def _repeated(self, error: ConfigError) -> tuple[int, int] | None:
        """Return the place of a key that occurs twice, which has no path."""
        document = self._document(error.file) if "twice" in error.problem else None
        quirks = () if document is None else document.quirks
        return next(((quirk.line, quirk.column) for quirk in quirks if quirk.kind == _REPEATED), None)

    def _position(self, file: str, where: str) -> tuple[int, int]:
        document = self._document(file)
        if document is None or self._left < 0:
            return 0, 0
        self._left -= len(document.raw)
        try:
            return document.position(key_path(document.value, where))
        except (ConfigError, LookupError, ValueError, TypeError):
            return 0, 0

    def _document(self, file: str) -> Document | None:
        if file not in self._documents:
            self._documents[file] = _parsed(file, self._texts)
        return self._documents[file]


def _parsed(file: str, texts: Mapping[str, str]) -> Document | None:
    try:
        text = texts[file] if file in texts else read_text(Path(file))
        is_json = text.lstrip().startswith(("{", "//", "/*"))
        format_ = "jsonc" if is_json else "toml" if file.endswith(".toml") else "yaml"
        return Document.parse(text.encode(), Path(file), format_)
    except (ConfigError, UnicodeEncodeError):
        return None


def key_path(value: object, where: str) -> KeyPath:
    """Return the path that a dotted text means in a value; keys may hold dots. A missing key ends the path.

    >>> key_path({"mcpServers": {"a.b": {"args": ["x"]}}}, "mcpServers.a.b.args[0].neither")
    ('mcpServers', 'a.b', 'args', 0)
    """
    path: list[str | int] = []
    rest = where if len(where) <= _LONGEST else ""
    while rest:
        if isinstance(value, list) and (index := _INDEX.match(rest)) and int(index[1]) < len(value):
            path.append(int(index[1]))
            value, rest = value[int(index[1])], rest[index.end() :]
        elif isinstance(value, dict) and (key := _longest_key(value, rest)) is not None:
            path.append(key)
            value, rest = value[key], rest[len(key) :]
        else:
            break
        rest = rest.removeprefix(".")
    return tuple(path)


def _longest_key(value: dict[str, object], rest: str) -> str | None:
    ends = (found.start() for found in _ENDS.finditer(rest))
    return max((rest[:end] for end in ends if rest[:end] in value), key=len, default=None)

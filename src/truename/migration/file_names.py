"""Names of files that have a tool's name in them: ``fixtures/request_fs.list.json``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from truename.migration.lexicon import Lexicon

__all__ = ["FileNames"]

# Files that only their path means: a module's name is code.
_MOVABLE: Final = frozenset({".json", ".jsonl", ".yaml", ".yml", ".md", ".txt", ".xml", ".csv", ".snap", ".golden"})


@dataclass(frozen=True)
class FileNames:
    """The names of files before and after a migration; ``is_asked`` is whether files are to be moved at all."""

    lexicon: Lexicon
    is_asked: bool

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        # In a file's name "_" and "-" part words; in a text they are of the word.
        inner = self.lexicon.names.pattern.removeprefix(r"(?<![\w-])").removesuffix(r"(?![\w-])")
        return re.compile(rf"(?<![^\W_]){inner}(?![^\W_])")

    def new(self, name: str) -> str:
        """Return what a file is called afterwards, "" if it keeps its name.

        >>> from truename.migration.lexicon import Lexicon
        >>> FileNames(Lexicon.of({"fs.list": "fs_list"}), is_asked=True).new("request_fs.list.json")
        'request_fs_list.json'
        """
        return self._renamed(name) if self.is_asked and PurePath(name).suffix.lower() in _MOVABLE else ""

    def kept(self, name: str) -> str:
        """Return the old name that a file's name has and keeps, "" if there is none."""
        if not self._renamed(name) or self.new(name):
            return ""
        return next(found["text"] for found in self._pattern.finditer(name) if self._in_place(name, found) != found[0])

    def _renamed(self, name: str) -> str:
        new = self._pattern.sub(lambda found: self._in_place(name, found), name)
        return "" if new == name else new

    def _in_place(self, name: str, found: re.Match[str]) -> str:
        # What goes on with "_" or "-" may be the longer name of another tool.
        is_whole = name[found.end() : found.end() + 1] in {"", "."}
        return self.lexicon.meanings.get(found["text"], found[0]) if is_whole else found[0]

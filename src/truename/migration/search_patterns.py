"""Compile the names of a migration into search patterns, once for any number of files.

Names are searched as whole tokens, never split. Prefixes serve only to report texts that look like several names
written as one (``fs.*``, ``winget.install|update``).
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from dataclasses import dataclass, replace
from os.path import commonprefix
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from truename.errors import MigrationError, excerpt
from truename.identity import MAX_FOREIGN
from truename.naming.words import split

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = ["Lexicon", "alternatives", "is_plain_word", "new_name_problem", "old_name_problem"]

_NEVER: Final = re.compile(r"(?!)")
# Characters that cannot be written inside quotes in every language, or have a special meaning there.
_UNWRITABLE: Final = re.compile(r"[\s\"'`\\{}|*,#]")
_UNFINDABLE: Final = re.compile(r"[\"'`\\]")
_PLAIN_WORD: Final = re.compile(r"[^\W_]+")
_SEPARATOR: Final = re.compile(r"[^a-zA-Z0-9]")
_SEVERAL: Final = r"(?:\*|\{[\w, -]{1,400}\}|[\w-]{1,80}(?:\|[\w-]{1,80}){1,60})"
# Only for reporting; the dialect table knows the meaning of such a spelling.
_SHOWN: Final = r"(?<![\w-])mcp_[\w-]{1,80}?_"
_UNSHOWN: Final = re.compile(r"[^a-zA-Z0-9_-]")
# The regular expression compiler cannot handle deeper trees.
_DEEPEST: Final = 20


@dataclass(frozen=True)
class Lexicon:
    """The names of a migration, compiled: ``meanings`` maps each text to its replacement, ``files`` maps file names.

    ``escaped`` are old names as regular expressions write them. ``names`` matches all of them, and the new names, which
    may contain an old one; ``several`` matches texts that look like several names written as one; ``shown`` matches a
    client's spelling of a name (``mcp__kenny__fs.list``).
    """

    meanings: Mapping[str, str]
    escaped: frozenset[str]
    files: Mapping[str, str]
    names: re.Pattern[str]
    several: re.Pattern[str]
    shown: re.Pattern[str]
    file_names: re.Pattern[str]

    @classmethod
    def of(cls, meanings: Mapping[str, str], files: Mapping[str, str] = MappingProxyType({})) -> Lexicon:
        """Compile the patterns. Raises `MigrationError` for a name that cannot be written in a file."""
        for old, new in meanings.items():
            for name, fault in ((old, old_name_problem(old)), (new, new_name_problem(new))):
                if fault:
                    problem = f"{excerpt(name)} cannot be written as a name in files: {fault}"
                    raise MigrationError(problem=problem, remedy="Choose another name.")
        whole = {**meanings, **dict(_in_json(meanings))}
        # As regular expressions write a name, in plain strings and in those with doubled backslashes.
        patterns = {re.escape(name) for name in meanings if re.escape(name) != name}
        escaped = frozenset(patterns | {pattern.replace("\\", "\\\\") for pattern in patterns}) - whole.keys()
        prefixes = {name[: at.end()] for name in meanings for at in _SEPARATOR.finditer(name) if at.start()}
        return cls(
            meanings=MappingProxyType(whole),
            escaped=escaped,
            files=files,
            names=_pattern({*whole, *escaped, *whole.values()}, r"(?<![\w-])", r"(?![\w-])"),
            several=_pattern(prefixes, r"(?<![\w-])", _SEVERAL),
            shown=_pattern(_as_shown(meanings), _SHOWN, r"(?![\w-])"),
            file_names=_file_names(files),
        )

    def with_files(self, files: Mapping[str, str]) -> Lexicon:
        """Return a copy with file names that change."""
        return replace(self, files=files, file_names=_file_names(files))


def new_name_problem(name: str) -> str:
    """Return why a new name cannot be written in files; "" if it can.

    >>> new_name_problem("fs.list"), new_name_problem("fs list")
    ('', "' ' would not be read as part of the name")
    """
    return _error(name, _UNWRITABLE)


def old_name_problem(name: str) -> str:
    """Return why files cannot be searched for an old name, or "". Spaces are allowed; quotes and backquotes are not.

    >>> old_name_problem("fs list"), bool(old_name_problem("fs`list"))
    ('', True)
    """
    return _error(name, _UNFINDABLE)


def _error(name: str, never: re.Pattern[str]) -> str:
    if not name.strip() or len(name) > MAX_FOREIGN:
        return f"it is empty or longer than {MAX_FOREIGN:,} characters"
    if not name.isprintable():
        return "it contains invisible characters"
    found = never.search(name)
    return f"{excerpt(found[0])} would not be read as part of the name" if found else ""


def is_plain_word(name: str) -> bool:
    """Return whether a name is a single common word, which prose and code use without meaning the tool.

    >>> is_plain_word("search"), is_plain_word("readPage")
    (True, False)
    """
    return _PLAIN_WORD.fullmatch(name) is not None and len(split(name)) == 1


def alternatives(text: str) -> tuple[str, ...]:
    """Split the text that follows a name's prefix into words: ``x|y|z`` and ``{x, y}`` have several, ``*`` has none."""
    return tuple(word for word in re.split(r"[|,{} *]", text) if word)


def _in_json(meanings: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the optional JSON escapes of names."""
    for old, new in meanings.items():
        if not old.isascii():
            yield json.dumps(old)[1:-1], json.dumps(new)[1:-1]
        if "/" in old:
            yield old.replace("/", "\\/"), new.replace("/", "\\/")


def _as_shown(meanings: Mapping[str, str]) -> Iterator[str]:
    """Yield the old names, and their spellings in clients that use underscores, unless a new name has the spelling."""
    news = {_UNSHOWN.sub("_", new) for new in meanings.values()}
    for old in meanings:
        yield old
        if (shown := _UNSHOWN.sub("_", old)) not in news:
            yield shown


def _file_names(files: Iterable[str]) -> re.Pattern[str]:
    return _pattern(files, r"(?<![\w.-])", r"(?![\w.-])")


def _pattern(texts: Iterable[str], before: str, after: str) -> re.Pattern[str]:
    """Compile a search for any of the texts, longest first."""
    wanted = sorted(set(texts))
    return re.compile(f"{before}(?P<text>{_choice(wanted, _DEEPEST)}){after}") if wanted else _NEVER


def _choice(texts: list[str], depth: int) -> str:
    """Return a regular expression for the texts as a tree of their prefixes, which is faster than a list."""
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for text in texts:
        groups[text[:1]].append(text)
    # A longer text must come before its own prefix.
    return "|".join(_branch(groups[key], depth) for key in sorted(groups, reverse=True))


def _branch(texts: list[str], depth: int) -> str:
    if len(texts) == 1 or depth == 0:
        return "|".join(map(re.escape, sorted(texts, key=len, reverse=True)))
    shared = commonprefix(texts)  # noqa: RUF071 - these are no paths
    return f"{re.escape(shared)}(?:{_choice([text[len(shared) :] for text in texts], depth - 1)})"

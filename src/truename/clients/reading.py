"""Read each file of a client once: JSON, TOML and YAML documents, Markdown frontmatter, Crush's shell script."""

from __future__ import annotations

import re
import shlex
import stat
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from truename.editing import Document
from truename.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

__all__ = ["FileReader", "LoadedFile"]

_LONGEST: Final = 64 * 1024
_FENCE: Final = re.compile(r"---[ \t]*\r?\n(.*?)^(?:---|\.\.\.)[ \t]*\r?(?=\n|\Z)", re.DOTALL | re.MULTILINE)
_FIELD: Final = re.compile(r"([A-Za-z][A-Za-z_-]{0,40}):[ \t]*([^\r\n]*)")
_MEMBER: Final = re.compile(r"""[ \t]+(?:"([^"]+)"|'([^']+)'|([^\s'"#][^:\r\n]*)):[ \t]+([^\r\n]+)""")
_ITEM: Final = re.compile(r"[ \t]*-[ \t]+([^\r\n]+)")


def frontmatter(text: str) -> dict[str, Any]:
    r"""Parse the frontmatter of a Markdown file: fields are lists of strings, or objects of strings if indented.

    A value is split at commas, with or without brackets, as clients do.

    >>> frontmatter("---\nname: x\ntools: Read, mcp__a__b\n---\n")["tools"]
    ['Read', 'mcp__a__b']
    """
    found = _FENCE.match(text[:_LONGEST].removeprefix("\ufeff"))
    return _fields(found[1].splitlines()) if found else {}


def _fields(lines: Iterable[str]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    name = ""
    for line in lines:
        if field := _FIELD.fullmatch(line):
            name = field[1]
            fields[name] = _listed(field[2])
        elif name and (item := _ITEM.fullmatch(line)) and isinstance(fields[name], list):
            fields[name].append(_bare(item[1]))
        elif name and (member := _MEMBER.fullmatch(line)):
            fields[name] = _with_member(fields[name], member)
    return fields


def _with_member(value: Any, member: re.Match[str]) -> Any:
    if isinstance(value, list) and value:
        return value
    key = member[1] or member[2] or member[3].strip()
    return {**(value or {}), key: {"true": True, "false": False}.get(_bare(member[4]), _bare(member[4]))}


def _listed(text: str) -> list[str]:
    inner = text.strip()
    if inner.startswith("[") and inner.endswith("]"):
        inner = inner[1:-1]
    return [bare for piece in inner.split(",") if (bare := _bare(piece))]


def _bare(text: str) -> str:
    text = text.strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text


_MOST: Final = 1_000
_ONE: Final[Mapping[str, str]] = {"--type": "type", "--command": "command", "--url": "url", "--timeout": "timeout"}
_LISTS: Final[Mapping[str, str]] = {
    "--args": "args",
    "--arg": "args",
    "--disabled-tools": "disabled_tools",
    "--enabled-tools": "enabled_tools",
}
_PAIRS: Final[Mapping[str, tuple[str, str]]] = {
    "--env": ("env", "="),
    "--header": ("headers", ":"),
    "--headers": ("headers", ":"),
}


def mcp_additions(script: str) -> dict[str, Any]:
    """Parse the ``mcp add`` commands of Crush's script into the form of ``crush.json``; ``$VAR``, ``$(...)`` stay.

    >>> mcp_additions("mcp add gh --type http --url $(curl evil) --disabled-tools a,b")["mcp"]["gh"]["url"]
    '$(curl evil)'
    """
    servers: dict[str, Any] = {}
    for line in _lines(script):
        words = _words(line)
        if words[:2] == ["mcp", "add"] and len(servers) < _MOST:
            name, entry = _entry(words[2:])
            if name:
                servers[name] = entry
    return {"mcp": servers} if servers else {}


def _lines(script: str) -> Iterator[str]:
    return (line.strip() for line in script.replace("\\\r\n", " ").replace("\\\n", " ").splitlines() if "mcp" in line)


def _words(line: str) -> list[str]:
    words = shlex.shlex(_guarded(line), posix=True, punctuation_chars=False)
    words.whitespace_split = True
    try:
        return [word.replace("\x1f", " ") for word in words]
    except ValueError:
        return []


def _guarded(line: str) -> str:
    """Replace blanks inside ``$(...)``, so that it stays one word."""
    depth, guarded = 0, []
    for at, character in enumerate(line):
        depth += character == "(" and (depth > 0 or line[at - 1 : at] == "$")
        guarded.append("\x1f" if depth and character == " " else character)
        depth -= character == ")" and depth > 0
    return "".join(guarded)


def _entry(words: list[str]) -> tuple[str, dict[str, Any]]:
    name = ""
    entry: dict[str, Any] = {}
    rest = iter(words)
    for word in rest:
        flag, equals, value = word.partition("=") if word.startswith("--") else ("", "", word)
        if word == "--":
            if command := list(rest):
                entry["command"], entry["args"] = command[0], command[1:]
        elif flag == "--disabled":
            entry["disabled"] = value != "false"
        elif flag:
            _set(entry, flag, value if equals else next(rest, ""))
        else:
            name = name or value
    return name, entry


def _set(entry: dict[str, Any], flag: str, value: str) -> None:
    if flag in _ONE:
        entry[_ONE[flag]] = value
    elif flag in _LISTS:
        items = [value] if flag == "--arg" else value.split(",")
        entry[_LISTS[flag]] = [*entry.get(_LISTS[flag], ()), *items]
    elif flag in _PAIRS:
        field, separator = _PAIRS[flag]
        key, _, text = value.partition(separator)
        entry.setdefault(field, {})[key.strip()] = text.strip()


# Only the beginning of a Markdown file or script is read.
_MOST_TEXT: Final = 1024 * 1024
_TEXTS: Final[Mapping[str, Callable[[str], dict[str, Any]]]] = {"markdown": frontmatter, "shell": mcp_additions}


class LoadedFile(NamedTuple):
    """A file's value with its document (None for scripts and Markdown), or the problem why it cannot be read."""

    value: Any = None
    document: Document | None = None
    problem: ConfigError | None = None


class FileReader:
    """A reader that loads each file once, however many clients use it."""

    def __init__(self) -> None:
        self._loaded: dict[tuple[Path, str], LoadedFile] = {}

    def load(self, path: Path, format: str) -> LoadedFile:  # noqa: A002 - the word of table.json
        """Return the content of a file, or the problem why it cannot be read."""
        key = (path, format)
        if key not in self._loaded:
            self._loaded[key] = _load(path, format)
        return self._loaded[key]


def _load(path: Path, format: str) -> LoadedFile:  # noqa: A002
    try:
        if format in _TEXTS:
            return LoadedFile(_TEXTS[format](_text(path)))
        document = Document.read(path, format)
    except ConfigError as problem:
        return LoadedFile(problem=problem)
    return LoadedFile(document.value, document)


def _text(path: Path) -> str:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise ConfigError(file=str(path), key="", problem="it is not a regular file", remedy="Give a file.")
        with path.open("rb") as stream:
            return stream.read(_MOST_TEXT).decode("utf-8", "replace")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        problem = f"it cannot be read ({reason})"
        raise ConfigError(file=str(path), key="", problem=problem, remedy="Check the path.") from error

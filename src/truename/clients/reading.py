"""Read the files of clients: JSON, TOML and YAML documents, Markdown frontmatter, Crush's shell script."""

from __future__ import annotations

import re
import shlex
import stat
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from truename.editing import Document
from truename.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

__all__ = ["FrontmatterFields", "LoadedFile", "is_unended", "load_file", "read_frontmatter"]

_LONGEST: Final = 64 * 1024
_FENCE: Final = re.compile(r"---[ \t]*\r?\n(.*?)^(?:---|\.\.\.)[ \t]*\r?(?=\n|\Z)", re.DOTALL | re.MULTILINE)
_FIELD: Final = re.compile(r"([A-Za-z][A-Za-z_-]{0,40}):[ \t]*([^\r\n]*)")
_MEMBER: Final = re.compile(r"""[ \t]+(?:"([^"]+)"|'([^']+)'|([^\s'"#][^:\r\n]*)):[ \t]+([^\r\n]+)""")
_ITEM: Final = re.compile(r"[ \t]*-[ \t]+([^\r\n]+)")
_BEGIN: Final = re.compile(r"---[ \t]*(?:\r?\n|\Z)")
_COMMENT: Final = re.compile(r"""["']|(?:^|(?<=[ \t]))#""")
_BOM: Final = "\ufeff"


class FrontmatterFields(NamedTuple):
    """The fields of a frontmatter, and the offset in the text of each name in them, by its path."""

    fields: dict[str, object]
    places: dict[tuple[str | int, ...], int]


def frontmatter(text: str) -> dict[str, object]:
    r"""Parse the frontmatter of a Markdown file: fields are lists of strings, or objects of strings if indented.

    A value is split at commas, with or without brackets, as clients do.

    >>> frontmatter("---\nname: x\ntools: Read, mcp__a__b\n---\n")["tools"]
    ['Read', 'mcp__a__b']
    """
    return read_frontmatter(text[:_LONGEST]).fields


def is_unended(text: str) -> bool:
    """Return whether a text begins like a frontmatter that no line ends."""
    text = text.removeprefix(_BOM)
    return _BEGIN.match(text) is not None and _FENCE.match(text) is None


def read_frontmatter(text: str) -> FrontmatterFields:
    r"""Parse the frontmatter of a text, however long, with the offsets of the names.

    >>> read_frontmatter("---\ntools: [Read, mcp__a__b]\n---\n").places["tools", 1]
    18
    """
    found = _FENCE.match(text, len(_BOM) if text.startswith(_BOM) else 0)
    fields: dict[str, Any] = {}
    places: dict[tuple[str | int, ...], int] = {}
    name = ""
    for line, start in _lines_of(found[1], found.start(1)) if found else ():
        if field := _FIELD.fullmatch(line):
            name = field[1]
            listed = list(_listed(field[2], start + field.start(2)))
            fields[name] = [bare for bare, _ in listed]
            places.update(((name, number), at) for number, (_, at) in enumerate(listed))
        elif name and (item := _ITEM.fullmatch(line)) and isinstance(fields[name], list):
            bare = _bare(_uncommented(item[1]))
            places[name, len(fields[name])] = start + item.start(1) + item[1].find(bare)
            fields[name].append(bare)
        elif name and (member := _MEMBER.fullmatch(line)):
            key = member[1] or member[2] or member[3].strip()
            places[name, key] = start + line.find(key)
            fields[name] = _with_member(fields[name], key, _bare(_uncommented(member[4])))
    return FrontmatterFields(fields, places)


def _lines_of(text: str, start: int) -> Iterator[tuple[str, int]]:
    for line in text.splitlines(keepends=True):
        yield line.splitlines()[0], start
        start += len(line)


def _with_member(value: Any, key: str, text: str) -> object:
    if isinstance(value, list):
        if value:
            return value
        value = {}
    value[key] = {"true": True, "false": False}.get(text, text)
    return value


def _listed(text: str, start: int) -> Iterator[tuple[str, int]]:
    text = _uncommented(text)
    start += len(text) - len(text.lstrip())
    inner = text.strip()
    if inner.startswith("[") and inner.endswith("]"):
        inner, start = inner[1:-1], start + 1
    for piece in inner.split(","):
        if bare := _bare(piece):
            yield bare, start + piece.find(bare)
        start += len(piece) + 1


def _uncommented(text: str) -> str:
    """Return a value without the comment behind it; a ``#`` in quotes, or inside a word, begins none."""
    quote = ""
    for found in _COMMENT.finditer(text):
        if found[0] not in "'\"":
            if not quote:
                return text[: found.start()]
        elif not quote:
            quote = found[0]
        elif quote == found[0]:
            quote = ""
    return text


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


def mcp_additions(script: str) -> dict[str, object]:
    """Parse the ``mcp add`` commands of Crush's script into the form of ``crush.json``; ``$VAR``, ``$(...)`` stay.

    >>> mcp_additions("mcp add gh --type http --url $(curl evil) --disabled-tools a,b")["mcp"]["gh"]["url"]
    '$(curl evil)'
    """
    servers: dict[str, object] = {}
    lines = script.replace("\\\r\n", " ").replace("\\\n", " ").splitlines()
    for words in (_words(line.strip()) for line in lines if "mcp" in line):
        if words[:2] == ["mcp", "add"] and len(servers) < _MOST:
            name, entry = _entry(words[2:])
            if name:
                servers[name] = entry
    return {"mcp": servers} if servers else {}


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
_TEXTS: Final[Mapping[str, Callable[[str], dict[str, object]]]] = {"markdown": frontmatter, "shell": mcp_additions}


class LoadedFile(NamedTuple):
    """A file's value with its document (None for scripts and Markdown), or the problem why it cannot be read."""

    value: object = None
    document: Document | None = None
    problem: ConfigError | None = None


def load_file(path: Path, format_: str) -> LoadedFile:
    """Return the content of a file, or the problem why it cannot be read."""
    try:
        if format_ in _TEXTS:
            return LoadedFile(_TEXTS[format_](_text(path)))
        document = Document.read(path, format_)
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

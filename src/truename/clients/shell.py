"""Crush's ``crushrc``: the ``mcp add`` lines of a shell script, taken apart as words and never run."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["mcp_additions"]

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
    """Return the script's servers as ``crush.json`` would have them, with ``$VAR`` and ``$(...)`` as they stand.

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
    """Keep the words of ``$(...)`` together: what is inside is one text to us."""
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
            _command(entry, list(rest))
        elif flag == "--disabled":
            entry["disabled"] = value != "false"
        elif flag:
            _set(entry, flag, value if equals else next(rest, ""))
        else:
            name = name or value
    return name, entry


def _command(entry: dict[str, Any], words: list[str]) -> None:
    if words:
        entry["command"], entry["args"] = words[0], words[1:]


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

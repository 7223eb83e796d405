"""Whose configuration a file is that somebody named: by its place and name, else by what is in it."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from truename.clients.entries import entries_of, looks_like_server, reach
from truename.clients.globs import is_glob, like
from truename.clients.table import ConfigFile, config_files, name_files

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["guessed_files", "guessed_format"]

_FORMATS: Final[Mapping[str, str]] = {
    ".toml": "toml",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".md": "markdown",
    ".json": "jsonc",
    ".jsonc": "jsonc",
}
_VARIABLE: Final = re.compile(r"\$\{\w+:-|\}")
_BASE: Final = re.compile(r"(?:~|%\w+%|<\w+>)?/?")
_ANY: Final = ConfigFile(
    client="", title="MCP configuration", dialect="universal", scope="user", format="json", shape="any", paths={},
    key=("mcpServers",), also=((),),
)  # fmt: skip
# Keys that belong to one client's form, and the client; the first that leads to servers tells.
_TELLING: Final = (
    (("amp.mcpServers",), "amp"),
    (("context_servers",), "zed"),
    (("servers",), "vscode"),
    (("settings", "mcp", "servers"), "vscode"),
    (("customizations", "vscode", "mcp", "servers"), "vscode"),
    (("extensions",), "goose"),
    (("projects", "*", "mcpServers"), "claude-code"),
)


def guessed_format(path: Path) -> str:
    """Return the format that a file's name promises; what promises nothing is JSON."""
    if path.name in {"crushrc", ".crushrc"}:
        return "shell"
    return _FORMATS.get(path.suffix.lower(), "jsonc")


def guessed_files(path: Path, value: Any) -> tuple[ConfigFile, ...]:
    """Return the rows that a file belongs to, of one client, and at least one.

    A name that is a client's own counts if what is inside fits; many call their file ``mcp.json``.
    """
    named = _by_name(path)
    fitting = tuple(file for file in named if not file.shape or entries_of(file, value))
    if fitting or (named and value is None):
        return fitting or named[:1]
    return (_by_content(value),)


def _by_name(path: Path) -> tuple[ConfigFile, ...]:
    steps = path.absolute().parts
    rows = [(len(tail), file) for tail, file in _tails() if _ends_with(steps, tail)]
    best = max((length for length, _ in rows), default=0)
    found = [file for length, file in rows if length == best]
    once = {id(file): file for file in found if file.client == found[0].client}
    return tuple(once.values())


def _ends_with(steps: tuple[str, ...], tail: tuple[str, ...]) -> bool:
    return len(steps) >= len(tail) and all(map(like, steps[-len(tail) :], tail))


@cache
def _tails() -> tuple[tuple[tuple[str, ...], ConfigFile], ...]:
    """Return the ends of all paths by which a file can be known, wherever the home or the project lies."""
    found = [(steps, file) for file in (*config_files(), *name_files()) for steps in _steps(file)]
    owners: defaultdict[str, set[str]] = defaultdict(set)
    for steps, file in found:
        owners[steps[-1]].add(file.client)
    own = [(steps[-1:], file) for steps, file in found if len(owners[steps[-1]]) == 1 and not is_glob(steps[-1])]
    return (*found, *own)


def _steps(file: ConfigFile) -> set[tuple[str, ...]]:
    patterns = {pattern for patterns in file.paths.values() for pattern in patterns}
    ends = (_BASE.sub("", _VARIABLE.sub("", pattern), count=1).rpartition("**/")[2] for pattern in patterns)
    paths = {tuple(step for step in end.split("/") if step) for end in ends}
    return {steps for steps in paths if len(steps) > 1 or (steps and not is_glob(steps[0]))}


def _by_content(value: Any) -> ConfigFile:
    for key, client in _TELLING:
        if any(_holds_servers(group) for _, group in reach(value, key)):
            return next(file for file in config_files(client) if file.key == key)
    if isinstance(value, dict):
        if isinstance(value.get("mcpServers"), list):
            return config_files("continue")[0]
        if "mcp_servers" in value:
            return config_files("mistral-vibe" if isinstance(value["mcp_servers"], list) else "codex")[0]
        if "mcpServers" not in value and isinstance(value.get("mcp"), dict):
            return _under_mcp(value["mcp"])
    return _ANY


def _under_mcp(group: dict[str, Any]) -> ConfigFile:
    """Tell apart three clients that have their servers under ``mcp``."""
    if isinstance(group.get("servers"), dict):
        return next(file for file in config_files("vscode") if file.key == ("mcp", "servers"))
    kinds = {
        entry.get("type") for entry in group.values() if isinstance(entry, dict) and isinstance(entry.get("type"), str)
    }
    return config_files("opencode" if kinds & {"local", "remote"} else "crush")[0]


def _holds_servers(group: Any) -> bool:
    return isinstance(group, dict) and any(looks_like_server(raw) for raw in group.values())

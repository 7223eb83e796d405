"""Find every client's files on a machine, with the servers and the tool names in them."""

from __future__ import annotations

import os.path
import re
from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from truename.clients.kept_names import kept_names
from truename.clients.machine import is_glob, like
from truename.clients.reading import FileReader, LoadedFile
from truename.clients.server_entries import entries_of, left_out, looks_like_server, reach, read_entry
from truename.clients.table import ConfigFile, config_files, name_files
from truename.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from truename.clients.kept_names import KeptName
    from truename.clients.machine import Machine
    from truename.config import ServerConfig
    from truename.editing import Document

__all__ = ["FoundFile", "Sighting", "find", "read_source", "root_of_plugin"]

PLUGIN: Final = "plugin.json"
_MARK: Final = ".claude-plugin"
_MOST: Final = 100
_LONGEST: Final = 1_000


def root_of_plugin(file: Path) -> Path:
    """Return the folder of the plugin that a file belongs to: what ``${CLAUDE_PLUGIN_ROOT}`` means in it."""
    return next((folder for folder in file.parents if (folder / _MARK).is_dir()), file.parent)


def files_of_plugin(file: Path, value: Any) -> tuple[Path, ...]:
    """Return the JSON files that stand in place of servers in a ``plugin.json``; only those inside the plugin."""
    named = value.get("mcpServers") if isinstance(value, dict) else None
    texts = named[:_MOST] if isinstance(named, list) else [named]
    root = root_of_plugin(file)
    paths = (_inside(root, text) for text in texts if isinstance(text, str))
    return tuple(path for path in paths if path is not None and os.path.lexists(path))


def _inside(root: Path, text: str) -> Path | None:
    if len(text) > _LONGEST or "\0" in text or not text.endswith(".json"):
        return None
    path = root / os.path.normpath(text)
    return path if path.is_relative_to(root) and ".." not in path.relative_to(root).parts else None


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


_PROJECT: Final = "project"


@dataclass(frozen=True, kw_only=True)
class Sighting:
    """A server in a client's file; ``where`` leads to its entry, ``left_out`` are fields that `server` can't tell."""

    client: str
    scope: str
    path: Path
    where: tuple[str | int, ...]
    server: ServerConfig
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class FoundFile:
    """A file that is there: its servers and kept names, or the ``problem`` for which it can't be read.

    A file that is no document (a shell script, Markdown) has neither document nor problem. One file is found once for
    each row that is about it: for Claude Code's user and local scopes, and for each client that reads ``.mcp.json``.
    """

    file: ConfigFile
    path: Path
    document: Document | None = None
    problem: ConfigError | None = None
    servers: tuple[Sighting, ...] = ()
    kept: tuple[KeptName, ...] = ()


class _FileLookup(NamedTuple):
    found: FoundFile
    value: Any


def find(machine: Machine) -> tuple[FoundFile, ...]:
    """Return what is there of all clients, in the order of the table; never an error, whatever the files hold."""
    reader = FileReader()
    rows = (*config_files(), *name_files())
    looks = (look for file in rows for look in _looks(file, machine, reader))
    return _with_kept(_once(looks))


def read_source(path: Path) -> FoundFile:
    """Return what a file holds that somebody named: of which client it is, its name tells or else its content.

    A file in a form that belongs to nobody alone (``mcpServers``) has a row without a client. One that names no
    servers has a ``problem``, as one that can't be read.
    """
    loaded = FileReader().load(path, guessed_format(path))
    merged = _with_kept(_look(file, path, loaded) for file in guessed_files(path, loaded.value))
    servers = {one.where: one for found in reversed(merged) for one in reversed(found.servers)}
    kept = dict.fromkeys(name for found in merged for name in found.kept)
    problem = loaded.problem
    if problem is None and not servers and not kept:
        remedy = "Give a client's configuration, or a list of tools."
        problem = ConfigError(file=str(path), key="", problem="it names no MCP servers", remedy=remedy)
    return replace(merged[0], problem=problem, servers=tuple(reversed(servers.values())), kept=tuple(kept))


def _once(looks: Iterable[_FileLookup]) -> Iterator[_FileLookup]:
    """Yield each file once for its client: from the home, a project's pattern leads to the user's own file."""
    looks = tuple(looks)
    users = {_same_file(one.found) for one in looks if one.found.file.scope != _PROJECT}
    yield from (one for one in looks if one.found.file.scope != _PROJECT or _same_file(one.found) not in users)


def _same_file(found: FoundFile) -> tuple[str, str, tuple[str, ...], bool]:
    try:
        path = str(found.path.resolve())
    except (OSError, RuntimeError, ValueError):
        path = str(found.path)
    return found.file.client, path, found.file.key, bool(found.file.shape)


def _looks(file: ConfigFile, machine: Machine, reader: FileReader) -> Iterator[_FileLookup]:
    found, unfinished = file.search(machine)
    paths = dict.fromkeys(found)
    for path in found:
        if path.name == PLUGIN:
            paths.update(dict.fromkeys(files_of_plugin(path, reader.load(path, file.format).value)))
    yield from (_look(file, path, reader.load(path, file.format)) for path in paths)
    for folder in unfinished:
        problem = "it has more in it than is searched, so files may be missing"
        remedy = "Name the files that you need."
        fault = ConfigError(file=str(folder), key="", problem=problem, remedy=remedy)
        yield _FileLookup(FoundFile(file=file, path=folder, problem=fault), None)


def _look(file: ConfigFile, path: Path, loaded: LoadedFile) -> _FileLookup:
    servers = tuple(
        Sighting(
            client=file.client,
            scope=file.scope,
            path=path,
            where=where,
            server=read_entry(file.shape, key, raw),
            left_out=left_out(raw),
        )
        for where, key, raw in (entries_of(file, loaded.value) if file.shape else ())
    )
    found = FoundFile(file=file, path=path, document=loaded.document, problem=loaded.problem, servers=servers)
    return _FileLookup(found, loaded.value)


def _with_kept(looks: Iterable[_FileLookup]) -> tuple[FoundFile, ...]:
    """Fill in the kept names: they can be taken apart only when all servers of their client are known."""
    looks = tuple(looks)
    known: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for found, _ in looks:
        known[found.file.client].update(dict.fromkeys(sighting.server.key for sighting in found.servers))
    return tuple(_kept(found, value, known[found.file.client]) for found, value in looks)


def _kept(found: FoundFile, value: Any, servers: Iterable[str]) -> FoundFile:
    if value is None or not (found.file.kept or found.file.entry):
        return found
    entries = [(sighting.server.key, sighting.where) for sighting in found.servers]
    return replace(found, kept=kept_names(found.file, found.path, value, entries, servers))

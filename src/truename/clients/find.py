"""Find the configuration files of all clients on a machine, with the servers and tool names in them."""

from __future__ import annotations

import os.path
import re
from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from truename.clients.kept_names import kept_names
from truename.clients.machine import is_glob, like
from truename.clients.reading import LoadedFile, load_file
from truename.clients.server_entries import entries_of, left_out, looks_like_server, reach, read_entry
from truename.clients.table import ConfigFile, config_files, name_files
from truename.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from truename.clients.kept_names import KeptName
    from truename.clients.machine import Machine
    from truename.config import ServerConfig
    from truename.editing import Document

__all__ = ["ClientServer", "FoundFile", "find", "read_source", "root_of_plugin"]

PLUGIN: Final = "plugin.json"
_MARK: Final = ".claude-plugin"
_MOST: Final = 100
_LONGEST: Final = 1_000


def root_of_plugin(file: Path) -> Path:
    """Return the directory of the plugin that a file belongs to: the value of ``${CLAUDE_PLUGIN_ROOT}``."""
    return next((folder for folder in file.parents if (folder / _MARK).is_dir()), file.parent)


def files_of_plugin(file: Path, value: object) -> tuple[Path, ...]:
    """Return the JSON files to which ``mcpServers`` of a ``plugin.json`` refers; only those inside the plugin."""
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
_SHARED_FORM: Final = ConfigFile(
    client="", title="MCP configuration", dialect="universal", scope="user", format="json", shape="any", paths={},
    key=("mcpServers",), also=((),),
)  # fmt: skip
# Keys that only one client uses, and the client; the first key under which there are servers decides.
_DISTINCTIVE_KEYS: Final = (
    (("amp.mcpServers",), "amp"),
    (("context_servers",), "zed"),
    (("servers",), "vscode"),
    (("settings", "mcp", "servers"), "vscode"),
    (("customizations", "vscode", "mcp", "servers"), "vscode"),
    (("extensions",), "goose"),
    (("projects", "*", "mcpServers"), "claude-code"),
)


def guessed_format(path: Path) -> str:
    """Return the format of a file by its name; JSON with comments if the name does not tell."""
    if path.name in {"crushrc", ".crushrc"}:
        return "shell"
    return _FORMATS.get(path.suffix.lower(), "jsonc")


def guessed_files(path: Path, value: object) -> tuple[ConfigFile, ...]:
    """Return the rows of the table that match a file: at least one, all of one client.

    The name decides if the content fits it, otherwise the content: several clients name their file ``mcp.json``.
    """
    named = _by_name(path)
    fitting = tuple(file for file in named if not file.shape or entries_of(file, value))
    if fitting or (named and value is None):
        return fitting or named[:1]
    return (_by_content(value),)


def _by_name(path: Path) -> tuple[ConfigFile, ...]:
    steps = path.absolute().parts
    rows = [
        (len(tail), file)
        for tail, file in _path_endings()
        if len(steps) >= len(tail) and all(map(like, steps[-len(tail) :], tail))
    ]
    best = max((length for length, _ in rows), default=0)
    found = [file for length, file in rows if length == best]
    once = {id(file): file for file in found if file.client == found[0].client}
    return tuple(once.values())


@cache
def _path_endings() -> tuple[tuple[tuple[str, ...], ConfigFile], ...]:
    """Return the path endings that identify a file, independent of the home and project directories."""
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


def _by_content(value: object) -> ConfigFile:
    for key, client in _DISTINCTIVE_KEYS:
        groups = [group for _, group in reach(value, key) if isinstance(group, dict)]
        if any(looks_like_server(raw) for group in groups for raw in group.values()):
            return next(file for file in config_files(client) if file.key == key)
    if isinstance(value, dict):
        if isinstance(value.get("mcpServers"), list):
            return config_files("continue")[0]
        if "mcp_servers" in value:
            return config_files("mistral-vibe" if isinstance(value["mcp_servers"], list) else "codex")[0]
        if "mcpServers" not in value and isinstance(value.get("mcp"), dict):
            return _by_entries_of_mcp(value["mcp"])
    return _SHARED_FORM


def _by_entries_of_mcp(group: dict[str, object]) -> ConfigFile:
    """Distinguish VS Code, opencode and Crush, which all have their servers under ``mcp``."""
    if isinstance(group.get("servers"), dict):
        return next(file for file in config_files("vscode") if file.key == ("mcp", "servers"))
    kinds = {
        entry.get("type") for entry in group.values() if isinstance(entry, dict) and isinstance(entry.get("type"), str)
    }
    return config_files("opencode" if kinds & {"local", "remote"} else "crush")[0]


_PROJECT: Final = "project"


@dataclass(frozen=True, kw_only=True)
class ClientServer:
    """A server in a client's file: the path to its entry, and the entry's fields that `ServerConfig` cannot hold."""

    client: str
    scope: str
    path: Path
    where: tuple[str | int, ...]
    server: ServerConfig
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class FoundFile:
    """An existing file of a client: its servers and tool names, or the ``problem`` why it cannot be read.

    A shell script or a Markdown file has neither document nor problem. A file is returned once for each row of the
    table that matches it: for Claude Code's user and local scopes, and for each client that reads ``.mcp.json``.
    """

    file: ConfigFile
    path: Path
    document: Document | None = None
    problem: ConfigError | None = None
    servers: tuple[ClientServer, ...] = ()
    kept: tuple[KeptName, ...] = ()


class _FileLookup(NamedTuple):
    found: FoundFile
    value: object


def find(machine: Machine) -> tuple[FoundFile, ...]:
    """Return the existing files of all clients, in the order of the table. Raises nothing, whatever the files hold."""
    # Several clients may use one file: it is read once.
    load = cache(load_file)
    rows = (*config_files(), *name_files())
    lookups = [look for file in rows for look in _read_files(file, machine, load)]
    # In the home directory, the patterns of project files also match the user's own files: these are not a project's.
    users = {_file_identity(one.found) for one in lookups if one.found.file.scope != _PROJECT}
    return _with_kept(
        one for one in lookups if one.found.file.scope != _PROJECT or _file_identity(one.found) not in users
    )


def read_source(path: Path) -> FoundFile:
    """Read one file; its name or else its content tells to which client it belongs.

    A form that several clients share (``mcpServers``) gets a row without a client. A file without servers has a
    ``problem``, like one that cannot be read.
    """
    loaded = load_file(path, guessed_format(path))
    merged = _with_kept(_read_file(file, path, loaded) for file in guessed_files(path, loaded.value))
    servers = {one.where: one for found in reversed(merged) for one in reversed(found.servers)}
    kept = dict.fromkeys(name for found in merged for name in found.kept)
    problem = loaded.problem
    if problem is None and not servers and not kept:
        remedy = "Give a client's configuration, or a list of tools."
        problem = ConfigError(file=str(path), key="", problem="it has no MCP servers", remedy=remedy)
    return replace(merged[0], problem=problem, servers=tuple(reversed(servers.values())), kept=tuple(kept))


def _file_identity(found: FoundFile) -> tuple[str, str, tuple[str, ...], bool]:
    try:
        path = str(found.path.resolve())
    except (OSError, RuntimeError, ValueError):
        path = str(found.path)
    return found.file.client, path, found.file.key, bool(found.file.shape)


def _read_files(file: ConfigFile, machine: Machine, load: Callable[[Path, str], LoadedFile]) -> Iterator[_FileLookup]:
    found, unfinished = file.search(machine)
    paths = dict.fromkeys(found)
    for path in found:
        if path.name == PLUGIN:
            paths.update(dict.fromkeys(files_of_plugin(path, load(path, file.format).value)))
    yield from (_read_file(file, path, load(path, file.format)) for path in paths)
    for folder in unfinished:
        problem = "it has too many files to search, so some may be missing"
        remedy = "Name the files that you need."
        error = ConfigError(file=str(folder), key="", problem=problem, remedy=remedy)
        yield _FileLookup(FoundFile(file=file, path=folder, problem=error), None)


def _read_file(file: ConfigFile, path: Path, loaded: LoadedFile) -> _FileLookup:
    servers = tuple(
        ClientServer(
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


def _with_kept(lookups: Iterable[_FileLookup]) -> tuple[FoundFile, ...]:
    """Add the kept names: parsing them requires the keys of all servers of their client."""
    lookups = tuple(lookups)
    known: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for found, _ in lookups:
        known[found.file.client].update(dict.fromkeys(client_server.server.key for client_server in found.servers))
    merged: list[FoundFile] = []
    for found, value in lookups:
        kept: tuple[KeptName, ...] = ()
        if value is not None and (found.file.kept or found.file.entry):
            entries = [(client_server.server.key, client_server.where) for client_server in found.servers]
            kept = kept_names(found.file, found.path, value, entries, known[found.file.client])
        merged.append(replace(found, kept=kept))
    return tuple(merged)

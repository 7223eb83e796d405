"""What the clients of a machine have: every file that is there, the servers in it, and the tool names that it keeps.

Files are read and nothing else: nothing in them is evaluated, no program is started, no address is asked.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from truename.clients.entries import entries_of
from truename.clients.guess import guessed_files, guessed_format
from truename.clients.keeping import kept_names
from truename.clients.plugins import PLUGIN, files_of_plugin
from truename.clients.reading import Loaded, Reader
from truename.clients.shapes import left_out, read_entry
from truename.clients.table import ConfigFile, config_files, name_files
from truename.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from truename.clients.kept import KeptName
    from truename.clients.machine import Machine
    from truename.config import ServerConfig
    from truename.editing import Document

__all__ = ["Found", "Sighting", "find", "read_source"]


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
class Found:
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


class _Look(NamedTuple):
    found: Found
    value: Any


def find(machine: Machine) -> tuple[Found, ...]:
    """Return what is there of all clients, in the order of the table; never an error, whatever the files hold."""
    reader = Reader()
    rows = (*config_files(), *name_files())
    looks = (look for file in rows for look in _looks(file, machine, reader))
    return _with_kept(_once(looks))


def read_source(path: Path) -> Found:
    """Return what a file holds that somebody named: of which client it is, its name tells or else its content.

    A file in a form that belongs to nobody alone (``mcpServers``) has a row without a client. One that names no
    servers has a ``problem``, as one that can't be read.
    """
    loaded = Reader().load(path, guessed_format(path))
    merged = _with_kept(_look(file, path, loaded) for file in guessed_files(path, loaded.value))
    servers = {one.where: one for found in reversed(merged) for one in reversed(found.servers)}
    kept = dict.fromkeys(name for found in merged for name in found.kept)
    problem = loaded.problem
    if problem is None and not servers and not kept:
        remedy = "Give a client's configuration, or a list of tools."
        problem = ConfigError(file=str(path), key="", problem="it names no MCP servers", remedy=remedy)
    return replace(merged[0], problem=problem, servers=tuple(reversed(servers.values())), kept=tuple(kept))


def _once(looks: Iterable[_Look]) -> Iterator[_Look]:
    """Yield each file once for its client: from the home, a project's pattern leads to the user's own file."""
    looks = tuple(looks)
    users = {_same_file(one.found) for one in looks if one.found.file.scope != _PROJECT}
    yield from (one for one in looks if one.found.file.scope != _PROJECT or _same_file(one.found) not in users)


def _same_file(found: Found) -> tuple[str, str, tuple[str, ...], bool]:
    try:
        path = str(found.path.resolve())
    except (OSError, RuntimeError, ValueError):
        path = str(found.path)
    return found.file.client, path, found.file.key, bool(found.file.shape)


def _looks(file: ConfigFile, machine: Machine, reader: Reader) -> Iterator[_Look]:
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
        yield _Look(Found(file=file, path=folder, problem=fault), None)


def _look(file: ConfigFile, path: Path, loaded: Loaded) -> _Look:
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
    found = Found(file=file, path=path, document=loaded.document, problem=loaded.problem, servers=servers)
    return _Look(found, loaded.value)


def _with_kept(looks: Iterable[_Look]) -> tuple[Found, ...]:
    """Fill in the kept names: they can be taken apart only when all servers of their client are known."""
    looks = tuple(looks)
    known: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for found, _ in looks:
        known[found.file.client].update(dict.fromkeys(sighting.server.key for sighting in found.servers))
    return tuple(_kept(found, value, known[found.file.client]) for found, value in looks)


def _kept(found: Found, value: Any, servers: Iterable[str]) -> Found:
    if value is None or not (found.file.kept or found.file.entry):
        return found
    entries = [(sighting.server.key, sighting.where) for sighting in found.servers]
    return replace(found, kept=kept_names(found.file, found.path, value, entries, servers))

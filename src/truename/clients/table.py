"""Load ``table.json``: where each client keeps its servers and the names of tools.

A row describes one kind of file of one client. `config_files` returns the files that hold servers, `name_files` those
that hold only names (permissions, policies, agents).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal

from truename.clients.machine import is_glob, is_there

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from truename.clients.machine import Machine

__all__ = ["ConfigFile", "ConfigPlace", "config_files", "name_files"]

_SYSTEMS: Final = ("linux", "macos", "windows")
_TEXTS: Final = (
    "client",
    "title",
    "dialect",
    "scope",
    "format",
    "shape",
    "how",
    "reload",
    "confidence",
    "source",
    "date",
)
_NOT_JSON: Final = frozenset({"comment", "trailing-comma"})
_EVERYONES: Final = ("notes", "doubt")
_OTHERS: Final = frozenset({"key", "also", "accepts", "refuses", "paths", "legacy", "entry", "kept", "builtin"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigPlace:
    """A place in a file that holds tool names: their spelling, their effect, and the path of keys to them.

    In ``path``, ``*`` matches any key or item, ``{server}`` a key that is a server's, ``{name}`` a key that is a tool
    name.
    """

    spelling: str
    effect: str
    path: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ConfigFile:
    """A kind of file of one client.

    ``key`` is the path to the servers (``*`` is any key), ``also`` lists alternative paths; ``shape`` is the form of
    an entry ("" if the file has no servers). ``accepts`` and ``refuses`` say how the client treats "comment",
    "trailing-comma" and "bom"; a feature in neither is unknown. The client no longer writes to ``legacy`` files.
    ``entry`` are the places of tool names inside a server's entry, ``kept`` those elsewhere in the file, ``builtin``
    names (or globs) of the client's own tools. A client without files has no ``paths``; ``how`` says what to do.

    >>> [file.scope for file in config_files("codex")]
    ['user', 'user', 'project', 'managed']
    """

    client: str
    title: str
    dialect: str
    scope: str
    format: str
    shape: str = ""
    key: tuple[str, ...] = ()
    also: tuple[tuple[str, ...], ...] = ()
    accepts: frozenset[str] = frozenset()
    refuses: frozenset[str] = frozenset()
    paths: Mapping[str, tuple[str, ...]] = field(hash=False)
    legacy: bool = False
    entry: tuple[ConfigPlace, ...] = ()
    kept: tuple[ConfigPlace, ...] = ()
    builtin: tuple[str, ...] = ()
    how: str = ""
    reload: str = ""
    confidence: Literal["run", "read"] = "read"
    source: str = ""
    date: str = ""
    notes: tuple[str, ...] = ()
    doubt: tuple[str, ...] = ()

    @property
    def doubtful(self) -> frozenset[str]:
        """Extensions of JSON that the client is not known to accept: empty unless it keeps strict JSON.

        >>> sorted(config_files("claude-desktop")[0].doubtful), sorted(config_files("zed")[0].doubtful)
        (['comment', 'trailing-comma'], [])
        """
        return _NOT_JSON - self.accepts - self.refuses if self.format == "json" else frozenset()

    def existing(self, machine: Machine) -> tuple[Path, ...]:
        """Return the existing files of this kind, in the client's order of preference."""
        return self.search(machine)[0]

    def search(self, machine: Machine) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
        """Return the existing files, and the directories that were too large to search completely."""
        searched = [machine.search(pattern) for pattern in self.paths.get(machine.system, ())]
        found = dict.fromkeys(path for paths, _ in searched for path in paths if is_there(path))
        return tuple(found), tuple(dict.fromkeys(folder for _, folders in searched for folder in folders))

    def target(self, machine: Machine) -> Path | None:
        """Return the file to write to: the first existing one, else the path where the client creates it."""
        patterns = self.paths.get(machine.system, ())
        there = self.existing(machine)
        new = (path for pattern in patterns if not is_glob(pattern) for path in machine.expand(pattern))
        return next(iter(there), None) or next(new, None)


def config_files(client: str | None = None) -> tuple[ConfigFile, ...]:
    """Return the kinds of files that hold servers, of all clients or of one; empty for an unknown client."""
    return tuple(file for file in _table()[0] if client in {None, file.client})


def name_files(client: str | None = None) -> tuple[ConfigFile, ...]:
    """Return the kinds of files that hold tool names but no servers."""
    return tuple(file for file in _table()[1] if client in {None, file.client})


@cache
def _table() -> tuple[tuple[ConfigFile, ...], tuple[ConfigFile, ...]]:
    content = json.loads(Path(__file__).with_name("table.json").read_bytes())
    clients = content["clients"]
    servers = tuple(file for client in clients for file in _files(client, client["files"], content))
    names = tuple(file for client in clients for file in _files(client, client.get("names", ()), content))
    return servers, names


def _files(
    client: Mapping[str, Any], rows: Iterable[Mapping[str, Any]], content: Mapping[str, Any]
) -> Iterator[ConfigFile]:
    common = {key: value for key, value in client.items() if key not in {"files", "names"}}
    for row in rows:
        both = {**common, **row, **{key: [*common.get(key, ()), *row.get(key, ())] for key in _EVERYONES}}
        yield _file(both, content)


def _file(row: Mapping[str, Any], content: Mapping[str, Any]) -> ConfigFile:
    if strange := row.keys() - _OTHERS - {*_TEXTS, *_EVERYONES}:
        message = f"{row['client']}: unknown fields {sorted(strange)}"
        raise ValueError(message)
    paths, entry, kept = row["paths"], row.get("entry", ()), row.get("kept", ())
    by_system = paths if isinstance(paths, dict) else dict.fromkeys(_SYSTEMS, paths)
    entry = content["entries"][entry] if isinstance(entry, str) else entry
    kept = content["places"][kept] if isinstance(kept, str) else kept
    simple: dict[str, Any] = {key: row[key] for key in _TEXTS if key in row}
    simple |= {key: tuple(row[key]) for key in (*_EVERYONES, "key", "builtin") if key in row}
    return ConfigFile(
        **simple,
        also=tuple(tuple(key) for key in row.get("also", ())),
        accepts=frozenset(row.get("accepts", ())),
        refuses=frozenset(row.get("refuses", ())),
        paths=MappingProxyType({system: tuple(patterns) for system, patterns in by_system.items()}),
        legacy=row.get("legacy", False),
        entry=tuple(ConfigPlace(spelling="tool", effect=effect, path=tuple(path)) for effect, *path in entry),
        kept=tuple(ConfigPlace(spelling=spelling, effect=effect, path=tuple(path)) for spelling, effect, *path in kept),
    )

"""What the doctor is given: the files of this machine's clients, or sources that are named, told apart by content."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from truename.catalog.read import read_listings
from truename.cli.addresses import is_address, server_at
from truename.cli.beside import names_servers, read_configuration
from truename.cli.failure import UsageFault
from truename.cli.reloading import warn
from truename.clients import Machine, find, read_source
from truename.clients.doctor import Startable
from truename.clients.doctor.file_findings import MASK, dotted
from truename.config.envfile import read_env_file
from truename.conventions import Location
from truename.errors import ConfigError
from truename.files.user import at_home

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from truename.clients import FoundFile
    from truename.config import Config, ServerConfig

__all__ = ["Intake", "Listing", "take_in"]

_STARTS: Final = frozenset({"command", "url", "httpUrl", "serverUrl", "transport"})
_TOML: Final = ".toml"


@dataclass(frozen=True)
class Listing:
    """What a dump says that one server lists."""

    key: str
    tools: Any = field(repr=False)
    path: Path


@dataclass(frozen=True, kw_only=True)
class Intake:
    """All that there is to look at.

    ``files`` belong to clients; ``listings`` are dumps; ``direct`` are servers of Truename's own configurations and
    of addresses that were named, by which no client is meant. ``searched`` tells that the machine was looked through.
    """

    files: tuple[FoundFile, ...] = ()
    listings: tuple[Listing, ...] = ()
    direct: tuple[Startable, ...] = ()
    addresses: tuple[Startable, ...] = ()
    searched: bool = False
    project: str = ""


def take_in(sources: Sequence[str], project: Path | None, environ: Mapping[str, str] | None = None) -> Intake:
    """Read what is named, or find what the clients of this machine have. Starts nothing.

    Raises `UsageFault` for a source that is not there, and `ConfigError` for one that is nothing of the kind.
    """
    machine = Machine.here(project)
    if not sources:
        return Intake(files=find(machine), searched=True, project=str(machine.project))
    files: list[FoundFile] = []
    listings: list[Listing] = []
    direct: list[Startable] = []
    addresses: list[Startable] = []
    for source in sources:
        if is_address(source):
            addresses.append(_address(source))
        elif (path := _there(source)).suffix.lower() == _TOML and _is_our_own(path):
            direct += _configured(path, environ)
        elif (dumped := _dumped(path)) is not None:
            listings += dumped
        else:
            files.append(read_source(path))
    return Intake(
        files=tuple(files),
        listings=tuple(_with_keys_of_their_own(listings)),
        direct=tuple(direct),
        addresses=tuple(addresses),
        project=str(machine.project),
    )


def _there(source: str) -> Path:
    path = at_home(source)
    try:
        found = path.is_file()
    except (OSError, ValueError):
        found = False
    if not found:
        raise UsageFault(
            fact=f"there is no file {source}", advice="Give a dump, a configuration, or a server's http(s) address."
        )
    return path.absolute()


def _address(source: str) -> Startable:
    return Startable(server=server_at(source), path=None, clients=(), of_project=False)


def _is_our_own(path: Path) -> bool:
    try:
        return names_servers(path)
    except ConfigError:
        return False


def _configured(path: Path, environ: Mapping[str, str] | None) -> list[Startable]:
    config = read_configuration(path, environ)
    warn(config.warnings)
    shown = _as_written(path, config, os.environ if environ is None else environ)
    return [
        Startable(
            server=server,
            path=path,
            clients=(),
            of_project=False,
            written=shown.get(server.key) or _masked(server),
            location=Location(file=str(path), key=dotted((server.key,))),
        )
        for server in config.enabled
    ]


def _as_written(path: Path, config: Config, environ: Mapping[str, str]) -> Mapping[str, ServerConfig]:
    """Return the servers with their references left in: what stands behind one may be a secret."""
    try:
        names = [*environ, *(read_env_file(Path(config.settings.env_file)) if config.settings.env_file else ())]
        again = read_configuration(path, {name: f"${{{name}}}" for name in names})
    except (ConfigError, ExceptionGroup):
        return {}
    return {server.key: server for server in again.enabled}


def _masked(server: ServerConfig) -> ServerConfig:
    return replace(server, args=(MASK,) * len(server.args), url=server.url and MASK)


def _dumped(path: Path) -> list[Listing] | None:
    """Return the lists of a dump, or None for a file that is none."""
    try:
        pairs = read_listings(path)
    except ConfigError:
        return None
    if any(isinstance(listing, dict) and listing.keys() & _STARTS for _, listing in pairs):
        return None
    if any(_is_entry(tool) for _, listing in pairs if isinstance(listing, list) for tool in listing):
        return None
    return [Listing(key, listing, path) for key, listing in pairs]


def _is_entry(tool: object) -> bool:
    return isinstance(tool, dict) and bool(tool.keys() & _STARTS) and "inputSchema" not in tool


def _with_keys_of_their_own(listings: Sequence[Listing]) -> Sequence[Listing]:
    """Give the keys that several lists have a number: a client can't have two servers of one key."""
    seen: dict[str, int] = {}
    told: list[Listing] = []
    for one in listings:
        seen[one.key] = number = seen.get(one.key, 0) + 1
        told.append(one if number == 1 else Listing(f"{one.key}_{number}", one.tools, one.path))
    return told

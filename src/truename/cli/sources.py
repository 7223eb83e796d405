"""SOURCE: which files a command is about, dumps or configurations, told apart by what is in them."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from truename.cli.beside import SETTINGS_FILE, configured_beside, names_servers, read_configuration
from truename.cli.consenting import open_found
from truename.cli.failure import UsageFault
from truename.files.user import at_home

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from truename.config import Config

__all__ = [
    "DEFAULTS",
    "Found",
    "configuration",
    "default_source",
    "find",
    "find_unnamed",
    "other_shape",
    "read_aliases",
    "reread",
]

DEFAULTS: Final = (SETTINGS_FILE, ".mcp.json", "mcp.json")
_SHAPES: Final = '{"mcpServers": {...}}, {"servers": {...}}, or [mcpServers.KEY] or [servers.KEY] in TOML'
_SERVERS: Final = re.compile(r'"(mcpServers|servers)"\s*:')
_GZIP: Final = b"\x1f\x8b"
_HEAD: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Found:
    """One source: its path, and what it configures if it is a configuration."""

    path: Path
    config: Config | None


def find(sources: Sequence[str], environ: Mapping[str, str] | None = None) -> tuple[Found, ...]:
    """Return the sources asked for, or the first default one of this directory, which needs consent.

    Raises `UsageFault` when there is none, or no consent, and whatever is wrong with a configuration (`ConfigError`).
    """
    if not sources:
        return (_here(environ),)
    return tuple(_found(at_home(source), environ) for source in sources)


def find_unnamed(path: Path) -> Found:
    """Return a source that no command line named: a configuration is opened with its user's consent alone.

    Raises as `find`.
    """
    if not _configures(path):
        return Found(path, None)
    path = _configuration_at(path)
    return Found(path, open_found(path))


def reread(config: Path, source: str | None) -> Config:
    """Read a configuration again from its file, as `configuration` did for this source; nobody is asked."""
    return configuration(str(config)) if source else open_found(config, may_ask=False)


def default_source() -> Path:
    """Return the source of this directory that commands use where none is named. Raises `UsageFault` for none."""
    path = _default()
    return _configuration_at(path) if _configures(path) else path


def _here(environ: Mapping[str, str] | None) -> Found:
    path = default_source()
    return Found(path, open_found(path, environ) if _configures(path) else None)


def _found(path: Path, environ: Mapping[str, str] | None) -> Found:
    if not _configures(path):
        return Found(path, None)
    path = _configuration_at(path)
    return Found(path, read_configuration(path, environ))


def _configuration_at(path: Path) -> Path:
    is_settings = path.suffix.lower() == ".toml" and not names_servers(path)
    return _servers_for(path) if is_settings else path


def _servers_for(settings: Path) -> Path:
    """Return the configuration that a file of settings alone belongs to."""
    beside = configured_beside(settings, DEFAULTS[1:])
    if settings.name != SETTINGS_FILE:
        raise UsageFault(
            fact=f"{settings} has no servers",
            advice=f"Add [mcpServers.KEY] with a command or url; settings alone have to be in a {SETTINGS_FILE}.",
        )
    if beside is None:
        raise UsageFault(
            fact=f"{settings} has settings but no servers, and there is no {' or '.join(DEFAULTS[1:])} beside it",
            advice="Add [mcpServers.KEY] with a command or url, or put it beside the mcpServers file it is for.",
        )
    return beside


def configuration(source: str | None, environ: Mapping[str, str] | None = None) -> Config:
    """Return the one configuration that a command runs with. Raises `UsageFault` for a dump, and `ConfigError`."""
    (found,) = find([source] if source else [], environ)
    if found.config is None and not (found.path.is_file() and os.access(found.path, os.R_OK)):
        # Its reader says best why it can't be read.
        return read_configuration(found.path, environ)
    if found.config is None:
        raise UsageFault(
            fact=f"{found.path} is a dump of tools, not a configuration of servers",
            advice='Give a file with {"mcpServers": {...}}, or see `truename names` for a dump.',
        )
    return found.config


def read_aliases(pairs: Sequence[str]) -> dict[str, str]:
    """Return the aliases written as integration=short. Raises `UsageFault`."""
    aliases: dict[str, str] = {}
    for pair in pairs:
        integration, equals, alias = pair.partition("=")
        if not equals or not integration or not alias:
            raise UsageFault(fact=f"{pair!r} is not an alias", advice="Write it as in --alias salesforce=sf.")
        aliases[integration] = alias
    return aliases


def _default() -> Path:
    for name in DEFAULTS:
        if Path(name).is_file():
            return Path(name)
    raise UsageFault(
        fact=f"no SOURCE was given, and there is no {', '.join(DEFAULTS[:-1])} or {DEFAULTS[-1]} here",
        advice="Give a configuration (the mcpServers file of any client) or a dump of tools/list answers.",
    )


def _configures(path: Path) -> bool:
    """Tell whether the file is a configuration; what can't be read is left to the reader of dumps to report."""
    if path.suffix.lower() == ".toml":
        return True
    if not path.is_file():
        return False
    try:
        with path.open("rb") as stream:
            head = stream.read(_HEAD)
    except OSError:
        return False
    if head.startswith(_GZIP) or not _SERVERS.search(head.decode("utf-8", "replace")):
        return False
    return _names_servers(path)


def _names_servers(path: Path) -> bool:
    try:
        content = json.loads(path.read_text("utf-8-sig"))
    except (ValueError, RecursionError):
        # Comments are legal in configurations only, and its reader says best what is wrong with one.
        return True
    if not isinstance(content, dict):
        return False
    servers = content.get("mcpServers", content.get("servers"))
    return not isinstance(servers, list) and not (isinstance(servers, dict) and isinstance(servers.get("tools"), list))


def other_shape(path: Path) -> UsageFault | None:
    """Return what to say of a JSON file that configures servers in a shape of its own, or None if it does not."""
    try:
        content = json.loads(path.read_text("utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(content, dict) or not any(_has_entries(value) for value in content.values()):
        return None
    return UsageFault(
        fact=f"{path} looks like a configuration of another shape, and holds no list of tools",
        advice=f"Write its servers as {_SHAPES}.",
    )


def _has_entries(value: Any) -> bool:
    entries = value.values() if isinstance(value, dict) else ()
    return any(isinstance(entry, dict) and entry.keys() & {"command", "url", "httpUrl"} for entry in entries)

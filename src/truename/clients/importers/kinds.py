"""Detect which gateway wrote a configuration, and read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from truename.clients.importers import docker as docker_files
from truename.clients.importers.agentgateway import agentgateway
from truename.clients.importers.contextforge import contextforge
from truename.clients.importers.docker import docker
from truename.clients.importers.litellm import litellm
from truename.clients.importers.reading import read_plain
from truename.clients.importers.shared_form import fastmcp, mcphub, mcpproxy, metamcp, onemcp, ubie
from truename.clients.importers.toolhive import toolhive
from truename.editing import SourceLines
from truename.errors import ConfigError, excerpt

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from truename.clients.importers.reading import ImportedConfig

__all__ = ["KINDS", "detect", "read_peer"]

_MOST_FILES: Final = 1_000
_SUFFIXES: Final = frozenset({".json", ".yaml", ".yml"})
Values = dict[str, object]


@dataclass(frozen=True, kw_only=True)
class GatewayKind:
    """A gateway whose configuration can be imported: its title, its importer, and the test for its files."""

    title: str
    read: Callable[[Values, Path], ImportedConfig]
    is_it: Callable[[Values], bool]


def _entries(values: Values) -> list[Values]:
    servers = values.get("mcpServers")
    return [entry for entry in servers.values() if isinstance(entry, dict)] if isinstance(servers, dict) else []


def _has(*keys: str) -> Callable[[Values], bool]:
    return lambda values: any(key in values for key in keys)


def _any_entry(*keys: str) -> Callable[[Values], bool]:
    return lambda values: any(key in entry for entry in _entries(values) for key in keys)


def _is_agentgateway(values: Values) -> bool:
    mcp = values.get("mcp")
    return "binds" in values or (isinstance(mcp, dict) and "targets" in mcp)


def _is_onemcp(values: Values) -> bool:
    named = "1mcp" in str(values.get("$schema", ""))[:200]
    beside = _has("mcpTemplates", "serverDefaults", "templateSettings")(values)
    return (
        named
        or beside
        or _any_entry("disabledTools", "toolDescriptionOverrides", "envFilter", "inheritParentEnv")(values)
    )


def _is_mcphub(values: Values) -> bool:
    return isinstance(values.get("mcpServers"), dict) and _has("users", "groups", "systemConfig", "bearerKeys")(values)


def _is_metamcp(values: Values) -> bool:
    kinds = [entry.get("type") for entry in _entries(values)]
    return _any_entry("bearerToken")(values) or any(isinstance(kind, str) and kind.isupper() for kind in kinds)


def _is_fastmcp(values: Values) -> bool:
    project = isinstance(values.get("source"), dict)
    return project or _any_entry("transport", "auth", "sse_read_timeout", "keep_alive", "include_tags", "tools")(values)


# Tested in this order: the most distinctive formats first.
KINDS: Final[dict[str, GatewayKind]] = {
    "toolhive": GatewayKind(
        title="ToolHive",
        read=toolhive,
        is_it=lambda values: "transport" in values and ("image" in values or "remote_url" in values),
    ),
    "litellm": GatewayKind(title="LiteLLM", read=litellm, is_it=_has("mcp_servers")),
    "contextforge": GatewayKind(title="ContextForge", read=contextforge, is_it=_has("entities")),
    "agentgateway": GatewayKind(title="agentgateway", read=agentgateway, is_it=_is_agentgateway),
    "docker": GatewayKind(title="Docker MCP Toolkit", read=docker, is_it=_has("registry")),
    "mcpproxy": GatewayKind(
        title="mcpproxy", read=mcpproxy, is_it=lambda values: isinstance(values.get("mcpServers"), list)
    ),
    "ubie": GatewayKind(title="ubie mcp-proxy", read=ubie, is_it=_any_entry("_extensions")),
    "mcphub": GatewayKind(title="mcphub", read=mcphub, is_it=_is_mcphub),
    "1mcp": GatewayKind(title="1mcp", read=onemcp, is_it=_is_onemcp),
    "metamcp": GatewayKind(title="MetaMCP", read=metamcp, is_it=_is_metamcp),
    "fastmcp": GatewayKind(title="FastMCP", read=fastmcp, is_it=_is_fastmcp),
}


def detect(values: Values) -> str | None:
    """Return the kind of gateway that wrote a configuration, None if unknown."""
    return next((name for name, kind in KINDS.items() if kind.is_it(values)), None)


def read_peer(path: Path, kind: str | None = None) -> tuple[ImportedConfig, ...]:
    """Read another gateway's configuration; without ``kind`` it is detected from the keys in the file.

    A directory is Docker's, or holds one file per server (ToolHive's runconfigs). Nothing in a file is evaluated.
    Raises `ConfigError` for a file that cannot be read, or that no known gateway wrote.
    """
    if kind is not None and kind not in KINDS:
        raise _unknown(path, f"{excerpt(kind)} is not a known gateway", f"Use one of: {', '.join(KINDS)}.")
    if not path.is_dir():
        return (_read(path, kind),)
    registry = path / docker_files.NAMES[0]
    if registry.is_file():
        return (_read(registry, kind),)
    files = sorted(file for file in path.iterdir() if file.suffix in _SUFFIXES and file.is_file())[:_MOST_FILES]
    if not files:
        raise _unknown(path, "it is a directory without JSON or YAML files", "Give a configuration file.")
    return tuple(_read(file, kind) for file in files)


def _read(path: Path, kind: str | None) -> ImportedConfig:
    try:
        return _read_kind(path, kind)
    except ConfigError as error:
        raise SourceLines().told(error) from error


def _read_kind(path: Path, kind: str | None) -> ImportedConfig:
    values = read_plain(path)
    found = kind or detect(values)
    if found is None:
        plain = bool(_entries(values))
        problem = "it is a plain mcpServers file" if plain else "no known gateway has this format"
        remedy = "`truename serve` can use it unchanged." if plain else f"Name one: --from {', '.join(KINDS)}."
        raise _unknown(path, problem, remedy)
    return KINDS[found].read(values, path)


def _unknown(path: Path, problem: str, remedy: str) -> ConfigError:
    return ConfigError(file=str(path), key="", problem=problem, remedy=remedy)

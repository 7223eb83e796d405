"""Import Docker's MCP Toolkit: its directory of YAML files (registry, config, tools), or a catalogue of servers."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

from truename.clients.importers.reading import ConfigReading, TakenKeys, read_plain
from truename.config.servers import ServerConfig
from truename.errors import ConfigError, excerpt

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from truename.clients.importers.reading import ImportedConfig

__all__ = ["NAMES", "docker"]

_SETTINGS_FILE: Final = "config.yaml"
_TOOLS_FILE: Final = "tools.yaml"
NAMES: Final = ("registry.yaml", _SETTINGS_FILE, _TOOLS_FILE)
_REGISTRY: Final = "registry"
_ABOUT: Final = (
    *("description", "title", "type", "icon", "upstream", "source", "readme", "toolsUrl", "dateAdded", "metadata"),
    *("prompts", "resources", "ref", "name", "displayName", "longLived", "allowHosts", "disableNetwork"),
)


def docker(values: dict[str, object], path: Path) -> ImportedConfig:
    """Import the enabled servers: each becomes ``docker mcp gateway run``, which uses Docker's own settings.

    In a catalogue, an image becomes ``docker run`` and a remote server its URL. Secrets and profiles stay in Docker's
    own stores.
    """
    reading = ConfigReading("docker", "Docker MCP Toolkit", path)
    top = TakenKeys(values, "")
    for key, entry in top.object(_REGISTRY).items():
        taken = TakenKeys(entry, f"{_REGISTRY}.{key}")
        if endpoint := taken.text("sseEndpoint"):
            reading.server(ServerConfig(key=key, url=endpoint, type="sse"), taken.where("sseEndpoint"))
        elif "remote" in taken:
            reading.server(_remote(key, taken, reading), taken.where("remote"))
        elif "image" in taken:
            reading.server(_contained(key, taken, reading), taken.where("image"))
        else:
            arguments = ("mcp", "gateway", "run", "--servers", key)
            reading.server(ServerConfig(key=key, command="docker", args=arguments), taken.where(""))
        shown = taken.items("tools")
        taken.ignore(*_ABOUT, "tools" if shown else "")
        reading.rest(taken, server=key)
    if path.name == NAMES[0]:
        _beside(path, reading)
    top.ignore("version", "name", "displayName")
    reading.rest(top)
    return reading.result()


def _remote(key: str, taken: TakenKeys, reading: ConfigReading) -> ServerConfig:
    remote = taken.inside("remote")
    kind: Literal["http", "sse"] = "sse" if (remote.text("transport_type") or "") == "sse" else "http"
    headers = MappingProxyType(remote.pairs("headers"))
    url = remote.text("url") or ""
    reading.rest(remote, server=key)
    # The headers name the variables that they refer to.
    taken.ignore("secrets")
    return ServerConfig(key=key, url=url, headers=headers, type=kind)


def _contained(key: str, taken: TakenKeys, reading: ConfigReading) -> ServerConfig:
    env = dict(_variables(taken))
    volumes = (word for volume in taken.texts("volumes") for word in ("-v", volume))
    names = (word for name in env for word in ("-e", name))
    arguments = ("run", "-i", "--rm", *volumes, *names, taken.text("image") or "", *taken.texts("command"))
    if any("{{" in word for word in (*arguments, *env.values())):
        fact = f"{excerpt(key)} has placeholders that Docker fills in from its config.yaml."
        reading.leave("kept-elsewhere", fact, taken.where("command"), server=key)
    taken.ignore("config")
    return ServerConfig(key=key, command="docker", args=arguments, env=MappingProxyType(env))


def _variables(taken: TakenKeys) -> Iterator[tuple[str, str]]:
    for secret in taken.items("secrets"):
        held = TakenKeys(secret, "")
        if name := held.text("env"):
            yield name, f"${{docker secret:{name}}}"
    for variable in taken.items("env"):
        held = TakenKeys(variable, "")
        if name := held.text("name"):
            yield name, held.text("value") or ""


def _beside(path: Path, reading: ConfigReading) -> None:
    """Report the files beside the registry: enabled tools (tools.yaml) and settings of servers (config.yaml)."""
    tools_file, config_file = path.with_name(_TOOLS_FILE), path.with_name(_SETTINGS_FILE)
    other = reading.beside(tools_file)
    for key, tools in _other(tools_file, other):
        other.filtered(TakenKeys({key: tools}, ""), key, server=key)
    other = reading.beside(config_file)
    for key, _ in _other(config_file, other):
        fact = f"{excerpt(key)} has settings in {config_file.name}, which Docker continues to read."
        other.leave("setting", fact, key, server=key)


def _other(path: Path, reading: ConfigReading) -> list[tuple[str, object]]:
    if not path.is_file():
        return []
    try:
        return [(key, value) for key, value in read_plain(path).items() if isinstance(key, str)]
    except ConfigError as error:
        at = f" at {error.key}" if error.key else ""
        reading.leave("kept-elsewhere", f"{path.name} cannot be read{at}: {error.problem}.", "")
        return []

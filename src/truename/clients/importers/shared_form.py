"""Import gateways that extend the ``mcpServers`` form: FastMCP, mcphub, 1mcp, MetaMCP, ubie, mcpproxy."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from truename.clients.importers.reading import ConfigReading, TakenKeys, bearer, read_server
from truename.config.servers import ServerConfig
from truename.errors import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from truename.clients.importers.reading import ImportedConfig

__all__ = ["fastmcp", "mcphub", "mcpproxy", "metamcp", "onemcp", "ubie"]

_MILLISECONDS: Final = 0.001
_SERVERS: Final = "mcpServers"
_ELSEWHERE: Final = {"oauth": "kept-elsewhere"}


def fastmcp(values: dict[str, object], path: Path) -> ImportedConfig:
    """Import FastMCP's MCPConfig (``transport``, ``auth``, renames in ``tools``), or a fastmcp.json project."""
    reading = ConfigReading("fastmcp", "FastMCP", path)
    if "source" in values and _SERVERS not in values:
        # A project is one server, which FastMCP itself runs.
        arguments = ("run", str(path.absolute()), "--transport", "stdio")
        reading.server(ServerConfig(key=path.absolute().parent.name, command="fastmcp", args=arguments), "source")
        top = TakenKeys(values, "")
        top.ignore("$schema", "source", "environment")
        reading.rest(top)
        return reading.result()
    servers = values.get(_SERVERS)
    several = isinstance(servers, dict) and len(servers) > 1
    for key, taken in _entries(values, reading):
        auth = taken.text("auth")
        headers = bearer(auth) if auth and auth != "oauth" else {}
        if auth == "oauth":
            fact = f"{excerpt(key)} uses OAuth; its tokens are not in the configuration."
            reading.leave("kept-elsewhere", fact, taken.where("auth"), server=key)
        server = read_server(key, taken, reading, kind="transport", seconds=_MILLISECONDS, headers=headers)
        taken.ignore("description", "icon")
        # Clients of several servers see the server's key in front of each name, also of a new one.
        _transforms(reading, key, taken, prefix=f"{key}_" if several else "")
        reading.filtered(taken, "include_tags", "exclude_tags", server=key)
        _finish(reading, key, taken, server)
    return reading.result()


def mcphub(values: dict[str, object], path: Path) -> ImportedConfig:
    """Import mcphub's ``mcp_settings.json``; its users, groups and keys become findings."""
    reading = ConfigReading("mcphub", "mcphub", path, "dollar")
    for key, taken in _entries(
        values,
        reading,
        rules={"users": "access", "groups": "filter", "bearerKeys": "access", "oauthClients": "access"},
    ):
        server = read_server(key, taken, reading)
        options = taken.inside("options")
        timeout = options.number("timeout")
        if server is not None and timeout is not None and server.timeout is None:
            server = replace(server, timeout=timeout * _MILLISECONDS)
        reading.rest(options, server=key)
        _toggles(reading, key, taken, "tools")
        taken.ignore("description")
        _finish(reading, key, taken, server)
    return reading.result()


def onemcp(values: dict[str, object], path: Path) -> ImportedConfig:
    """Import 1mcp's ``mcp.json`` with its defaults for all servers; templates become findings."""
    reading = ConfigReading("1mcp", "1mcp", path, "project")
    defaults = values.get("serverDefaults")
    values = {name: value for name, value in values.items() if name != "serverDefaults"}
    common = defaults if isinstance(defaults, dict) else {}
    for template in TakenKeys(values, "").object("mcpTemplates"):
        fact = f"Template {excerpt(template)} needs a client's context, which Truename does not have."
        reading.leave("server", fact, f"mcpTemplates.{template}", server=template)
    for key, taken in _entries(values, reading, ignored=("mcpTemplates", "version"), common=common):
        filled = taken.text("disabled")
        if filled is not None:
            fact = f"{excerpt(key)} is enabled depending on a client's context; it was imported as disabled."
            reading.leave("setting", fact, taken.where("disabled"), server=key)
        server = read_server(key, taken, reading, seconds=_MILLISECONDS, disabled=filled is not None)
        asked = taken.number("requestTimeout")
        if server is not None:
            listed = taken.texts("env")
            if listed and server.command is not None:
                # An item is NAME=VALUE, or NAME: passed on from the environment.
                pairs = (item.partition("=") for item in listed)
                env = {name: value if equals else f"${{{name}}}" for name, equals, value in pairs}
                server = replace(server, env={**server.env, **env})
            if asked is not None:
                server = replace(server, timeout=asked * _MILLISECONDS)
        reading.filtered(taken, "disabledTools", "tags", server=key)
        reading.descriptions(taken, "toolDescriptionOverrides", server=key)
        _finish(reading, key, taken, server)
    return reading.result()


def metamcp(values: dict[str, object], path: Path) -> ImportedConfig:
    """Import the JSON that MetaMCP's page exports; its namespaces and renames are only in its database."""
    reading = ConfigReading("metamcp", "MetaMCP", path)
    for key, taken in _entries(values, reading):
        token = taken.text("bearerToken")
        server = read_server(key, taken, reading, headers=bearer(token) if token else {})
        taken.ignore("description")
        _finish(reading, key, taken, server)
    fact = "MetaMCP keeps namespaces, disabled tools and overrides of tool names only in its database."
    reading.leave("kept-elsewhere", fact, "")
    return reading.result()


def ubie(values: dict[str, object], path: Path) -> ImportedConfig:
    """Import ubie's mcp-proxy; its lists ``_extensions.tools.allow`` and ``deny`` become findings."""
    reading = ConfigReading("ubie", "ubie mcp-proxy", path)
    for key, taken in _entries(values, reading):
        server = read_server(key, taken, reading)
        extensions = taken.inside("_extensions")
        tools = extensions.inside("tools")
        reading.filtered(tools, "allow", "deny", server=key)
        reading.rest(tools, server=key)
        reading.rest(extensions, server=key)
        _finish(reading, key, taken, server)
    return reading.result()


def mcpproxy(values: dict[str, object], path: Path) -> ImportedConfig:
    """Import mcpproxy-go, whose ``mcpServers`` is a list; quarantined servers are imported as disabled."""
    reading = ConfigReading("mcpproxy", "mcpproxy", path)
    top = TakenKeys(values, "")
    for number, entry in enumerate(top.items(_SERVERS)):
        taken = TakenKeys(entry, f"{_SERVERS}[{number}]")
        key = taken.text("name") or f"server-{number + 1}"
        quarantined = taken.truth("quarantined") is True
        if quarantined:
            fact = f"{excerpt(key)} is quarantined; it was imported as disabled."
            reading.leave("access", fact, taken.where("quarantined"), server=key)
        server = read_server(key, taken, reading, cwd="working_dir", kind="protocol", disabled=quarantined)
        taken.ignore("created", "updated", "created_at", "updated_at")
        reading.filtered(taken, "enabled_tools", "disabled_tools", server=key)
        _finish(reading, key, taken, server)
    reading.rest(top, rules={"api_key": "access", "mcpServers": "server"})
    return reading.result()


def _entries(
    values: dict[str, object],
    reading: ConfigReading,
    *,
    ignored: tuple[str, ...] = (),
    common: dict[str, object] | None = None,
    rules: dict[str, str] | None = None,
) -> Iterator[tuple[str, TakenKeys]]:
    """Yield the entries; then report the other top-level keys."""
    top = TakenKeys(values, "")
    top.ignore("$schema", *ignored)
    for key, entry in top.object(_SERVERS).items():
        where = f"{_SERVERS}.{key}"
        if isinstance(entry, dict):
            yield key, TakenKeys({**(common or {}), **entry}, where)
        else:
            reading.leave("server", f"Server {excerpt(key)} is not an object.", where, server=key)
    reading.rest(top, rules=rules or {})


def _finish(reading: ConfigReading, key: str, taken: TakenKeys, server: ServerConfig | None) -> None:
    if server is not None:
        reading.server(server, taken.where(""))
    reading.rest(taken, server=key, rules=_ELSEWHERE)


def _transforms(reading: ConfigReading, key: str, taken: TakenKeys, *, prefix: str) -> None:
    """Import the renames in FastMCP's ``tools``; other changes of tools become findings."""
    tools = taken.inside("tools")
    for tool in taken.object("tools"):
        change = tools.inside(tool)
        where = tools.where(tool)
        if (name := change.text("name")) and name != tool:
            reading.rename(key, tool, prefix + name, f"{where}.name")
        if change.truth("enabled") is False:
            reading.switched_off(tool, f"{where}.enabled", server=key)
        if change.text("description") is not None:
            reading.description(tool, f"{where}.description", server=key)
        reading.rest(change, server=key)
    reading.rest(tools, server=key)


def _toggles(reading: ConfigReading, key: str, taken: TakenKeys, name: str) -> None:
    """Report mcphub's ``tools``: disabled tools and replaced descriptions."""
    tools = taken.inside(name)
    for tool in taken.object(name):
        change = tools.inside(tool)
        if change.truth("enabled") is False:
            reading.switched_off(tool, tools.where(tool), server=key)
        if change.text("description") is not None:
            reading.description(tool, tools.where(tool), server=key)
        reading.rest(change, server=key)
    reading.rest(tools, server=key)

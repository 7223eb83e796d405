"""Import ToolHive's RunConfig, one per server, as written by ``thv export`` or found in its state directory."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

from truename.clients.importers.reading import ConfigReading, TakenKeys
from truename.config.servers import ServerConfig
from truename.errors import excerpt

if TYPE_CHECKING:
    from pathlib import Path

    from truename.clients.importers.reading import ImportedConfig

__all__ = ["toolhive"]

_RULES: Final = {
    "permission_profile": "access",
    "permission_profile_name_or_path": "access",
    "isolate_network": "access",
    "authz_config": "access",
    "authz_config_path": "access",
    "oidc_config": "access",
    "validating_webhooks": "access",
    "mutating_webhooks": "access",
    "remote_auth_config": "kept-elsewhere",
    "token_exchange_config": "kept-elsewhere",
    "upstream_swap_config": "kept-elsewhere",
    "aws_sts_config": "kept-elsewhere",
    "embedded_auth_server_config": "kept-elsewhere",
}
# Fields about ToolHive's own proxy and containers, which have no meaning in Truename.
_OWN: Final = (
    *(
        "schema_version",
        "base_name",
        "container_name",
        "container_labels",
        "host",
        "port",
        "target_port",
        "target_host",
    ),
    *("proxy_mode", "group", "debug", "transport", "registry_url", "registry_api_url", "registry_server_name"),
    *("mcpserver_generation", "env_file_dir", "ignore_config"),
)


def toolhive(values: dict[str, object], path: Path) -> ImportedConfig:
    """Import a RunConfig: an image over stdio becomes ``docker run``, a remote server its URL.

    An image over HTTP is reached through ToolHive's own proxy, which continues to filter and rename its tools; so its
    filters and renames are not imported.
    """
    reading = ConfigReading("toolhive", "ToolHive", path)
    top = TakenKeys(values, "")
    key = top.text("name") or path.stem
    transport = top.text("transport") or "stdio"
    remote, image = top.text("remote_url"), top.text("image")
    # Secrets ("NAME,target=VARIABLE") are in ToolHive's own store: each becomes a variable that the user has to set.
    secrets = (secret.partition(",target=") for secret in top.texts("secrets"))
    variables = [target or name for name, _, target in secrets]
    env = top.pairs("env_vars") | {name: f"${{toolhive secret:{name}}}" for name in variables}
    proxied = remote is None and transport != "stdio"
    if remote is not None:
        reading.server(_remote(key, remote, transport, top, reading), "")
    elif image is None:
        reading.leave("server", f"{excerpt(key)} has neither an image nor a remote_url.", "name", server=key)
    elif proxied:
        reading.server(_proxied(key, transport, top, reading), "")
        top.ignore("cmd_args", "volumes", "permission_profile", "permission_profile_name_or_path", "isolate_network")
        top.ignore("tools_filter", "tools_override", "middleware_configs")
    else:
        reading.server(_contained(key, image, env, top), "")
    if not proxied:
        _tools(key, top, reading)
    top.ignore(*_OWN)
    reading.rest(top, server=key, rules=_RULES)
    return reading.result()


def _tools(key: str, top: TakenKeys, reading: ConfigReading) -> None:
    reading.filtered(top, "tools_filter", server=key)
    overrides = top.inside("tools_override")
    for tool in top.object("tools_override"):
        change = overrides.inside(tool)
        where = overrides.where(tool)
        reading.rename(key, tool, change.text("name"), f"{where}.name")
        if change.text("description") is not None:
            reading.description(tool, f"{where}.description", server=key)
        reading.rest(change, server=key)
    reading.rest(overrides, server=key)


def _contained(key: str, image: str, env: dict[str, str], top: TakenKeys) -> ServerConfig:
    volumes = (word for volume in top.texts("volumes") for word in ("-v", volume))
    names = (word for name in env for word in ("-e", name))
    arguments = ("run", "-i", "--rm", *volumes, *names, image, *top.texts("cmd_args"))
    return ServerConfig(key=key, command="docker", args=arguments, env=MappingProxyType(env))


def _kind(transport: str) -> Literal["http", "sse"]:
    return "sse" if transport == "sse" else "http"


def _remote(key: str, url: str, transport: str, top: TakenKeys, reading: ConfigReading) -> ServerConfig:
    forward = top.inside("header_forward")
    headers = forward.pairs("add_plaintext_headers")
    headers |= {
        name: f"${{toolhive secret:{secret}}}" for name, secret in forward.pairs("add_headers_from_secret").items()
    }
    reading.rest(forward, server=key)
    return ServerConfig(key=key, url=url, headers=MappingProxyType(headers), type=_kind(transport))


def _proxied(key: str, transport: str, top: TakenKeys, reading: ConfigReading) -> ServerConfig:
    port = int(top.number("port") or 0)
    host = top.text("host") or "127.0.0.1"
    path = "sse" if transport == "sse" else "mcp"
    fact = f"{excerpt(key)} is reached through ToolHive, which has to run and continues to filter and rename its tools."
    reading.leave("setting", fact, "image", server=key)
    return ServerConfig(key=key, url=f"http://{host}:{port}/{path}", type=_kind(transport))

"""Import ``mcp_servers`` of LiteLLM's config.yaml."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from truename.clients.importers.reading import ConfigReading, TakenKeys, read_server
from truename.errors import excerpt

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from truename.clients.importers.reading import ImportedConfig

__all__ = ["litellm"]

_ENVIRON: Final = re.compile(r"os\.environ/([A-Za-z_][A-Za-z0-9_]*)")
_TOKENS: Final = ("auth_value", "authentication_token")
_HEADERS: Final = {
    "bearer_token": ("Authorization", "Bearer {}"),
    "basic": ("Authorization", "Basic {}"),
    "token": ("Authorization", "token {}"),
    "authorization": ("Authorization", "{}"),
    "api_key": ("X-API-Key", "{}"),
}
# Run with version 1.109.1: in the file these keys change nothing.
_IGNORED: Final = ("tool_name_to_display_name", "tool_name_to_description")
_RULES: Final = {
    "access_groups": "access",
    "mcp_access_groups": "access",
    "allowed_params": "access",
    "allow_all_keys": "access",
    "available_on_public_internet": "access",
    "pinned_tools": "access",
    "extra_headers": "access",
    "auth_type": "kept-elsewhere",
    "authorization_url": "kept-elsewhere",
    "token_url": "kept-elsewhere",
    "client_id": "kept-elsewhere",
    "client_secret": "kept-elsewhere",
    "scopes": "kept-elsewhere",
}


def litellm(values: dict[str, object], path: Path) -> ImportedConfig:
    """Import servers and aliases; settings about models become findings.

    A URL without a transport uses SSE, LiteLLM's default. Display names and descriptions of tools have an effect in
    LiteLLM's database only; in its file, LiteLLM ignores them, so nobody has seen these names.
    """
    reading = ConfigReading("litellm", "LiteLLM", path)
    top = TakenKeys(values, "")
    for key, entry in top.object("mcp_servers").items():
        where = f"mcp_servers.{key}"
        if isinstance(entry, dict):
            _server(key, TakenKeys(_referring(entry), where), reading)
        else:
            reading.leave("server", f"Server {excerpt(key)} is not an object.", where, server=key)
    settings = top.inside("litellm_settings")
    for alias, key in settings.pairs("mcp_aliases").items():
        reading.alias(key, alias, f"{settings.where('mcp_aliases')}.{alias}")
    reading.rest(settings)
    reading.rest(top, rules={"mcp_tools": "server", "guardrails": "access"})
    return reading.result()


def _server(key: str, taken: TakenKeys, reading: ConfigReading) -> None:
    if spec := taken.text("spec_path"):
        fact = f"{excerpt(key)} is made from an OpenAPI description ({excerpt(spec)}), not an MCP server."
        reading.leave("server", fact, taken.where("spec_path"), server=key)
        return
    server = read_server(key, taken, reading, kind="transport", remote="sse", headers=_sent(taken))
    if alias := taken.text("alias"):
        reading.alias(key, alias, taken.where("alias"))
    for name in _IGNORED:
        if name in taken:
            fact = f"{excerpt(name)} of {excerpt(key)} was not imported: LiteLLM ignores it in its file."
            reading.leave("setting", fact, taken.where(name), server=key)
        taken.ignore(name)
    reading.filtered(taken, "allowed_tools", "disallowed_tools", server=key)
    taken.ignore("server_id", "server_name", "description", "mcp_info", "created_at", "updated_at", "instructions")
    if server is not None:
        reading.server(server, taken.where(""))
    reading.rest(taken, server=key, rules=_RULES)


def _sent(taken: TakenKeys) -> Mapping[str, str]:
    headers = taken.pairs("static_headers")
    kind = taken.text("auth_type")
    token = next((found for name in _TOKENS if (found := taken.text(name))), None)
    if kind in _HEADERS and token is not None:
        name, form = _HEADERS[kind]
        headers[name] = form.format(token)
    elif kind is not None and kind != "none":
        # Truename cannot authenticate this way, so the key is reported with the rest.
        taken.give_back("auth_type")
    return headers


def _referring(value: object) -> object:
    """Replace LiteLLM's ``os.environ/NAME`` by ``${NAME}``, at any depth."""
    if isinstance(value, str):
        return _ENVIRON.sub(r"${\1}", value)
    if isinstance(value, list):
        return [_referring(item) for item in value]
    if isinstance(value, dict):
        return {key: _referring(item) for key, item in value.items()}
    return value

"""Import ContextForge's ``GET /export``; its gateways are MCP servers, its servers are selections of tools."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

from truename.clients.importers.reading import ConfigReading, TakenKeys
from truename.config.servers import ServerConfig
from truename.config.templates import variable_name
from truename.errors import excerpt

if TYPE_CHECKING:
    from pathlib import Path

    from truename.clients.importers.reading import ImportedConfig

__all__ = ["contextforge"]

_TRANSPORTS: Final[dict[str, Literal["http", "sse"]]] = {"SSE": "sse", "STREAMABLEHTTP": "http", "HTTP": "http"}
_WHOLE: Final = {"servers": "filter", "prompts": "setting", "resources": "setting", "roots": "setting"}


def contextforge(values: dict[str, object], path: Path) -> ImportedConfig:
    """Import gateways as servers, and custom names of tools; REST tools and encrypted values become findings.

    An exported "server" is a selection of tools, so it becomes a finding, not a server.
    """
    reading = ConfigReading("contextforge", "ContextForge", path)
    top = TakenKeys(values, "")
    entities = top.inside("entities")
    keys: dict[str, str] = {}
    for number, entry in enumerate(entities.items("gateways")):
        _gateway(TakenKeys(entry, f"entities.gateways[{number}]"), number, reading, keys)
    for number, entry in enumerate(entities.items("tools")):
        _tool(TakenKeys(entry, f"entities.tools[{number}]"), reading, keys)
    for name, rule in _WHOLE.items():
        for number, entry in enumerate(entities.items(name)):
            taken = TakenKeys(entry, f"entities.{name}[{number}]")
            what = excerpt(taken.text("name") or taken.text("uri") or str(number + 1))
            reading.leave(rule, f"{name[:-1].capitalize()} {what} was not imported.", taken.where(""))
    reading.rest(entities)
    top.ignore("version", "exported_at", "exported_by", "source_gateway", "encryption_method", "metadata")
    reading.rest(top)
    return reading.result()


def _gateway(taken: TakenKeys, number: int, reading: ConfigReading, keys: dict[str, str]) -> None:
    key = taken.text("name") or f"gateway-{number + 1}"
    for name in ("id", "slug"):
        keys[taken.text(name) or key] = key
    keys[key] = key
    url = taken.text("url")
    where = taken.where("")
    if url is None:
        reading.leave("server", f"Gateway {excerpt(key)} has no url.", where, server=key)
        return
    transport = (taken.text("transport") or "SSE").upper().replace("_", "")
    off = taken.truth("enabled") is False or taken.truth("is_active") is False
    kind = taken.text("auth_type") or ""
    headers = {"Authorization": f"Bearer ${{{variable_name(key)}_TOKEN}}"} if kind == "bearer" else {}
    if kind or "auth_value" in taken:
        fact = f"The credentials of {excerpt(key)} ({excerpt(kind or 'unknown')}) are encrypted in the export."
        reading.leave("kept-elsewhere", fact, taken.where("auth_value"), server=key)
    taken.ignore("auth_value", "auth_token", "auth_password", "auth_username", "description", "slug", "id", "tags")
    taken.ignore("health_check", "is_active", "enabled", "capabilities", "metadata", "created_at", "updated_at")
    server = ServerConfig(
        key=key,
        url=url,
        type=_TRANSPORTS.get(transport, "http"),
        headers=MappingProxyType(headers),
        disabled=off,
    )
    reading.server(server, where)
    reading.rest(taken, server=key, rules={"passthrough_headers": "access", "ca_certificate": "kept-elsewhere"})


def _tool(taken: TakenKeys, reading: ConfigReading, keys: dict[str, str]) -> None:
    name = taken.text("name") or ""
    original = taken.text("original_name") or taken.text("originalName") or name
    owner = next(
        (keys[found] for word in ("gateway_id", "gateway_slug", "gatewaySlug") if (found := taken.text(word)) in keys),
        None,
    )
    where = taken.where("")
    if owner is None:
        kind = taken.text("integration_type") or "REST"
        fact = f"Tool {excerpt(name)} ({excerpt(kind)[1:-1]}) belongs to no MCP server of the export."
        reading.leave("server", fact, where, tools=(name,))
        return
    reading.rename(owner, original, taken.text("custom_name"), taken.where("custom_name"))
    if taken.truth("enabled") is False:
        reading.switched_off(original, taken.where("enabled"), server=owner)

"""agentgateway: targets of MCP backends, at the top of its config.yaml or deep in its binds."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

from truename.clients.importers.reading import ConfigReading, TakenKeys
from truename.config.servers import ServerConfig
from truename.errors import excerpt

if TYPE_CHECKING:
    from pathlib import Path

    from truename.clients.importers.reading import ImportedConfig

__all__ = ["agentgateway"]

_REMOTE: Final[dict[str, Literal["http", "sse"]]] = {"mcp": "http", "sse": "sse"}
_DEFAULT_PATHS: Final = {"mcp": "/mcp", "sse": "/sse"}


def agentgateway(values: dict[str, object], path: Path) -> ImportedConfig:
    """Import each target as a server; CEL rules and policies become findings.

    CEL expressions are code, so tool names in them are not extracted: each expression is reported as it is.
    """
    reading = ConfigReading("agentgateway", "agentgateway", path, "literal")
    top = TakenKeys(values, "")
    _backend(top.inside("mcp"), reading)
    for where, bind in _each_of(values, "binds", ""):
        for place, listener in _each_of(bind, "listeners", where):
            for at, route in _each_of(listener, "routes", place):
                _route(route, at, reading)
            _outside(listener, place, reading, "routes", "name", "protocol")
        _outside(bind, where, reading, "listeners", "port")
    top.ignore("binds")
    reading.rest(top)
    return reading.result()


def _outside(value: object, where: str, reading: ConfigReading, *known: str) -> None:
    taken = TakenKeys(value, where)
    _policies(taken.inside("policies"), reading)
    taken.ignore(*known)
    reading.rest(taken)


def _route(route: object, where: str, reading: ConfigReading) -> None:
    taken = TakenKeys(route, where)
    _policies(taken.inside("policies"), reading)
    for place, backend in _each_of(route, "backends", where):
        held = TakenKeys(backend, place)
        _backend(held.inside("mcp"), reading)
        _policies(held.inside("policies"), reading)
        reading.rest(held)
    taken.ignore("backends", "name", "matches")
    reading.rest(taken)


def _each_of(value: object, name: str, where: str) -> list[tuple[str, object]]:
    found = value.get(name) if isinstance(value, dict) else None
    items = found if isinstance(found, list) else []
    place = f"{where}.{name}" if where else name
    return [(f"{place}[{number}]", item) for number, item in enumerate(items)]


def _backend(backend: TakenKeys, reading: ConfigReading) -> None:
    for number, entry in enumerate(backend.items("targets")):
        _target(TakenKeys(entry, f"{backend.where('targets')}[{number}]"), number, reading)
    _policies(backend.inside("policies"), reading)
    backend.ignore("port", "name", "statefulMode", "prefixMode")
    reading.rest(backend)


def _target(taken: TakenKeys, number: int, reading: ConfigReading) -> None:
    key = taken.text("name") or f"target-{number + 1}"
    server = _local(key, taken, reading) if "stdio" in taken else _remote(key, taken, reading)
    if server is not None:
        reading.server(server, taken.where(""))
    elif "openapi" in taken:
        fact = f"{excerpt(key)} is made from an OpenAPI description, not an MCP server."
        reading.leave("server", fact, taken.where("openapi"), server=key)
        taken.ignore("openapi")
    else:
        fact = f"{excerpt(key)} is a target of an unknown kind."
        reading.leave("server", fact, taken.where(""), server=key)
    _policies(taken.inside("policies"), reading, key)
    reading.rest(taken, server=key)


def _local(key: str, taken: TakenKeys, reading: ConfigReading) -> ServerConfig | None:
    stdio = taken.inside("stdio")
    command = stdio.text("cmd")
    env = MappingProxyType(stdio.pairs("env"))
    args = stdio.texts("args")
    reading.rest(stdio, server=key)
    return None if command is None else ServerConfig(key=key, command=command, args=args, env=env)


def _remote(key: str, taken: TakenKeys, reading: ConfigReading) -> ServerConfig | None:
    for name, kind in _REMOTE.items():
        if name in taken:
            address = taken.inside(name)
            url = _url(address, _DEFAULT_PATHS[name])
            reading.rest(address, server=key)
            return None if url is None else ServerConfig(key=key, url=url, type=kind)
    return None


def _url(address: TakenKeys, default: str) -> str | None:
    """Build a URL: ``host`` may be the whole URL, or only the host beside ``port`` and ``path``."""
    host = address.text("host")
    if host is None or "://" in host:
        return host
    port, path = address.number("port"), address.text("path") or default
    scheme = "https" if port == 443 else "http"
    return f"{scheme}://{host}{f':{int(port)}' if port else ''}/{path.lstrip('/')}"


def _policies(policies: TakenKeys, reading: ConfigReading, server: str = "") -> None:
    """Report each policy, and each authorization rule by itself."""
    for name in ("mcpAuthorization", "authorization"):
        guard = policies.inside(name)
        for number, rule in enumerate(guard.items("rules")):
            text = excerpt(rule if isinstance(rule, str) else str(rule)[:200], 200)
            fact = f"The rule {text} was not imported."
            reading.leave("access", fact, f"{guard.where('rules')}[{number}]", server=server)
        reading.rest(guard, server=server)
    policies.ignore("cors")
    for name in policies.untaken():
        fact = f"The policy {excerpt(name)} was not imported."
        rule = "kept-elsewhere" if name == "backendAuth" else "access"
        reading.leave(rule, fact, policies.where(name), server=server)

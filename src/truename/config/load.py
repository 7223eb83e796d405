"""Reading a configuration file: every fault in it is told at once, with its place and its remedy."""

from __future__ import annotations

import os
from dataclasses import fields as fields_of
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, get_args

from truename import dialects
from truename.config.checks import wrong
from truename.config.faults import Faults, nearest
from truename.config.fields import Fields
from truename.config.model import MEMORY, Config, NamesMode, ServerConfig, Settings
from truename.config.servers import read_servers
from truename.config.text import decode, read_text
from truename.errors import InvalidToolId, UnknownDialect, excerpt
from truename.identity import ToolId
from truename.naming import STYLES

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["load", "parse"]

_SERVERS: Final = ("mcpServers", "servers")
_SECTION: Final = "truename"
_KNOWN: Final = frozenset(field.name for field in fields_of(Settings))


def load(path: Path | str, environ: Mapping[str, str] | None = None) -> Config:
    """Read a configuration file, JSON or TOML.

    Raises `ConfigError` (file, key, problem, remedy), or an `ExceptionGroup` of them where there are several.
    """
    path = Path(path).expanduser()
    return parse(read_text(path), path, environ)


def parse(text: str, path: Path, environ: Mapping[str, str] | None = None) -> Config:
    """Read a configuration's text, JSON if it begins as such; ``path`` is where it belongs and what faults name."""
    environ = os.environ if environ is None else environ
    suffix = path.suffix.lower()
    toml = suffix == ".toml" or (suffix != ".json" and not text.lstrip().startswith(("{", "/")))
    content = decode(text, str(path), toml=toml)
    faults = Faults(str(path))
    base = path.absolute().parent
    servers = _servers(content, base, environ, faults)
    settings = _settings(_section(content, faults, toml=toml), base, environ, faults)
    faults.raise_any()
    return Config(path=path.absolute(), servers=servers, settings=settings)


def _servers(
    content: Mapping[str, Any], base: Path, environ: Mapping[str, str], faults: Faults
) -> tuple[ServerConfig, ...]:
    found = [name for name in _SERVERS if name in content]
    if not found:
        faults.add("", "it names no servers", 'Add "mcpServers": {"KEY": {"command": "..."}}.')
    servers: dict[str, ServerConfig] = {}
    for name in found:
        entries = content[name]
        if not isinstance(entries, dict):
            faults.add(name, "it is not an object", "Write one entry a server: KEY: {...}.")
            continue
        for server in read_servers(entries, name, base, environ, faults):
            if server.key in servers:
                faults.add(f"{name}.{server.key}", "it stands under both keys", f"Keep one of {' and '.join(found)}.")
            servers[server.key] = server
    return tuple(servers.values())


def _section(content: Mapping[str, Any], faults: Faults, *, toml: bool) -> dict[str, Any]:
    """Gather the settings: the ``truename`` section, and for TOML the top level too."""
    section = content.get(_SECTION, {})
    if not isinstance(section, dict):
        faults.add(_SECTION, "it is not an object", "Write the settings as an object.")
        section = {}
    if not toml:
        return section
    top = {key: value for key, value in content.items() if key not in {*_SERVERS, _SECTION}}
    for key in top.keys() & section.keys():
        faults.add(key, f"it stands at the top and under {_SECTION}", "Keep one of them.")
    return top | section


def _settings(section: Mapping[str, Any], base: Path, environ: Mapping[str, str], faults: Faults) -> Settings:
    fields = Fields(section, "", environ, faults)
    for key in section:
        if key not in _KNOWN:
            faults.add(excerpt(key)[1:-1], "it is not a setting", nearest(key, _KNOWN))
    given: dict[str, Any] = {
        "style": _style(fields),
        "server_name": _checked("server_name", fields),
        "names": _names(fields),
        "ledger": _ledger(fields.text("ledger"), base),
        "token": _checked("token", fields),
        "call_timeout": fields.number("call_timeout"),
        "startup_timeout": fields.number("startup_timeout"),
        **{name: fields.whole(name) for name in ("max_body", "max_result", "max_tools", "max_sessions", "max_claims")},
    }
    if "aliases" in fields:
        given["aliases"] = _aliases(fields)
    if "overrides" in fields:
        given["overrides"] = _overrides(section["overrides"], environ, faults)
    return Settings(**{name: value for name, value in given.items() if value is not None})


def _style(fields: Fields) -> str | None:
    style = fields.text("style")
    if style is not None and style not in STYLES:
        fields.faults.add("style", f"{excerpt(style)} is not a style", nearest(style, STYLES))
        return None
    return style


def _names(fields: Fields) -> str | None:
    names = fields.text("names")
    if names is not None and names not in get_args(NamesMode):
        fields.faults.add("names", f"{excerpt(names)} is not a choice", nearest(names, get_args(NamesMode)))
        return None
    return names


def _checked(name: str, fields: Fields) -> str | None:
    text = fields.text(name)
    if text is not None and (found := wrong(name, text)):
        fields.faults.add(name, *found)
        return None
    return text


def _aliases(fields: Fields) -> Mapping[str, str]:
    aliases = fields.pairs("aliases")
    for integration, alias in aliases.items():
        if found := wrong("aliases", alias):
            fields.faults.add(f"aliases.{excerpt(integration)[1:-1]}", *found)
    return MappingProxyType(aliases)


def _ledger(text: str | None, base: Path) -> str | None:
    return text if text is None or text == MEMORY else str(base / Path(text).expanduser())


def _overrides(value: object, environ: Mapping[str, str], faults: Faults) -> Mapping[str, Mapping[str, str]]:
    if not isinstance(value, dict):
        faults.add("overrides", "it is not an object", "Write dialect -> tool id -> name.")
        return {}
    fields = Fields(value, "overrides", environ, faults)
    for dialect in value:
        _check_override(dialect, fields)
    return MappingProxyType({dialect: MappingProxyType(fields.pairs(dialect)) for dialect in value})


def _check_override(dialect: str, fields: Fields) -> None:
    try:
        dialects.get(dialect)
        for id in fields.pairs(dialect):
            ToolId.parse(id)
    except UnknownDialect as error:
        problem, _, remedy = str(error).rpartition(". ")
        fields.faults.add(fields.where(dialect), problem, remedy)
    except InvalidToolId as error:
        problem = f"{excerpt(error.text)} is not a tool id: {error.reason}"
        fields.faults.add(fields.where(dialect), problem, "Write integration@version/suite.tool@version.")

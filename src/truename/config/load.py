"""Read a configuration file; all its errors are reported at once, each with its place and what to do."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from truename.config.fields import Fields, read_table
from truename.config.files import ConfigFiles, decode
from truename.config.interpolate import Sources
from truename.config.model import Config
from truename.config.servers import ServerConfig, about_keys, read_servers
from truename.config.settings import SETTINGS, Settings
from truename.errors import ConfigErrors
from truename.files.user import at_home

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["env_file_of", "load", "parse"]

_SERVERS: Final = ("mcpServers", "servers")
_SECTION: Final = "truename"
_ENV_FILE: Final = "env_file"
_ADD: Final = (
    'Add [mcpServers.KEY] with a command or url, or {"mcpServers": {"KEY": {...}}} in JSON; or run `truename init`.'
)
# Tables that `truename lint` and `truename rename` read, so that a project needs only one file.
_ELSEWHERE: Final = ("lint", "migration")

# At the top of a JSON file these have no effect, and an operator would believe that they restrict something.
_GATES: Final[Mapping[str, Callable[[Mapping[str, object]], bool]]] = {
    "policy": lambda table: bool(table.keys() & {"default", "rules"}),
    "metadata": lambda table: any("/" in key for key in table),
    "tools": lambda table: any("/" in key for key in table),
}


def load(path: Path | str, environ: Mapping[str, str] | None = None, files: ConfigFiles | None = None) -> Config:
    """Read a configuration file, JSON or TOML; through ``files``, if they were read before.

    Raises `ConfigError` (file, key, problem, remedy), or an `ExceptionGroup` of them where there are several.
    """
    path = at_home(path)
    files = ConfigFiles() if files is None else files
    return parse(files.text(path), path, environ, files)


def parse(text: str, path: Path, environ: Mapping[str, str] | None = None, files: ConfigFiles | None = None) -> Config:
    """Read a configuration's text, JSON if it begins like JSON; relative paths and errors go by ``path``."""
    environ = os.environ if environ is None else environ
    errors, warnings = ConfigErrors(str(path)), ConfigErrors(str(path))
    content, section, ours = _decoded(text, path, errors)
    base = path.absolute().parent
    # An unreadable env_file is reported alone: without it every reference would be reported as missing.
    env_file = _env_file(section, path, environ)
    if env_file is not None:
        environ = {**(ConfigFiles() if files is None else files).env(env_file), **environ}
    sources = Sources(environ)
    servers = _servers(content, base, sources, errors)
    for name in _SERVERS:
        if isinstance(entries := content.get(name), dict):
            about_keys(entries, name, errors if ours else warnings, ours=ours)
    if not any(not server.disabled for server in servers):
        problem = "all its servers are switched off" if servers else "it has no servers, so there is nothing to serve"
        warnings.add("", problem, _ADD if not servers else "Switch one on, or add one.")
    settings = _settings(section, base, sources, errors)
    errors.raise_any()
    return Config(
        path=path.absolute(), servers=servers, settings=settings, files=sources.files, warnings=warnings.all()
    )


def env_file_of(text: str, path: Path, environ: Mapping[str, str] | None = None) -> Path | None:
    """Return the ``env_file`` of a configuration's text, None if it names none. Raises `ConfigError`."""
    _, section, _ = _decoded(text, path, ConfigErrors(str(path)))
    return _env_file(section, path, os.environ if environ is None else environ)


def _env_file(section: Mapping[str, object], path: Path, environ: Mapping[str, str]) -> Path | None:
    # Its errors are reported when it is read with the rest.
    fields = Fields(section, "", environ, ConfigErrors(str(path)), path.absolute().parent)
    found = SETTINGS[_ENV_FILE].type.read(fields, _ENV_FILE)
    return None if found is None else Path(found)


def _decoded(text: str, path: Path, errors: ConfigErrors) -> tuple[dict[str, Any], dict[str, Any], bool]:
    """Return the content of a file, the settings in it, and whether its form is only ours: TOML."""
    suffix = path.suffix.lower()
    toml = suffix == ".toml" or (suffix != ".json" and not text.lstrip().startswith(("{", "/")))
    content = decode(text, str(path), toml=toml)
    return content, _section(content, errors, toml=toml), toml


def _servers(
    content: Mapping[str, object], base: Path, sources: Sources, errors: ConfigErrors
) -> tuple[ServerConfig, ...]:
    found = [name for name in _SERVERS if name in content]
    if not found:
        errors.add("", "it has no servers", 'Add "mcpServers": {"KEY": {"command": "..."}}.')
    servers: dict[str, ServerConfig] = {}
    for name in found:
        entries = content[name]
        if not isinstance(entries, dict):
            errors.add(name, "it is not an object", "Write one entry a server: KEY: {...}.")
            continue
        for server in read_servers(entries, name, base, sources, errors):
            if server.key in servers:
                errors.add(f"{name}.{server.key}", "it is under both keys", f"Keep one of {' and '.join(found)}.")
            servers[server.key] = server
    return tuple(servers.values())


def _section(content: Mapping[str, object], errors: ConfigErrors, *, toml: bool) -> dict[str, object]:
    """Return the settings: the ``truename`` section, and in TOML the top level too."""
    section = content.get(_SECTION, {})
    if not isinstance(section, dict):
        errors.add(_SECTION, "it is not an object", "Write the settings as an object.")
        section = {}
    if not toml:
        for name, is_meant in _GATES.items():
            stray = content.get(name)
            if isinstance(stray, dict) and is_meant(stray):
                errors.add(
                    name, "settings belong under truename in JSON", f'Write {{"truename": {{"{name}": {{...}}}}}}.'
                )
        return section
    top = {key: value for key, value in content.items() if key not in {*_SERVERS, *_ELSEWHERE, _SECTION}}
    for key in top.keys() & section.keys():
        errors.add(key, f"it is at the top and under {_SECTION}", "Keep one of them.")
    return top | section


def _settings(section: Mapping[str, object], base: Path, environ: Mapping[str, str], errors: ConfigErrors) -> Settings:
    # JSON can write null where TOML leaves a key out.
    return Settings(**read_table(Fields(section, "", environ, errors, base), SETTINGS, accept_null=True))

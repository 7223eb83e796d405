"""truename.toml beside an mcpServers file: settings that apply to it, where its own ``truename`` key says nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from truename.cli.rendering import say, styled
from truename.config import load, parse
from truename.config.digest import SETTINGS_FILE
from truename.config.load import env_file_of
from truename.config.reading import ConfigFiles
from truename.config.text import decode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from truename.config import Config

__all__ = ["SETTINGS_FILE", "configured_beside", "names_servers", "read_configuration", "read_files", "read_variables"]

_SECTION: Final = "truename"
_TOML: Final = ".toml"
_SERVERS: Final = ("mcpServers", "servers")
# Settings alone are no configuration; an empty table makes them one that can be checked.
_NO_SERVERS: Final = "\n[mcpServers]\n"


def names_servers(path: Path, files: ConfigFiles | None = None) -> bool:
    """Tell whether a TOML file configures servers, and not settings alone. Raises `ConfigError`."""
    content = _toml(path, ConfigFiles() if files is None else files)
    return any(name in content for name in _SERVERS)


def configured_beside(settings: Path, names: Sequence[str]) -> Path | None:
    """Return the first of these files in the same directory."""
    return next((path for name in names if (path := settings.with_name(name)).is_file()), None)


def read_configuration(
    path: Path, environ: Mapping[str, str] | None = None, files: ConfigFiles | None = None
) -> Config:
    """Read a configuration, with the settings of a truename.toml beside it; its own settings go before those.

    Raises `ConfigError` and groups of them.
    """
    files = ConfigFiles() if files is None else files
    beside = _settings_file(path, files)
    if beside is None:
        return load(path, environ, files)
    if names_servers(beside, files):
        say(styled("note: ", "yellow"), f"{beside} has servers of its own, so its settings don't apply to {path}.")
        return load(path, environ, files)
    parse(files.text(beside) + _NO_SERVERS, beside, environ, files)
    text = files.text(path)
    content = decode(text, str(path), toml=False)
    section = content.get(_SECTION, {})
    if not isinstance(section, dict):
        return parse(text, path, environ, files)  # which tells what is wrong with it
    content[_SECTION] = _settings(beside, files) | section
    return parse(json.dumps(content), path, environ, files)


def read_files(path: Path, files: ConfigFiles) -> tuple[Path, ...]:
    """Read the files of a configuration: itself, and the settings beside it. Raises `ConfigError`."""
    beside = _settings_file(path, files)
    found = (path,) if beside is None else (path, beside)
    for file in found:
        decode(files.text(file), str(file), toml=file.suffix.lower() == _TOML)
    return found


def read_variables(path: Path, files: ConfigFiles, environ: Mapping[str, str] | None = None) -> None:
    """Read the ``env_file`` that the files of a configuration name, too. Raises `ConfigError` and groups of them."""
    for file in read_files(path, files):
        env_file = env_file_of(files.text(file), file, environ)
        if env_file is not None:
            files.env(env_file)


def _settings_file(path: Path, files: ConfigFiles) -> Path | None:
    beside = path.with_name(SETTINGS_FILE)
    return beside if path.suffix.lower() != _TOML and files.has(beside) else None


def _settings(path: Path, files: ConfigFiles) -> dict[str, Any]:
    content = _toml(path, files)
    section: dict[str, Any] = content.pop(_SECTION, {})
    return content | section


def _toml(path: Path, files: ConfigFiles) -> dict[str, Any]:
    return decode(files.text(path), str(path), toml=True)

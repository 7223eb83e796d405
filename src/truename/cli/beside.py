"""truename.toml beside an mcpServers file: settings that apply to it, where its own ``truename`` key says nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from truename.cli.rendering import say, styled
from truename.config import load, parse
from truename.config.digest import SETTINGS_FILE
from truename.config.text import decode, read_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from truename.config import Config

__all__ = ["SETTINGS_FILE", "configured_beside", "names_servers", "read_configuration"]

_SECTION: Final = "truename"
_SERVERS: Final = ("mcpServers", "servers")
# Settings alone are no configuration; an empty table makes them one that can be checked.
_NO_SERVERS: Final = "\n[mcpServers]\n"


def names_servers(path: Path) -> bool:
    """Tell whether a TOML file configures servers, and not settings alone. Raises `ConfigError`."""
    return any(name in _toml(path) for name in _SERVERS)


def configured_beside(settings: Path, names: Sequence[str]) -> Path | None:
    """Return the first of these files in the same directory."""
    return next((path for name in names if (path := settings.with_name(name)).is_file()), None)


def read_configuration(path: Path, environ: Mapping[str, str] | None = None) -> Config:
    """Read a configuration, with the settings of a truename.toml beside it; its own settings go before those.

    Raises `ConfigError` and groups of them.
    """
    beside = path.with_name(SETTINGS_FILE)
    if path.suffix.lower() == ".toml" or not beside.is_file():
        return load(path, environ)
    if names_servers(beside):
        say(styled("note: ", "yellow"), f"{beside} has servers of its own, so its settings don't apply to {path}.")
        return load(path, environ)
    parse(read_text(beside) + _NO_SERVERS, beside, environ)
    text = read_text(path)
    content = decode(text, str(path), toml=False)
    section = content.get(_SECTION, {})
    if not isinstance(section, dict):
        return parse(text, path, environ)  # which tells what is wrong with it
    content[_SECTION] = _settings(beside) | section
    return parse(json.dumps(content), path, environ)


def _settings(path: Path) -> dict[str, Any]:
    content = _toml(path)
    section: dict[str, Any] = content.pop(_SECTION, {})
    return content | section


def _toml(path: Path) -> dict[str, Any]:
    return decode(read_text(path), str(path), toml=True)

"""Find a project's migration settings from the current directory."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from truename.config import find_convention
from truename.config.files import decode, read_text
from truename.migration import MigrationSettings, read_migration

__all__ = ["clients_here", "settings_here"]

_FILES: Final = (("truename.toml", ()), ("pyproject.toml", ("tool", "truename")))


def settings_here() -> MigrationSettings:
    """Return what the nearest file from here upwards says about migrations.

    Raises `ConfigError` for a file that can't be read, or says what is no setting.
    """
    for directory in (Path.cwd(), *Path.cwd().parents):
        for name, section in _FILES:
            file = directory / name
            table = _table(file, (*section, "migration")) if file.is_file() else None
            if table is not None:
                return read_migration(table, str(file))
    return MigrationSettings()


def clients_here() -> tuple[str, ...]:
    """Return the clients that have to accept every name, by the convention that holds here. Raises as above."""
    found = find_convention(Path())
    return () if found is None else found.convention.clients


def _table(file: Path, section: tuple[str, ...]) -> object:
    value: Any = decode(read_text(file), str(file), toml=True)
    for step in section:
        value = value.get(step) if isinstance(value, dict) else None
    return value

"""Find the settings of the project that contains the current directory."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from truename.config import find_convention
from truename.config.files import decode, read_text
from truename.migration import MigrationSettings, read_migration

__all__ = ["clients_here", "settings_here"]

_FILES: Final = (("truename.toml", ()), ("pyproject.toml", ("tool", "truename")))


def settings_here() -> MigrationSettings:
    """Return the migration settings of the nearest file in this directory or its parents.

    Raises `ConfigError` for a file that cannot be read, and for an unknown setting.
    """
    for directory in (Path.cwd(), *Path.cwd().parents):
        for name, section in _FILES:
            file = directory / name
            table = _table(file, (*section, "migration")) if file.is_file() else None
            if table is not None:
                return read_migration(table, str(file))
    return MigrationSettings()


def clients_here() -> tuple[str, ...]:
    """Return the clients that must accept every name, by the convention of this directory. Raises `ConfigError`."""
    found = find_convention(Path())
    return () if found is None else found.convention.clients


def _table(file: Path, section: tuple[str, ...]) -> object:
    value: Any = decode(read_text(file), str(file), toml=True)
    for step in section:
        value = value.get(step) if isinstance(value, dict) else None
    return value

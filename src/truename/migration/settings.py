"""Read a project's migration settings: the table ``migration`` of truename.toml or pyproject.toml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from truename.errors import ConfigError, MigrationError, excerpt
from truename.migration.protocol_versions import DEFAULT_PATTERN, stated_versions
from truename.migration.rename_survey import HISTORY

__all__ = ["MigrationSettings", "read_migration"]

_KEYS: Final = ("exclude", "control_plane", "record", "protocol")
_PROTOCOL: Final = ("file", "pattern")


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationSettings:
    """The migration settings: excluded files, tools that perform upgrades, decision records, and the protocol version.

    ``exclude`` replaces the default patterns.
    """

    exclude: tuple[str, ...] = HISTORY
    control_plane: tuple[str, ...] = ()
    record: str = ""
    protocol_file: str = "*"
    protocol_pattern: str = DEFAULT_PATTERN


def read_migration(table: object, file: str) -> MigrationSettings:
    """Read the table. Raises `ConfigError` with the key of an unknown or invalid setting.

    >>> read_migration({"protocol": {"file": "docs/*.md"}}, "truename.toml").protocol_file
    'docs/*.md'
    """
    found = _table(table, "migration", _KEYS, file)
    protocol = _table(found.get("protocol", {}), "migration.protocol", _PROTOCOL, file)
    pattern = _text(protocol, "migration.protocol", "pattern", DEFAULT_PATTERN, file)
    try:
        stated_versions("", pattern)
    except MigrationError as error:
        raise ConfigError(
            file=file, key="migration.protocol.pattern", problem=error.problem, remedy=error.remedy
        ) from error
    return MigrationSettings(
        exclude=_texts(found, "exclude", HISTORY, file),
        control_plane=_texts(found, "control_plane", (), file),
        record=_text(found, "migration", "record", "", file),
        protocol_file=_text(protocol, "migration.protocol", "file", "*", file),
        protocol_pattern=pattern,
    )


def _table(value: object, key: str, known: tuple[str, ...], file: str) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise ConfigError(file=file, key=key, problem="it is not a table", remedy=f"Write it with {', '.join(known)}.")
    for name in value:
        if name not in known:
            where = f"{key}.{excerpt(str(name))[1:-1]}"
            raise ConfigError(file=file, key=where, problem="it is not a setting", remedy=f"Use {', '.join(known)}.")
    return value


def _text(table: Mapping[str, object], where: str, key: str, default: str, file: str) -> str:
    value = table.get(key, default)
    if not isinstance(value, str):
        raise ConfigError(file=file, key=f"{where}.{key}", problem="it is not a string", remedy="Write it in quotes.")
    return value


def _texts(table: Mapping[str, object], key: str, default: tuple[str, ...], file: str) -> tuple[str, ...]:
    value = table.get(key, default)
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
        problem, remedy = "it is not a list of strings", 'Write ["...", "..."].'
        raise ConfigError(file=file, key=f"migration.{key}", problem=problem, remedy=remedy)
    return tuple(value)

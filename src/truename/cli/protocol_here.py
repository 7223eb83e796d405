"""The protocol version of a project, as the file states it that the configuration names."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from truename.cli.failure import UsageFault
from truename.cli.migration_settings import settings_here
from truename.errors import ConfigError
from truename.migration import stated

__all__ = ["protocol_here"]

_EVERY: Final = "*"
_MOST_FILES: Final = 1_000
_MOST: Final = 1024 * 1024


def protocol_here() -> str:
    """Return the version that the files of ``migration.protocol.file`` state; "" if that is not set, or none does.

    Raises `ConfigError` for a pattern of files that is none, `UsageFault` where files state several versions.
    """
    settings = settings_here()
    if settings.protocol_file == _EVERY:
        return ""
    files = _files(settings.protocol_file)
    found = {version: file for file in files for version in stated(_text(file), settings.protocol_pattern)}
    if len(found) > 1:
        told = ", ".join(f"{version} ({file})" for version, file in sorted(found.items()))
        raise UsageFault(
            fact=f"the protocol version is stated in several ways: {told}",
            advice="Mend the files, or say --protocol VERSION.",
        )
    return next(iter(found), "")


def _files(pattern: str) -> list[Path]:
    try:
        # What it raises for an absolute or empty pattern depends on the version of Python.
        found = sorted(Path().glob(pattern))
    except (ValueError, NotImplementedError, IndexError) as error:
        problem, remedy = f"it is no pattern of files ({error})", 'Write it as in "docs/protocol.md".'
        raise ConfigError(
            file="truename.toml", key="migration.protocol.file", problem=problem, remedy=remedy
        ) from error
    return [file for file in found if file.is_file()][:_MOST_FILES]


def _text(file: Path) -> str:
    with file.open("rb") as stream:
        return stream.read(_MOST).decode("utf-8", "replace")

"""The file `truename.lock`: replaced as a whole or not at all."""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING, Final

from truename.errors import ConfigError
from truename.files import dress, obstacle, sync_directory, write_new
from truename.migration import is_lock
from truename.migration.lock import decoded_lock, lock_bytes

if TYPE_CHECKING:
    from pathlib import Path

    from truename.migration import Lock

__all__ = ["Before", "write_lock"]

_MODE: Final = 0o644


class Before:
    """A lock as it was found: its bytes (None: there is none), and what it says, unless it is broken."""

    def __init__(self, path: Path) -> None:
        """Read the file. Raises `ConfigError` for one that can't be read, or that is no lock at all."""
        self.path = path
        self.raw = lock_bytes(path) if os.path.lexists(path) else None
        self.lock: Lock | None = None
        self.fault: ConfigError | None = None
        if self.raw is not None:
            try:
                self.lock = decoded_lock(self.raw, str(path))
            except ConfigError as error:
                self.fault = error

    @property
    def is_ours(self) -> bool:
        """Whether the file may be replaced: it was begun as a lock."""
        return self.raw is None or is_lock(self.raw[:4096].decode("utf-8", "replace"))


def write_lock(before: Before, lock: Lock) -> None:
    """Put a lock in the place of the one that was read. Raises `ConfigError`; then nothing was written."""
    path, raw = before.path, lock.text().encode()
    if raw == before.raw:
        return
    found = obstacle(path, before.raw)
    if found is not None:
        raise _fault(path, found.problem, found.remedy or "Nothing was written.")
    temporary = path.with_name(f".{path.name[:100]}.truename-{secrets.token_hex(4)}")
    try:
        write_new(temporary, raw)
        if before.raw is None:
            temporary.chmod(_MODE)
        else:
            dress(temporary, path)
        os.replace(temporary, path)  # noqa: PTH105 - the one step that makes the change, under its own name
    except OSError as error:
        raise _fault(path, f"it can't be written ({error.strerror or error})", "Nothing was changed.") from error
    finally:
        temporary.unlink(missing_ok=True)
    sync_directory(path.parent)


def _fault(path: Path, problem: str, remedy: str) -> ConfigError:
    return ConfigError(file=str(path), key="", problem=problem, remedy=remedy)

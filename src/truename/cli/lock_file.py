"""The file `truename.lock`: read as it is, and replaced as a whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from typing import TYPE_CHECKING, Final

from truename.errors import ConfigError
from truename.files import dress, obstacle, sync_directory, write_new
from truename.migration import MAX_LOCK, Lock, is_lock

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Before", "read_lock", "write_lock"]

_MODE: Final = 0o644


class Before:
    """A lock as it was found: its bytes (None: there is none), and what it says, unless it is broken."""

    def __init__(self, path: Path) -> None:
        """Read the file. Raises `ConfigError` for one that can't be read, or that is no lock at all."""
        self.path = path
        self.raw = _read(path) if os.path.lexists(path) else None
        self.lock: Lock | None = None
        self.fault: ConfigError | None = None
        if self.raw is not None:
            try:
                self.lock = _parsed(self.raw, str(path))
            except ConfigError as error:
                self.fault = error

    @property
    def is_ours(self) -> bool:
        """Whether the file may be replaced: it was begun as a lock."""
        return self.raw is None or is_lock(self.raw[:4096].decode("utf-8", "replace"))


def read_lock(path: Path, called: str = "") -> Lock:
    """Read a lock, by another name if it is ``called`` so. Raises `ConfigError` with the line of what is wrong."""
    return _parsed(_read(path), called or str(path))


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


def _read(path: Path) -> bytes:
    try:
        # Whoever opened a pipe would wait for ever.
        if not stat.S_ISREG(path.stat().st_mode):
            raise _fault(path, "it is no regular file", "Check the path.")
        with path.open("rb") as stream:
            return stream.read(MAX_LOCK + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise _fault(path, f"it can't be read ({reason})", "Check the path.") from error


def _parsed(raw: bytes, called: str) -> Lock:
    try:
        return Lock.parse(raw.decode(), called)
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        problem, remedy = "it is not UTF-8", "Restore the file, or write it anew: `truename lock SOURCE...`."
        raise ConfigError(file=called, key=f"line {line}", problem=problem, remedy=remedy) from error


def _fault(path: Path, problem: str, remedy: str) -> ConfigError:
    return ConfigError(file=str(path), key="", problem=problem, remedy=remedy)

"""The files of which a configuration is made, each read once: those that are judged are those that are used."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from truename.config.envfile import env_bytes, read_env_file
from truename.config.text import read_bytes, text_of
from truename.errors import config_error

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["ConfigFiles"]


class ConfigFiles:
    """Reads files and keeps their bytes; a file is never read a second time.

    With ``regular`` pipes and devices are refused, and not waited for. All methods raise `ConfigError` for a file that
    can't be read.
    """

    def __init__(self, *, regular: bool = False) -> None:
        self._regular = regular
        self._read: dict[Path, bytes | None] = {}
        self._is_sealed = False

    def has(self, path: Path) -> bool:
        """Tell whether there is such a file; one that is there is read."""
        return self._bytes(path, lambda: self._raw(path) if path.is_file() else None) is not None

    def text(self, path: Path) -> str:
        """Return the text of a configuration file."""
        return text_of(self._bytes(path, lambda: self._raw(path)) or b"", path)

    def env(self, path: Path) -> dict[str, str]:
        """Return the variables of an ``env_file``; raises groups of `ConfigError`, too."""
        return read_env_file(path, self._bytes(path, lambda: env_bytes(path)) or b"")

    def seal(self) -> None:
        """Refuse files that were not read so far: `digest` says nothing of them."""
        self._is_sealed = True

    def digest(self, base: Path) -> str:
        """Return the SHA-256 of all files that were read, with their names as seen from a directory."""
        found = hashlib.sha256()
        base = base.absolute()
        for path, raw in sorted(self._read.items()):
            name = str(path.relative_to(base) if path.is_relative_to(base) else path)
            for part in (name.encode("utf-8", "surrogateescape"), b"absent" if raw is None else b"file", raw or b""):
                found.update(len(part).to_bytes(8, "big") + part)
        return f"sha256:{found.hexdigest()}"

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files that are there and were read."""
        return tuple(sorted(path for path, raw in self._read.items() if raw is not None))

    def _raw(self, path: Path) -> bytes:
        return read_bytes(path, regular=self._regular)

    def _bytes(self, path: Path, read: Callable[[], bytes | None]) -> bytes | None:
        key = path.absolute()
        if key not in self._read:
            if self._is_sealed:
                raise config_error(str(path), "", "it changed while it was read", "Run the command again.")
            self._read[key] = read()
        return self._read[key]

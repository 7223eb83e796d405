"""Which text a configuration had: so that a journal can say it, and somebody find it again."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from truename.config.model import Config

__all__ = ["SETTINGS_FILE", "digest_of"]

SETTINGS_FILE: Final = "truename.toml"
"""The file of settings that may stand beside one of servers."""


def digest_of(config: Config) -> str:
    """Return the SHA-256 of the files of a configuration as they are now, by name; "" for one that has none.

    Files that its references name are left out: they hold secrets.
    """
    return " ".join(_digests(config.path)) if config.path is not None else ""


def _digests(path: Path) -> Iterator[str]:
    for file in dict.fromkeys((path, path.with_name(SETTINGS_FILE))):
        with suppress(OSError):
            yield f"{file.name}=sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}"

"""Record, as keyed digests, from which clients' entries each server of a configuration was created.

The configuration has ``${TOKEN}`` where a client's entry has the token itself. While that variable is unset, only these
digests can match the two. They are keyed with a secret of the user, so that tokens cannot be guessed from them.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from typing import TYPE_CHECKING, Any, Final

from truename.config import state_path
from truename.files.private import make_private, read_own, state_directory, write_new

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from truename.config.entries import FoundEntry

__all__ = ["EntryOrigins"]

_KEY: Final = "origins.key"
_KEY_BYTES: Final = 32
_MOST: Final = 1 << 24


class EntryOrigins:
    """A store of the digests of one configuration, by server key."""

    def __init__(self, config: Path, environ: Mapping[str, str] | None = None) -> None:
        self._environ = environ
        self._key = state_directory(environ) / _KEY
        self._file = state_directory(environ) / "origins" / f"{state_path(config, environ).stem}.json"
        self._secret: bytes | None = None
        self._known: Mapping[str, Any] | None = None

    def remember(self, entries: Mapping[str, Iterable[FoundEntry]]) -> None:
        """Replace the stored digests by those of the entries that each server was created from. Raises `OSError`."""
        make_private(self._file.parent, self._environ)
        secret = _read(self._key)
        if len(secret) != _KEY_BYTES:
            secret = secrets.token_bytes(_KEY_BYTES)
            _replace(self._key, secret)
        found = {key: sorted({_digest(secret, one) for one in seen}) for key, seen in entries.items()}
        _replace(self._file, json.dumps(found, indent=1).encode())

    def has(self, key: str, entry: FoundEntry) -> bool:
        """Return whether the server was created from exactly this entry; False if nothing is stored."""
        if self._known is None:
            self._secret, self._known = _read(self._key), _parsed(_read(self._file))
        digests = self._known.get(key)
        return bool(self._secret) and isinstance(digests, list) and _digest(self._secret or b"", entry) in digests


def _digest(secret: bytes, entry: FoundEntry) -> str:
    server = entry.server
    texts = [
        *(entry.client, entry.spelling, str(entry.base or "")),
        *(server.command, list(server.args), server.cwd, server.url),
        *(sorted(server.env.items()), sorted(server.headers.items()), sorted(entry.left_out)),
    ]
    return hmac.new(secret, json.dumps(texts).encode(), hashlib.sha256).hexdigest()


def _read(path: Path) -> bytes:
    try:
        return read_own(path, _MOST)
    except OSError:
        return b""


def _parsed(raw: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(raw)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _replace(path: Path, raw: bytes) -> None:
    new = path.with_name(f"{path.name}.{secrets.token_hex(8)}.new")
    try:
        write_new(new, raw)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)

"""Store secrets encrypted (AES-256-GCM), each bound to its owner and purpose."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os
import secrets
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from truename.errors import ConfigError
from truename.files.private import make_private, read_own, sync_directory, write_new
from truename.storage import Schema, StateLocation, Transaction, import_tables, open_database

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from typing import Self

    from truename.config import Config

__all__ = ["KEY_VARIABLE", "SCHEMA", "Vault", "decrypt", "encrypt", "open_vault", "vault_keys"]

_NONCE: Final = 12


def encrypt(key: AESGCM, plain: bytes, bound: bytes) -> bytes:
    """Encrypt a text with a key and the associated data ``bound``; the result is 28 bytes longer.

    The nonce is random, so one key may encrypt 2**32 times (NIST SP 800-38D section 8.3).

    >>> from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    >>> key = AESGCM(bytes(32))
    >>> decrypt(key, encrypt(key, b"token", b"ann"), b"ann"), decrypt(key, encrypt(key, b"token", b"ann"), b"bob")
    (b'token', None)
    """
    nonce = os.urandom(_NONCE)
    return nonce + key.encrypt(nonce, plain, bound)


def decrypt(key: AESGCM, text: bytes, bound: bytes) -> bytes | None:
    """Decrypt a text; None if it was changed, or encrypted with another key or other associated data."""
    try:
        return key.decrypt(text[:_NONCE], text[_NONCE:], bound)
    except (InvalidTag, ValueError, TypeError):
        return None


KEY_VARIABLE: Final = "TRUENAME_VAULT_KEY"
SCHEMA: Final = Schema(
    "secret",
    (
        (
            """
CREATE TABLE secret (
    issuer TEXT NOT NULL, principal TEXT NOT NULL, key TEXT NOT NULL, sealed BLOB NOT NULL, at INTEGER NOT NULL,
    PRIMARY KEY (issuer, principal)
)
""",
        ),
    ),
)
_KEY: Final = 32
_KEY_FILE: Final = "vault.key"
_LONGEST: Final = 64 * 1024
_MOST: Final = 10_000


def vault_keys(environment: Mapping[str, str], key_file: Path) -> tuple[bytes, ...]:
    """Return the keys of a vault, the one to encrypt with first.

    They come from `KEY_VARIABLE` (32 bytes in base64; older keys follow after commas), else from a file that only its
    owner can read, which is created if missing. Raises `ConfigError`; no error contains a key.
    """
    if KEY_VARIABLE in environment:
        return tuple(_decoded(text, KEY_VARIABLE) for text in environment[KEY_VARIABLE].split(","))
    with suppress(FileExistsError, OSError):
        make_private(key_file.parent)
        write_new(key_file, base64.b64encode(secrets.token_bytes(_KEY)) + b"\n")
        sync_directory(key_file.parent)
    try:
        raw = read_own(key_file, 4_096)
    except OSError as error:
        problem = f"the vault's key is not readable ({error.strerror or error})"
        raise ConfigError(file=str(key_file), key="", problem=problem, remedy="Check the file.") from error
    return tuple(_decoded(line, str(key_file)) for line in raw.decode("ascii", "replace").split())


def open_vault(config: Config) -> Vault:
    """Open the vault of a configuration; one in memory, where nothing is kept. Raises `StoreError`, `ConfigError`."""
    directory = config.keys_path()
    if directory is None:
        return Vault(None, [secrets.token_bytes(_KEY)])
    return Vault(config.state_location(), vault_keys(os.environ, directory / _KEY_FILE), locks=directory)


def _decoded(text: str, where: str) -> bytes:
    with suppress(binascii.Error, ValueError):
        key = base64.b64decode(text.strip(), validate=True)
        if len(key) == _KEY:
            return key
    remedy = "Generate one: python -c 'import base64, os; print(base64.b64encode(os.urandom(32)).decode())'"
    raise ConfigError(file=where, key="", problem="it is not a key of 32 bytes in base64", remedy=remedy)


class Vault:
    """Secrets by issuer and principal, in a database that processes share (in memory without a place).

    ``locks`` is a directory for the locks of processes that renew a secret. All methods raise `StoreError`; ``corrupt``
    also for a secret that no given key opens, or that is another's.

    >>> vault = Vault(None, [bytes(32)])
    >>> vault.put("https://idp.example", "ann", b"token")
    >>> vault.get("https://idp.example", "ann"), vault.get("https://idp.example", "bob")
    (b'token', None)
    """

    def __init__(
        self,
        where: StateLocation | Path | None,
        keys: Sequence[bytes],
        *,
        most: int = _MOST,
        locks: Path | None = None,
    ) -> None:
        self.locks = locks
        self._keys = {hashlib.sha256(b"truename vault" + key).hexdigest()[:16]: AESGCM(key) for key in keys}
        self._most = most
        self._file = open_database(where, SCHEMA, import_former=_import_former)

    @property
    def path(self) -> Path | None:
        """The file of the database, None for memory."""
        return self._file.path

    def get(self, issuer: str, principal: str) -> bytes | None:
        """Return a secret; None if there is none."""
        rows = self._file.rows("SELECT key, sealed FROM secret WHERE issuer = ? AND principal = ?", issuer, principal)
        return self._opened(issuer, principal, *rows[0]) if rows else None

    def put(self, issuer: str, principal: str, secret: bytes) -> None:
        """Store a secret, replacing an earlier one. Raises `StoreError` (``full``) for one too many or too long."""
        with self._file.change() as data:
            self._put(data, issuer, principal, secret)

    def replace(self, issuer: str, principal: str, before: Callable[[bytes], bool], secret: bytes | None) -> bool:
        """Replace or delete a secret if it still is the expected one; return whether it was."""
        with self._file.change() as data:
            query = "SELECT key, sealed FROM secret WHERE issuer = ? AND principal = ?"
            row = data.execute(query, (issuer, principal)).fetchone()
            if row is None or not before(self._opened(issuer, principal, *row)):
                return False
            if secret is None:
                data.execute("DELETE FROM secret WHERE issuer = ? AND principal = ?", (issuer, principal))
            else:
                self._put(data, issuer, principal, secret)
            return True

    def _put(self, data: Transaction, issuer: str, principal: str, secret: bytes) -> None:
        if len(secret) > _LONGEST:
            self._file.refuse(
                f"a secret has {len(secret):,} bytes, more than {_LONGEST:,}", "full", "Store a shorter one."
            )
        name = next(iter(self._keys))
        data.execute("DELETE FROM secret WHERE issuer = ? AND principal = ?", (issuer, principal))
        (count,) = data.execute("SELECT count(*) FROM secret").fetchone()
        if count >= self._most:
            self._file.refuse(f"it already holds {count:,} secrets", "full", "Revoke those that are no longer needed.")
        row = (issuer, principal, name, encrypt(self._keys[name], secret, _bound(issuer, principal)), int(time.time()))
        data.execute("INSERT INTO secret (issuer, principal, key, sealed, at) VALUES (?, ?, ?, ?, ?)", row)

    def rotate(self) -> int:
        """Encrypt all secrets that have an older key with the first one, and return their number.

        The older keys are not needed any more then. All are encrypted anew or none.
        """
        first = next(iter(self._keys))
        query = "SELECT issuer, principal, key, sealed FROM secret WHERE key != ? ORDER BY issuer, principal"
        with self._file.change() as data:
            rows = data.execute(query, (first,)).fetchall()
            for issuer, principal, name, sealed in rows:
                bound = _bound(issuer, principal)
                renewed = encrypt(self._keys[first], self._opened(issuer, principal, name, sealed), bound)
                change = "UPDATE secret SET key = ?, sealed = ? WHERE issuer = ? AND principal = ?"
                data.execute(change, (first, renewed, issuer, principal))
        return len(rows)

    def remove(self, issuer: str, principal: str) -> bool:
        """Delete a secret; return whether it existed."""
        with self._file.change() as data:
            query = "DELETE FROM secret WHERE issuer = ? AND principal = ?"
            return data.execute(query, (issuer, principal)).rowcount > 0

    def entries(self) -> list[tuple[str, str, int]]:
        """Return issuer, principal and time of storage (seconds since 1970) of each secret."""
        return [
            (issuer, principal, at)
            for issuer, principal, at in self._file.rows("SELECT issuer, principal, at FROM secret ORDER BY 1, 2")
        ]

    def close(self) -> None:
        """Close the database."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _opened(self, issuer: str, principal: str, name: str, kept: bytes) -> bytes:
        key = self._keys.get(name)
        if key is None:
            self._file.refuse("a secret is encrypted with an unknown key", "corrupt", "Add the older key.")
        secret = decrypt(key, kept, _bound(issuer, principal))
        if secret is None:
            self._file.refuse("a secret was changed, or belongs to another principal")
        return secret

    def __repr__(self) -> str:
        return f"Vault({str(self._file.path)!r})"


_import_former: Final = partial(import_tables, names={"secret": ("secret",)})


def _bound(issuer: str, principal: str) -> bytes:
    return json.dumps([issuer, principal]).encode()

"""Store secrets encrypted (AES-256-GCM), each bound to its owner and purpose."""

from __future__ import annotations

import json
import logging
import secrets
import time
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

from truename.auth.inbound.static_tokens import LONGEST_SILENCE
from truename.cache import LRUCache
from truename.errors import StoreError
from truename.storage import Schema, StateLocation, Transaction, import_tables, open_database
from truename.storage.sealing import Keyring
from truename.storage.vault_keys import KEY_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path
    from typing import Self

    from truename.config import Config

__all__ = ["SCHEMA", "SHARED_KEYS", "Vault", "open_vault", "open_vault_at"]

log: Final = logging.getLogger("truename.auth")

SHARED_KEYS: Final = "truename:keys"
"""The issuer of keys that gateways of one state share (`Vault.key`)."""

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
_LONGEST: Final = 64 * 1024
_MOST: Final = 10_000
_OTHER_KEY: Final = (
    "Give the gateway the key that it had (TRUENAME_VAULT_KEY: the same on every machine, older keys after a comma). "
    "If it is lost, `truename state rotate --forget-lost` deletes what only that key opens."
)
_LOST: Final = (
    "A key in %s is encrypted with a key that is not here any more, and was made anew: people sign in again, and what "
    "clients were asked is asked again."
)


def open_vault(config: Config, *, checks: bool = True) -> Vault:
    """Open the vault of a configuration; one in memory, where nothing is kept. Raises `StoreError`, `ConfigError`."""
    return open_vault_at(config.state_location(), locks=config.keys_path(), checks=checks)


def open_vault_at(location: StateLocation, *, locks: Path | None = None, checks: bool = True) -> Vault:
    """Open the vault of a state, with the keys that it has. Raises `StoreError` and `ConfigError`.

    A vault that machines share is refused where no given key opens the keys of its gateways, unless ``checks`` is
    False: nobody else could read what is put there.
    """
    keys = [secrets.token_bytes(KEY_BYTES)] if location.is_memory else location.vault_keys()
    vault = Vault(location, keys, locks=locks)
    if checks and location.url is not None:
        try:
            vault.require_key()
        except StoreError:
            vault.close()
            raise
    return vault


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
        self._keys = Keyring(keys)
        self._most = most
        self._file = open_database(where, SCHEMA, import_former=_import_former)
        # How many times something changed: what was read before the last time counts no more.
        self._news = 0
        self._known: LRUCache[tuple[str, str], tuple[int, bytes, str]] = LRUCache(_MOST)

    @property
    def path(self) -> Path | None:
        """The file of the database, None for memory."""
        return self._file.path

    def get(self, issuer: str, principal: str) -> bytes | None:
        """Return a secret; None if there is none."""
        rows = self._file.rows("SELECT key, sealed FROM secret WHERE issuer = ? AND principal = ?", issuer, principal)
        return self._opened(issuer, principal, *rows[0]) if rows else None

    def asks(self, issuer: str, principal: str) -> bool:
        """Return whether `recent` has to ask the database."""
        if self._file.has_news():
            self._news += 1
        known = self._known.get((issuer, principal))
        return known is None or known[0] != self._news

    def recent(self, issuer: str, principal: str) -> bytes | None:
        """Return a secret as far as this process heard: it asks the database only if some secret changed.

        While the database is away, what was read counts for 15 minutes (`LONGEST_SILENCE`), as tokens do.
        """
        place = issuer, principal
        if not self.asks(*place) and (known := self._known.get(place)) is not None:
            if self._file.silence > LONGEST_SILENCE:
                self._file.refuse("it has not answered for too long", "unusable", "Check the server and the network.")
            return self._opened(*place, known[2], known[1])
        news = self._news
        query = "SELECT key, sealed FROM secret WHERE issuer = ? AND principal = ?"
        for key, sealed in self._file.rows(query, *place):
            self._known[place] = news, sealed, key
            return self._opened(*place, key, sealed)
        # One that another gateway stored a moment ago may not have been heard of.
        return None

    @contextmanager
    def _change(self) -> Iterator[Transaction]:
        is_over = False
        try:
            with self._file.change() as data:
                yield data
                is_over = True
        finally:
            # A change that failed before was rolled back, and one whose commit failed may be stored.
            self._news += is_over

    def put(self, issuer: str, principal: str, secret: bytes) -> None:
        """Store a secret, replacing an earlier one. Raises `StoreError` (``full``) for one too many or too long."""
        with self._change() as data:
            self._put(data, issuer, principal, secret)

    def replace(self, issuer: str, principal: str, before: Callable[[bytes], bool], secret: bytes | None) -> bool:
        """Replace or delete a secret if it still is the expected one; return whether it was."""
        with self._change() as data:
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
        data.execute("DELETE FROM secret WHERE issuer = ? AND principal = ?", (issuer, principal))
        (count,) = data.execute("SELECT count(*) FROM secret WHERE issuer != ?", (SHARED_KEYS,)).fetchone()
        if count >= self._most and issuer != SHARED_KEYS:
            self._file.refuse(f"it already holds {count:,} secrets", "full", "Revoke those that are no longer needed.")
        row = (issuer, principal, *self._keys.seal(secret, _bound(issuer, principal)), int(time.time()))
        data.execute("INSERT INTO secret (issuer, principal, key, sealed, at) VALUES (?, ?, ?, ?, ?)", row)

    def rotate(self, *, forget_lost: bool = False) -> int:
        """Encrypt all secrets that have an older key with the first one, and return their number.

        The older keys are not needed any more then. All are encrypted anew or none. With ``forget_lost`` those are
        deleted whose key is not given.
        """
        first = self._keys.first
        query = "SELECT issuer, principal, key, sealed FROM secret WHERE key != ? ORDER BY issuer, principal"
        with self._change() as data:
            count = 0
            for issuer, principal, name, sealed in data.execute(query, (first,)).fetchall():
                if forget_lost and name not in self._keys:
                    data.execute("DELETE FROM secret WHERE issuer = ? AND principal = ?", (issuer, principal))
                    continue
                bound = _bound(issuer, principal)
                renewed = self._keys.seal(self._opened(issuer, principal, name, sealed), bound)
                change = "UPDATE secret SET key = ?, sealed = ? WHERE issuer = ? AND principal = ?"
                data.execute(change, (*renewed, issuer, principal))
                count += 1
        return count

    def count(self) -> int:
        """Return the number of secrets, with whichever key."""
        return int(self._file.rows("SELECT count(*) FROM secret")[0][0])

    def require_key(self) -> None:
        """Raise `StoreError` if the keys that gateways of this state share have a key that is not given."""
        for (name,) in self._file.rows("SELECT DISTINCT key FROM secret WHERE issuer = ?", SHARED_KEYS):
            self._require(name)

    def key(self, name: str, initial: bytes | None = None, *, issuer: str = SHARED_KEYS) -> bytes:
        """Return the key of 32 bytes that all gateways of this state have for a purpose.

        It is made at first use, by one of them: ``initial``, or a random one. In a file, one whose own key is lost is
        replaced: what is under way ends. Gateways that share a server would replace it again and again, so there it is
        refused.
        """
        query = "SELECT key FROM secret WHERE issuer = ? AND principal = ?"
        rows = self._file.rows(query, issuer, name)
        if not rows or (rows[0][0] not in self._keys and self._file.path is not None):
            with self._change() as data:
                row = data.execute(query, (issuer, name)).fetchone()
                if row is not None and row[0] not in self._keys:
                    log.warning(_LOST, self._file.path)
                if row is None or row[0] not in self._keys:
                    self._put(data, issuer, name, initial or secrets.token_bytes(KEY_BYTES))
        known = self.get(issuer, name)
        if known is None or len(known) != KEY_BYTES:
            self._file.refuse("a key that gateways share has another size")
        return known

    def remove(self, issuer: str, principal: str) -> bool:
        """Delete a secret; return whether it existed."""
        with self._change() as data:
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
        self._require(name)
        secret = self._keys.open(name, kept, _bound(issuer, principal))
        if secret is None:
            self._file.refuse("a secret was changed, or belongs to another principal")
        return secret

    def _require(self, name: str) -> None:
        if name not in self._keys:
            self._file.refuse("a secret is encrypted with an unknown key", "corrupt", _OTHER_KEY)

    def __repr__(self) -> str:
        return f"Vault({str(self._file.path)!r})"


_import_former: Final = partial(import_tables, names={"secret": ("secret",)})


def _bound(issuer: str, principal: str) -> bytes:
    return json.dumps([issuer, principal]).encode()

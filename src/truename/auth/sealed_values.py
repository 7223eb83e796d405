"""Seal what clients carry from one gateway to another: any gateway of one state opens it, and accepts it once.

A value is encrypted with a key that all gateways of the state have and no client. It says nothing to whoever carries
it, and is bound to its purpose and to whatever it was made for: for anything else it does not open.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import threading
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from truename.storage import Schema, StateLocation, insert, open_database

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from truename.storage import Database
    from truename.storage.sealing import DerivedKeys

__all__ = ["SCHEMA", "OpenedValue", "SealedValues"]

SCHEMA: Final = Schema(
    "sealed_value",
    (
        (
            "CREATE TABLE sealed_value_used (id BLOB PRIMARY KEY, whose TEXT NOT NULL, until REAL NOT NULL)",
            "CREATE INDEX sealed_value_used_whose ON sealed_value_used (whose)",
            "CREATE INDEX sealed_value_used_until ON sealed_value_used (until)",
        ),
    ),
)
CLOCKS_APART: Final = 3_600.0
"""Seconds by which the clocks of two machines may differ: a used value is remembered for so long after its end."""

_KEY: Final = "sealed values"
_ID: Final = 16
MOST_USED: Final = 20_000
"""How many used values of one principal are remembered; the next ones are refused."""

_USE: Final = insert("sealed_value_used", ("id", "whose", "until"), then="ON CONFLICT (id) DO NOTHING")
_IS_FULL: Final = "SELECT 1 FROM sealed_value_used WHERE whose = ? LIMIT 1 OFFSET ?"


@dataclass(frozen=True, kw_only=True)
class OpenedValue:
    """The content of a value that was sealed for this purpose and place, until when it counts, and its id."""

    content: Any
    until: float
    id: bytes


class SealedValues:
    """The values of one state; without a place they mean something to this object only.

    The database is opened at first need: `open` and `use` wait for it, so call them outside of an event loop's thread.

    >>> values = SealedValues(None)
    >>> values.open()
    >>> text = values.seal("form", ["ann", "weather@1/read@1"], {"asked": 1}, lasts=60)
    >>> opened = values.opened("form", ["ann", "weather@1/read@1"], text)
    >>> opened.content, values.opened("form", ["bob", "weather@1/read@1"], text)
    ({'asked': 1}, None)
    >>> values.use(opened, "ann"), values.use(opened, "ann")
    (True, False)
    """

    def __init__(self, where: StateLocation | Path | None = None, *, clock: Callable[[], float] = time.time) -> None:
        self._location = StateLocation.of(where)
        self._clock = clock
        self._lock = threading.Lock()
        self._keys: DerivedKeys | None = None
        self._database: Database | None = None

    @property
    def is_open(self) -> bool:
        """Whether values can be sealed and opened without waiting."""
        return self._keys is not None

    @property
    def silence(self) -> float:
        """How many seconds ago the database answered last; 0 for a file, and for one that is not open."""
        return 0.0 if self._database is None else self._database.silence

    def open(self) -> None:
        """Open the database, and read the key, or make it. Raises `StoreError` and `ConfigError`."""
        with self._lock:
            if self._keys is None:
                from truename.auth.vault import open_vault_at  # noqa: PLC0415 - cryptography takes 30 ms to load
                from truename.storage.sealing import DerivedKeys  # noqa: PLC0415 - as above

                self._database = self._database or open_database(self._location, SCHEMA)
                with open_vault_at(self._location) as vault:
                    self._keys = DerivedKeys(vault.key(_KEY))

    def seal(self, purpose: str, bound: Sequence[object], content: object, *, lasts: float) -> str:
        """Return a value that counts for ``lasts`` seconds, for this purpose and place; all of it is JSON."""
        id = secrets.token_bytes(_ID)
        plain = _json([self._clock() + lasts, content])
        return _text(id + self._opened_keys.encrypt(id, plain, _json([purpose, *bound])))

    def opened(self, purpose: str, bound: Sequence[object], text: str) -> OpenedValue | None:
        """Return what a value says that counts now; None for every other text, also if it is another's."""
        whole = _bytes(text)
        if whole is None:
            return None
        id, sealed = whole[:_ID], whole[_ID:]
        plain = self._opened_keys.decrypt(id, sealed, _json([purpose, *bound]))
        if plain is None:
            return None
        until, content = json.loads(plain.decode("utf-8", "surrogatepass"))
        return OpenedValue(content=content, until=until, id=id) if self._clock() < until else None

    def derived(self, what: str, value: OpenedValue) -> str:
        """Return a secret of 43 characters that belongs to a value, the same at each gateway of the state."""
        return _text(self._opened_keys.derived(what.encode() + b":" + value.id))

    def mark(self, purpose: str, content: object) -> str:
        """Return 43 characters for a content that is JSON, the same at each gateway of the state.

        Whoever has no key of the state can neither make the mark of a content nor try out which content a mark is of.
        """
        return _text(hmac.digest(self._opened_keys.derived(b"marks"), _json([purpose, content]), "sha256"))

    def is_used(self, value: OpenedValue) -> bool:
        """Return whether a value was used up. Raises `StoreError`."""
        self.open()
        assert self._database is not None  # noqa: S101 - it was opened
        return bool(self._database.rows("SELECT 1 FROM sealed_value_used WHERE id = ?", value.id))

    def use(self, value: OpenedValue, whose: str) -> bool:
        """Use a value up; return False if it was used before, by whichever gateway. Raises `StoreError`.

        ``full`` if this principal used too many. Of two gateways that use one at once, one gets True.
        """
        self.open()
        assert self._database is not None  # noqa: S101 - it was opened
        whose = hashlib.sha256(whose.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        with self._database.change() as data:
            data.execute("DELETE FROM sealed_value_used WHERE until < ?", (self._clock(),))
            if data.execute(_IS_FULL, (whose, MOST_USED - 1)).fetchone() is not None:
                self._database.refuse(f"{MOST_USED:,} answers of one caller are on record", "full", "Try again later.")
            return data.execute(_USE, (value.id, whose, value.until + CLOCKS_APART)).rowcount > 0

    def close(self) -> None:
        """Close the database."""
        with self._lock:
            self._keys = None
            if self._database is not None:
                self._database.close()
                self._database = None

    @property
    def _opened_keys(self) -> DerivedKeys:
        if self._keys is None:
            message = "The values are not open. Call `open` first."
            raise RuntimeError(message)
        return self._keys


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def _text(raw: bytes) -> str:
    return urlsafe_b64encode(raw).decode().rstrip("=")


def _bytes(text: str) -> bytes | None:
    """Return what a text encodes; None if it is not the one text that does."""
    try:
        raw = urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
    except ValueError:
        return None
    return raw if _text(raw) == text else None

"""Encrypt secrets of the state (AES-256-GCM), each bound to its place, with keys that are not in the state."""

from __future__ import annotations

import hashlib
import hmac
import os
from typing import TYPE_CHECKING, Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["DerivedKeys", "Keyring", "decrypt", "encrypt"]

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


class Keyring:
    """The keys of a state's secrets: the first encrypts, and each decrypts. A secret is stored with its key's name.

    >>> ring = Keyring([bytes(32)])
    >>> name, sealed = ring.seal(b"token", b"ann")
    >>> ring.open(name, sealed, b"ann"), ring.open(name, sealed, b"bob"), "another" in ring
    (b'token', None, False)
    """

    def __init__(self, keys: Sequence[bytes]) -> None:
        self._keys = {hashlib.sha256(b"truename vault" + key).hexdigest()[:16]: AESGCM(key) for key in keys}

    @property
    def first(self) -> str:
        """The name of the key that encrypts."""
        return next(iter(self._keys))

    def __contains__(self, name: object) -> bool:
        return name in self._keys

    def seal(self, plain: bytes, bound: bytes) -> tuple[str, bytes]:
        """Encrypt a secret; return the name of the key and the encrypted text."""
        return self.first, encrypt(self._keys[self.first], plain, bound)

    def open(self, name: str, sealed: bytes, bound: bytes) -> bytes | None:
        """Decrypt a secret; None if it was changed, is bound to something else, or has a key that is not here."""
        key = self._keys.get(name)
        return None if key is None else decrypt(key, sealed, bound)


class DerivedKeys:
    """Keys derived from one of 32 bytes, each for one value: there may be more of these than one key may encrypt."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def encrypt(self, id: bytes, plain: bytes, bound: bytes) -> bytes:
        """Encrypt a value under the key of its id."""
        return encrypt(self._of(id), plain, bound)

    def decrypt(self, id: bytes, text: bytes, bound: bytes) -> bytes | None:
        """Decrypt a value; None if it was changed, or has another id or other associated data."""
        return decrypt(self._of(id), text, bound)

    def derived(self, what: bytes) -> bytes:
        """Return another secret of 32 bytes."""
        return hmac.digest(self._key, b"truename secret:" + what, "sha256")

    def _of(self, id: bytes) -> AESGCM:
        return AESGCM(hmac.digest(self._key, b"truename value:" + id, "sha256"))

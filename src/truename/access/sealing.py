"""Sealing: AES-256-GCM under a key, bound to what the sealed thing is for; it opens for nothing else."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from cryptography.exceptions import InvalidTag

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

__all__ = ["sealed", "unsealed"]

_NONCE: Final = 12


def sealed(key: AESGCM, plain: bytes, bound: bytes) -> bytes:
    """Return what only this key opens, and only together with ``bound``; 28 bytes longer than it was.

    The nonce is drawn, so one key may seal 2**32 times (NIST SP 800-38D section 8.3).

    >>> from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    >>> key = AESGCM(bytes(32))
    >>> unsealed(key, sealed(key, b"token", b"ann"), b"ann"), unsealed(key, sealed(key, b"token", b"ann"), b"bob")
    (b'token', None)
    """
    nonce = os.urandom(_NONCE)
    return nonce + key.encrypt(nonce, plain, bound)


def unsealed(key: AESGCM, text: bytes, bound: bytes) -> bytes | None:
    """Return what was sealed; None for what was changed, or was sealed with another key or for something else."""
    try:
        return key.decrypt(text[:_NONCE], text[_NONCE:], bound)
    except (InvalidTag, ValueError, TypeError):
        return None

"""Proof that whoever exchanges a code is who asked for it (RFC 7636): S256, and nothing that is weaker."""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from typing import Final

__all__ = ["S256", "challenge_of"]

S256: Final = "S256"


def challenge_of(verifier: str) -> str:
    """Return the challenge of a verifier (section 4.2).

    >>> challenge_of("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")
    'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM'
    """
    return urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")

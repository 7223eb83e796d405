"""Test support: signed, used by tests of several modules."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from joserfc import jws, jwt
from joserfc.jwk import ECKey

from truename.config import Issuer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.auth.jwt import Key

ISSUER = Issuer(issuer="https://idp.example", leeway=30.0)


NOW = 1_800_000_000.0


MINE = "https://tools.example/mcp"


CLAIMS = {"iss": ISSUER.issuer, "aud": MINE, "sub": "ann", "exp": int(NOW) + 60}


@cache
def curve(kid: str | None = "ec") -> ECKey:
    return ECKey.generate_key("P-256", {} if kid is None else {"kid": kid}, auto_kid=False)


def signed(key: Key, algorithm: str = "ES256", *, header: Mapping[str, Any] | None = None, **claims: Any) -> str:
    head = {"alg": algorithm, "kid": key.kid, **(header or {})}
    content = {name: value for name, value in (CLAIMS | claims).items() if value is not None}
    head = {name: value for name, value in head.items() if value is not None}
    registry = jws.JWSRegistry(algorithms=[algorithm], strict_check_header=False)
    return jwt.encode(head, content, key, algorithms=[algorithm], registry=registry)

"""Verify signed tokens (JWT): select the key, check the signature and the claims. joserfc does the cryptography."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from joserfc import jwt
from joserfc.errors import BadSignatureError, JoseError
from joserfc.jwk import ECKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry, extract_compact

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from truename.config import Issuer

Key = RSAKey | ECKey | OKPKey

__all__ = ["Invalid", "KeySet", "UnknownKey", "claimed_issuer", "header_of", "import_keys", "is_signed", "verify_token"]

_KINDS: Final[Mapping[str, type[RSAKey] | type[ECKey] | type[OKPKey]]] = {"RSA": RSAKey, "EC": ECKey, "OKP": OKPKey}
_FITS: Final[Mapping[str, str]] = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}
_MOST_KEYS: Final = 100
_LEAST_BITS: Final = 2048
# "at+jwt" is an access token (RFC 9068); other issuers use JWT or no type. Logout tokens and DPoP proofs have other
# types.
_TYPES: Final = frozenset({None, "jwt", "at+jwt", "application/at+jwt"})
_UNREADABLE: Final = (JoseError, ValueError, TypeError, KeyError, OverflowError, RecursionError)


class Invalid(Exception):
    """A token is not valid; the text says why, without the content of the token."""


class UnknownKey(Invalid):
    """A token is signed with an unknown key, perhaps a new one."""


@dataclass(frozen=True)
class KeySet:
    """The public keys of one issuer."""

    keys: tuple[Key, ...] = ()

    def key(self, kid: str | None, algorithm: str) -> Key:
        """Return the one key with which a token claims to be signed. Raises `UnknownKey`."""
        kind = _FITS[algorithm[:2]]
        fitting = [key for key in self.keys if key.key_type == kind and key.alg in {None, algorithm}]
        found = [key for key in fitting if kid is None or key.kid == kid]
        if len(found) != 1:
            message = "it is signed with a key that is not among the issuer's keys"
            raise UnknownKey(message)
        return found[0]


class _SignatureRegistry(JWSRegistry):
    """Allow headers larger than joserfc's limit of 512 bytes, since some contain certificates."""

    max_header_length = 8_192
    max_payload_length = 16_384


def import_keys(document: Mapping[str, object]) -> KeySet:
    """Return the usable keys of a JWKS document: public, for signatures, and strong enough. Others are skipped."""
    keys = document.get("keys")
    rows = keys if isinstance(keys, list) else []
    return KeySet(tuple(key for row in rows[:_MOST_KEYS] if (key := _key(row)) is not None))


def _key(row: object) -> Key | None:
    if not isinstance(row, dict) or row.get("use", "sig") != "sig" or (kind := _KINDS.get(str(row.get("kty")))) is None:
        return None
    operations = row.get("key_ops", ["verify"])
    if not isinstance(operations, list) or "verify" not in operations or not isinstance(row.get("kid"), str | None):
        return None
    try:
        key = kind.import_key({name: value for name, value in row.items() if name != "key_ops"})
        size = getattr(key.public_key, "key_size", _LEAST_BITS)
    except _UNREADABLE:
        return None
    return None if key.is_private or (isinstance(key, RSAKey) and size < _LEAST_BITS) else key


def is_signed(token: str) -> bool:
    """Return whether a token has the form of a signed token."""
    return token.count(".") == 2 and token.startswith("ey")


def header_of(token: str) -> Mapping[str, Any]:
    """Return the unverified header of a token. Raises `Invalid`."""
    try:
        return extract_compact(token.encode(), registry=_registry()).headers()
    except _UNREADABLE as error:
        message = "it is malformed"
        raise Invalid(message) from error


def claimed_issuer(token: str) -> str | None:
    """Return the unverified issuer of a token, to select the keys with which to verify it."""
    try:
        payload = extract_compact(token.encode(), registry=_registry()).payload
        claims = json.loads(payload or b"")
    except _UNREADABLE:
        return None
    issuer = claims.get("iss") if isinstance(claims, dict) else None
    return issuer if isinstance(issuer, str) else None


def verify_token(token: str, keys: KeySet, issuer: Issuer, audience: Iterable[str], now: float) -> Mapping[str, Any]:
    """Verify the signature, issuer, audience and times of a token, and return its claims.

    The algorithm is one of the issuer's, which all use public keys: a public key never serves as the secret of an HMAC
    (RFC 8725 section 2.1), and ``none`` is refused. Raises `Invalid` and `UnknownKey`.
    """
    header = header_of(token)
    algorithm, kid, kind = header.get("alg"), header.get("kid"), header.get("typ")
    if algorithm not in issuer.algorithms:
        message = "its signature algorithm is not accepted"
        raise Invalid(message)
    is_text = isinstance(kid, str | None) and isinstance(kind, str | None)
    if not is_text or (kind and kind.lower()) not in _TYPES:
        message = "it is not an access token"
        raise Invalid(message)
    key = keys.key(kid, str(algorithm))
    try:
        claims = jwt.decode(token, key, registry=_registry(str(algorithm))).claims
        jwt.JWTClaimsRegistry(
            now=int(now),
            leeway=int(issuer.leeway),
            iss={"essential": True, "value": issuer.issuer},
            aud={"essential": True, "values": list(audience)},
            exp={"essential": True},
        ).validate(claims)
    except BadSignatureError as error:
        # Without a key id, it may be signed with a new key, or be a forgery.
        raise (UnknownKey if kid is None else Invalid)(_why(error)) from error
    except _UNREADABLE as error:
        raise Invalid(_why(error)) from error
    return claims


def _registry(*algorithms: str) -> _SignatureRegistry:
    return _SignatureRegistry(algorithms=list(algorithms) or None, strict_check_header=False)


_CLAIMS: Final = {
    "exp": "it has expired",
    "nbf": "it is not valid yet",
    "iat": "it was issued in the future",
    "iss": "it was issued by another issuer",
    "aud": "it was issued for another resource",
}


def _why(error: Exception) -> str:
    claim = getattr(error, "claim", None)
    return _CLAIMS.get(str(claim), "its signature or a claim is not valid")

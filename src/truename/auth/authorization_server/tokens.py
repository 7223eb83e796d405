"""Issue the gateway's own access and refresh tokens, and authenticate requests that carry one."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal

from anyio import to_thread
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import OctKey
from joserfc.jws import JWSRegistry

from truename.auth.inbound.authentication import Authenticated, AuthenticationFailure
from truename.auth.jwt import Invalid, claimed_issuer, is_signed
from truename.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from truename.auth.authorization_server.sessions import SignInSession, SignInSessions
    from truename.auth.vault import Vault

__all__ = ["Kind", "SignInAuthenticator", "TokenIssuer", "signing_key"]

Kind = Literal["at+jwt", "rt+jwt", "client+jwt", "request+jwt"]
KINDS: Final = ("at+jwt", "rt+jwt", "client+jwt", "request+jwt")
_ALGORITHM: Final = "HS256"
_ISSUER: Final = "truename:sign-in"
_NAME: Final = "signing key"
_BYTES: Final = 32


class _TokenRegistry(JWSRegistry):
    max_payload_length = 12_288


def signing_key(vault: Vault) -> bytes:
    """Return the signing key, which is generated at first use and kept in the vault. Raises `StoreError`."""
    return vault.key(_NAME, issuer=_ISSUER)


class TokenIssuer:
    """Signs and reads the tokens of this gateway with one secret key (HMAC); no other signature is accepted.

    The header names the kind, which is checked: a refresh token is not accepted as an access token, nor a client's id
    as either.
    """

    def __init__(self, key: bytes, issuer: str, clock: Callable[[], float]) -> None:
        if len(key) != _BYTES:
            message = "a signing key must have 32 bytes"
            raise ValueError(message)
        self._key = OctKey.import_key(key)
        self._issuer = issuer
        self._clock = clock
        self._registry = _TokenRegistry(algorithms=[_ALGORITHM])

    def sign(self, kind: Kind, audience: str, claims: Mapping[str, object], seconds: float | None) -> str:
        """Return a token of a kind, valid for ``seconds`` (None: without expiry)."""
        now = int(self._clock())
        said = {**claims, "iss": self._issuer, "aud": audience, "iat": now}
        if seconds is not None:
            said["exp"] = now + int(seconds)
        return jwt.encode(
            {"alg": _ALGORITHM, "typ": kind}, said, self._key, algorithms=[_ALGORITHM], registry=self._registry
        )

    def read(self, kind: Kind, audience: str, token: str) -> Mapping[str, Any]:
        """Return the claims of a valid token of this kind that this gateway signed. Raises `Invalid`."""
        try:
            found = jwt.decode(token, self._key, algorithms=[_ALGORITHM], registry=self._registry)
            if found.header.get("typ") != kind:
                message = "it is a token of another kind"
                raise Invalid(message)
            jwt.JWTClaimsRegistry(
                now=int(self._clock()),
                iss={"essential": True, "value": self._issuer},
                aud={"essential": True, "value": audience},
            ).validate(found.claims)
        except (JoseError, ValueError, TypeError, KeyError, RecursionError) as error:
            message = "it was not issued here, or has expired"
            raise Invalid(message) from error
        return found.claims


log: Final = logging.getLogger("truename.auth")

_TRY_LATER: Final = AuthenticationFailure(
    error="temporarily_unavailable", text="Sign-ins cannot be checked. Try again later."
)
_OVER: Final = AuthenticationFailure(
    error="invalid_token", text="The sign-in has ended, or was revoked. Sign in again."
)


class SignInAuthenticator:
    """The authenticator of access tokens that this gateway issued: each is valid only while its session is."""

    def __init__(self, issued: TokenIssuer, sessions: SignInSessions, *, issuer: str, resource: str) -> None:
        self._issued = issued
        self._sessions = sessions
        self._issuer = issuer
        self._resource = resource

    def knows(self, token: str) -> bool:
        """Return whether a token claims to be issued by this gateway."""
        return is_signed(token) and claimed_issuer(token) == self._issuer

    async def admit(self, token: str) -> Authenticated | AuthenticationFailure:
        """Authenticate an access token: it is valid only while its session is."""
        try:
            said = self._issued.read("at+jwt", self._resource, token)
            session = await self._session(str(said["session"]))
        except Invalid as problem:
            return AuthenticationFailure(error="invalid_token", text=f"The token is not accepted: {problem}.")
        except StoreError as error:
            log.error("Cannot check sign-ins: %s", error)  # noqa: TRY400 - its text says what to do; no traceback
            return _TRY_LATER
        if session is None:
            return _OVER
        scopes = frozenset(str(said["scope"]).split()) & session.scopes
        return Authenticated(
            principal=replace(session.principal, scopes=scopes),
            until=float(said["exp"]),
            stands=lambda: self._sessions.stands(session.id),
        )

    async def _session(self, id: str) -> SignInSession | None:
        if self._sessions.asks(id):
            return await to_thread.run_sync(self._sessions.good, id)
        return self._sessions.good(id)

    async def refresh(self) -> None:
        """Read which sessions ended since the last look."""
        try:
            if not self._sessions.is_current():
                await to_thread.run_sync(self._sessions.refresh)
        except StoreError as error:
            log.debug("sign-ins cannot be read", exc_info=error)

"""Check access tokens of authorization servers: the gateway is an OAuth 2.1 resource server."""

from __future__ import annotations

import hashlib
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from truename.auth.inbound.authentication import Authenticated, AuthenticationFailure
from truename.auth.inbound.introspection import Introspection
from truename.auth.issuer_keys import IssuerKeys
from truename.auth.jwt import Invalid, UnknownKey, claimed_issuer, is_signed, verify_token
from truename.auth.network.fetch import FetchError
from truename.auth.oauth import IssuerClient
from truename.cache import TTLCache
from truename.policy.principal import Principal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from truename.auth.network.fetch import Fetch
    from truename.config import Issuer

__all__ = ["IssuerAuthenticator", "foreign_kind", "groups_in", "principal_from_claims", "scopes_in"]

_LONGEST: Final = 256
_MAX_CLAIMS: Final = 1_000
_ID: Final = "an ID token"
# Claims that only other kinds of tokens have: OpenID Connect Core sections 3.1.3.6 and 3.3.2.11, FAPI 1.0, Back-Channel
# Logout 2.4.
_MARKS: Final[Mapping[str, str]] = {"at_hash": _ID, "c_hash": _ID, "s_hash": _ID, "events": "a logout token"}
# The claims in which Keycloak, Cognito, Hydra and introspection name the kind of a token; and kinds that grant no
# access.
_SAYING: Final = ("typ", "token_use", "token_type")
_OTHERS: Final = frozenset({"id", "id_token", "refresh", "refresh_token", "offline", "logout"})


def principal_from_claims(
    claims: Mapping[str, object], *, issuer: str, name_claim: str, groups_claim: str
) -> Principal:
    """Return the principal of a token's claims. Raises `Invalid`."""
    name = claims.get(name_claim)
    # GitHub identifies people by numbers.
    name = str(name) if isinstance(name, int) and not isinstance(name, bool) else name
    if name_claim == "email" and claims.get("email_verified") in (False, "false"):
        message = "its e-mail address is not verified"
        raise Invalid(message)
    client = claims.get("client_id") or claims.get("azp") or ""
    if not _is_word(name) or not (client == "" or _is_word(client)):
        message = f"its claim {name_claim} is not a usable name"
        raise Invalid(message)
    return Principal(
        name=str(name),
        issuer=issuer,
        client=str(client),
        groups=groups_in(claims, groups_claim),
        scopes=scopes_in(claims),
    )


def foreign_kind(claims: Mapping[str, object]) -> str | None:
    """Return the kind of a token that is not an access token, whatever its header; None for an access token.

    >>> foreign_kind({"typ": "Refresh"}), foreign_kind({"typ": "Bearer"}), foreign_kind({"at_hash": "x"})
    ('not an access token', None, 'an ID token')
    """
    said = {str(claims.get(name, "")).lower() for name in _SAYING}
    marked = next((what for name, what in _MARKS.items() if name in claims), None)
    return "not an access token" if marked is None and said & _OTHERS else marked


def scopes_in(claims: Mapping[str, object]) -> frozenset[str]:
    """Return the scopes of claims: ``scope`` as in RFC 8693, or ``scp`` as some issuers use, a string or a list.

    >>> sorted(scopes_in({"scope": "read write"})), sorted(scopes_in({"scp": ["read"]}))
    (['read', 'write'], ['read'])
    """
    said = claims.get("scope", claims.get("scp"))
    return _words(said.split(" ") if isinstance(said, str) else said)


def groups_in(claims: Mapping[str, object], claim: str) -> frozenset[str]:
    """Return the groups in a claim of that name, or in a nested claim to which its dots lead.

    >>> groups_in({"realm_access": {"roles": ["eng"]}}, "realm_access.roles")
    frozenset({'eng'})
    """
    found: object = claims.get(claim)
    if found is None:
        found = claims
        for part in claim.split("."):
            found = found.get(part) if isinstance(found, dict) else None
    return _words([found] if isinstance(found, str) else found)


def _words(said: object) -> frozenset[str]:
    if not isinstance(said, list):
        return frozenset()
    return frozenset(word for word in said[:_MAX_CLAIMS] if _is_word(word))


def _is_word(text: object) -> bool:
    return isinstance(text, str) and 0 < len(text) <= _LONGEST and text.isprintable()


log: Final = logging.getLogger("truename.auth")

MAX_TOKENS: Final = 10_000
_KEPT: Final = 60.0
# A stream that was opened with a token that may be revoked ends after this time; the client then reconnects.
_ASKED_AGAIN: Final = 300.0
_UNREACHABLE: Final = AuthenticationFailure(
    error="temporarily_unavailable", text="The token cannot be checked. Try again later."
)


class IssuerAuthenticator:
    """The authenticator of one issuer's access tokens. ``resource`` is the default audience.

    A valid token is cached for a minute without checking its signature again, unless the issuer's keys change.
    """

    def __init__(self, issuer: Issuer, resource: str, fetch: Fetch, clock: Callable[[], float]) -> None:
        issuer_client = IssuerClient(issuer.issuer, fetch, clock)
        self._issuer = issuer
        self._audience = frozenset(issuer.audience or (resource,))
        self._clock = clock
        self._keys = IssuerKeys(issuer_client, issuer.jwks_url, clock)
        self._introspection = Introspection(issuer, issuer_client, clock)
        self._good: TTLCache[bytes, tuple[int, Authenticated]] = TTLCache(MAX_TOKENS, _KEPT, clock)

    def knows(self, token: str) -> bool:
        """Return whether a token names this issuer; an opaque one may be this issuer's if introspection is on."""
        if is_signed(token):
            return claimed_issuer(token) == self._issuer.issuer
        return self._issuer.introspection != "never"

    async def admit(self, token: str) -> Authenticated | AuthenticationFailure:
        """Authenticate the bearer of a token."""
        try:
            found = await self._admitted(token)
            # The cache of authentications contains no tokens.
            return replace(found, token=token) if isinstance(found, Authenticated) else found
        except Invalid as problem:
            return AuthenticationFailure(error="invalid_token", text=f"The token is not accepted: {problem}.")
        except OverflowError:
            return AuthenticationFailure(
                error="invalid_token", text="The token is not accepted: its times are not valid."
            )
        except FetchError as fault:
            log.warning("Cannot check tokens of %s: %s", self._issuer.issuer, fault)
            return _UNREACHABLE

    async def _admitted(self, token: str) -> Authenticated | AuthenticationFailure:
        if not is_signed(token) or self._issuer.introspection == "always":
            # The claims of a signed token count together with those of introspection.
            signed = await self._verified(token) if is_signed(token) else {}
            return self._judged(
                {**signed, **await self._introspection.claims(token, self._audience)}, self._clock() + _ASKED_AGAIN
            )
        key, now = hashlib.sha256(token.encode()).digest(), self._clock()
        known = self._good.get(key)
        if known is not None and known[0] == self._keys.changes:
            return known[1]
        found = self._judged(await self._verified(token), float("inf"))
        if isinstance(found, Authenticated):
            self._good.put(key, (self._keys.changes, found), until=min(now + _KEPT, found.until or now))
        return found

    async def _verified(self, token: str) -> Mapping[str, object]:
        keys = await self._keys.now()
        try:
            return verify_token(token, keys, self._issuer, self._audience, self._clock())
        except UnknownKey:
            newer = await self._keys.newer(keys)
            return verify_token(token, newer, self._issuer, self._audience, self._clock())

    def _judged(self, claims: Mapping[str, Any], until: float) -> Authenticated | AuthenticationFailure:
        issuer = self._issuer
        if "cnf" in claims:
            message = "it is bound to a key of its owner, which is not supported"
            raise Invalid(message)
        if (kind := foreign_kind(claims)) is not None:
            message = f"it is {kind}"
            raise Invalid(message)
        principal = principal_from_claims(
            claims, issuer=issuer.issuer, name_claim=issuer.name_claim, groups_claim=issuer.groups_claim
        )
        if issuer.clients and principal.client not in issuer.clients:
            message = "its client is not allowed"
            raise Invalid(message)
        if missing := [scope for scope in issuer.scopes if scope not in principal.scopes]:
            text = f"The token lacks the scope {missing[0]}."
            return AuthenticationFailure(error="insufficient_scope", text=text, scopes=issuer.scopes)
        if claims.get("exp") is not None:
            until = min(until, float(claims["exp"]) + issuer.leeway)
        return Authenticated(principal=principal, until=until)

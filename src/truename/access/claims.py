"""What the claims of a token say of a person: their name, groups and scopes, as far as they are what they should be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from truename.access.signed import Invalid
from truename.policy.principal import Principal

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["groups_in", "other_kind", "principal_in", "scopes_in"]

_LONGEST: Final = 256
_MOST: Final = 1_000
_ID: Final = "an ID token"
# What only such tokens have: OpenID Connect Core sections 3.1.3.6 and 3.3.2.11, FAPI 1.0, Back-Channel Logout 2.4.
_MARKS: Final[Mapping[str, str]] = {"at_hash": _ID, "c_hash": _ID, "s_hash": _ID, "events": "a logout token"}
# Where Keycloak, Cognito and Hydra, and issuers that are asked say which kind it is; and kinds that open nothing.
_SAYING: Final = ("typ", "token_use", "token_type")
_OTHERS: Final = frozenset({"id", "id_token", "refresh", "refresh_token", "offline", "logout"})


def principal_in(claims: Mapping[str, Any], *, issuer: str, name_claim: str, groups_claim: str) -> Principal:
    """Return whose token it is. Raises `Invalid`."""
    name = claims.get(name_claim)
    # GitHub's people are numbers.
    name = str(name) if isinstance(name, int) and not isinstance(name, bool) else name
    if name_claim == "email" and claims.get("email_verified") in (False, "false"):
        message = "its address is not verified, and can be anybody's"
        raise Invalid(message)
    client = claims.get("client_id") or claims.get("azp") or ""
    if not _is_word(name) or not (client == "" or _is_word(client)):
        message = f"it has no {name_claim} that can be a name"
        raise Invalid(message)
    return Principal(
        name=str(name),
        issuer=issuer,
        client=str(client),
        groups=groups_in(claims, groups_claim),
        scopes=scopes_in(claims),
    )


def other_kind(claims: Mapping[str, Any]) -> str | None:
    """Say what a token is, if it is no access token, whatever its header says: those are for its client's eyes alone.

    >>> other_kind({"typ": "Refresh"}), other_kind({"typ": "Bearer"}), other_kind({"at_hash": "x"})
    ('no access token', None, 'an ID token')
    """
    said = {str(claims.get(name, "")).lower() for name in _SAYING}
    marked = next((what for name, what in _MARKS.items() if name in claims), None)
    return "no access token" if marked is None and said & _OTHERS else marked


def scopes_in(claims: Mapping[str, Any]) -> frozenset[str]:
    """Return the scopes: ``scope`` as RFC 8693 has it, or ``scp`` as others do, a text or a list.

    >>> sorted(scopes_in({"scope": "read write"})), sorted(scopes_in({"scp": ["read"]}))
    (['read', 'write'], ['read'])
    """
    said = claims.get("scope", claims.get("scp"))
    return _words(said.split(" ") if isinstance(said, str) else said)


def groups_in(claims: Mapping[str, Any], claim: str) -> frozenset[str]:
    """Return the groups: of the claim of that name, or of where its dots lead.

    >>> groups_in({"realm_access": {"roles": ["eng"]}}, "realm_access.roles")
    frozenset({'eng'})
    """
    found: Any = claims.get(claim)
    if found is None:
        found = claims
        for part in claim.split("."):
            found = found.get(part) if isinstance(found, dict) else None
    return _words([found] if isinstance(found, str) else found)


def _words(said: object) -> frozenset[str]:
    if not isinstance(said, list):
        return frozenset()
    return frozenset(word for word in said[:_MOST] if _is_word(word))


def _is_word(text: object) -> bool:
    return isinstance(text, str) and 0 < len(text) <= _LONGEST and text.isprintable()

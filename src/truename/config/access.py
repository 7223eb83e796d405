"""Who may come in, as frozen values: what the table ``[access]`` of a configuration says."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ALGORITHMS", "TOKENS", "Access", "Introspection", "Issuer", "KnownToken", "SignIn"]

TOKENS: Final = "tokens.json"

Introspection = Literal["never", "opaque", "always"]

ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "Ed25519"),
)
"""Signatures with a key that the gateway needs no secret for: none other may be allowed, and ``none`` never."""


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, kw_only=True)
class KnownToken:
    """A static token, of which only the digest is known: ``tn1:ID:SHA256``. ``expires`` is in seconds since 1970."""

    name: str
    hash: str = field(repr=False)
    groups: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    expires: float | None = None


@dataclass(frozen=True, kw_only=True)
class Issuer:
    """An authorization server whose access tokens are accepted.

    ``audience`` are names under which it knows the gateway (none: the gateway's own address, RFC 8707); ``scopes``
    every token must have; ``clients`` are the OAuth clients that may act (none: any). ``introspection`` asks it about
    tokens that are no JWT (``opaque``), or about all of them. ``leeway`` is in seconds.
    """

    issuer: str
    audience: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    clients: tuple[str, ...] = ()
    algorithms: tuple[str, ...] = ALGORITHMS
    name_claim: str = "sub"
    groups_claim: str = "groups"
    leeway: float = 30.0
    jwks_url: str | None = None
    introspection: Introspection = "never"
    introspection_url: str | None = None
    client_id: str = ""
    client_secret: str = field(default="", repr=False)


@dataclass(frozen=True, kw_only=True)
class SignIn:
    """Sign-in at an identity provider that knows the gateway alone; the gateway is what clients sign in at.

    ``issuer`` is looked up (OpenID Connect), or the three URLs say where to go. ``allow`` says who may come in:
    ``email:GLOB`` (verified ones), ``group:NAME``, ``sub:TEXT``, or ``*``. Times are seconds.
    """

    client_id: str
    allow: tuple[str, ...]
    client_secret: str = field(default="", repr=False)
    issuer: str | None = None
    authorization_url: str | None = None
    token_url: str | None = None
    userinfo_url: str | None = None
    request: tuple[str, ...] = ("openid", "email")
    scopes: tuple[str, ...] = ()
    name_claim: str = "sub"
    groups_claim: str = "groups"
    redirect_schemes: tuple[str, ...] = ()
    access_seconds: float = 600.0
    session_seconds: float = 30 * 86_400.0

    @property
    def vouches(self) -> str:
        """Whose word it is that somebody is who they are."""
        return self.issuer or self.authorization_url or ""


@dataclass(frozen=True, kw_only=True)
class Access:
    """All of it.

    ``public_url`` is how clients reach the gateway, ``token_name`` who the setting ``token`` stands for, ``state`` a
    directory.
    """

    public_url: str | None = None
    state: str | None = None
    token_name: str = "local"  # noqa: S105 - a name
    tokens: Mapping[str, KnownToken] = field(default_factory=_nothing)
    oauth: Mapping[str, Issuer] = field(default_factory=_nothing)
    sign_in: SignIn | None = None

    @property
    def asks(self) -> bool:
        """Whether it says by itself that callers have to prove who they are."""
        return bool(self.tokens or self.oauth or self.sign_in)

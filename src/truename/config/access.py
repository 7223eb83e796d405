"""The table ``[access]``: who may connect, by static tokens, OAuth or sign-in."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from truename.config.field_types import (
    NAME,
    ORIGIN_URL,
    REFERENCE,
    SECONDS,
    TEXT,
    TIME,
    URL,
    checked_by,
    choice,
    each,
    matching,
    named_tables,
    table,
)
from truename.config.fields import EMPTY, FieldType, required, rows_of, setting
from truename.errors import excerpt, spelling_remedy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.config.fields import Fields

__all__ = ["Access", "Issuer", "KnownToken", "SignIn", "check_access"]

Introspection = Literal["never", "opaque", "always"]
ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "Ed25519"),
)
"""Signatures that are checked with a public key: no other may be allowed, and ``none`` never."""
_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]{0,63}")
# Schemes that a browser runs or opens itself: no program's own.
_NO_ADDRESS: Final = frozenset(
    {"http", "https", "javascript", "data", "file", "about", "blob", "vbscript", "ws", "wss"}
)
_WORD: Final = re.compile(r"[!-~]{1,256}")
_HASH: Final = re.compile(r"tn1:[0-9a-f]{16}:[0-9a-f]{64}")
_RULE: Final = re.compile(r"\*|(?:email|group|sub):\S.{0,255}")
_WORDS: Final = each(_WORD, "a word")
_CLAIM: Final = matching(_WORD, "a claim's name")
_CLIENT_ID: Final = matching(_WORD, "an OAuth client id")


def _read_algorithms(fields: Fields, name: str) -> tuple[str, ...]:
    texts = fields.texts(name)
    for text in texts:
        if text not in ALGORITHMS:
            problem = f"{excerpt(text)} is not a signature with a public key"
            fields.add(name, problem, spelling_remedy(text, ALGORITHMS))
    if not texts:
        fields.add(name, "it is empty", "Leave it out, or name one.")
    return texts


_SCHEMES: Final = each(_SCHEME, "a scheme of a program's own, as in cursor")


def _read_schemes(fields: Fields, name: str) -> tuple[str, ...] | None:
    texts: tuple[str, ...] | None = _SCHEMES.read(fields, name)
    for text in texts or ():
        if text in _NO_ADDRESS:
            fields.add(name, f"{excerpt(text)} is not a program's own scheme", "Leave it out.")
    return texts


@dataclass(frozen=True, kw_only=True)
class KnownToken:
    """A static token, of which only the digest is known: ``tn1:ID:SHA256``. ``expires`` is in seconds since 1970."""

    name: str
    hash: str = field(
        repr=False,
        metadata=required(
            matching(_HASH, "what `truename token add --print-hash` printed"),
            "Digest of the token, as `truename token add --print-hash` prints it.",
            secret=True,
        ),
    )
    groups: tuple[str, ...] = setting((), _WORDS, "Groups of the token's holder, for profiles.", live=True)
    scopes: tuple[str, ...] = setting((), _WORDS, "Scopes of the token, for profiles.", live=True)
    expires: float | None = setting(
        None, TIME, "When the token expires, as 2027-02-01T00:00:00Z; without it never.", live=True
    )


@dataclass(frozen=True, kw_only=True)
class Issuer:
    """An authorization server whose access tokens are accepted."""

    issuer: str = field(
        metadata=required(URL, "Identifier of the authorization server, exactly as its tokens name it.")
    )
    audience: tuple[str, ...] = setting(
        (), each(_WORD, "an audience"), "Accepted audiences; without them only the gateway's own address (RFC 8707)."
    )
    scopes: tuple[str, ...] = setting((), _WORDS, "Scopes that every token must have.")
    clients: tuple[str, ...] = setting((), _WORDS, "OAuth clients whose tokens are accepted; without them any.")
    algorithms: tuple[str, ...] = setting(
        ALGORITHMS,
        FieldType(
            name="list of signature algorithms",
            read=_read_algorithms,
            schema={"type": "array", "items": {"anyOf": [{"enum": list(ALGORITHMS)}, REFERENCE]}},
        ),
        "Accepted signature algorithms.",
    )
    name_claim: str = setting("sub", _CLAIM, "Claim that names the caller; choose one that never changes.")
    groups_claim: str = setting(
        "groups", _CLAIM, "Claim that lists the caller's groups; dots lead into objects, as in realm_access.roles."
    )
    leeway: float = setting(30.0, SECONDS, "Accepted difference between its clock and the gateway's.", unit="seconds")
    jwks_url: str | None = setting(None, URL, "Address of its keys, if its metadata does not name it.")
    introspection: Introspection = setting(
        "never", choice(get_args(Introspection)), "Tokens that are checked by introspection (RFC 7662)."
    )
    introspection_url: str | None = setting(
        None, URL, "Address of its introspection endpoint, if its metadata does not name it."
    )
    client_id: str = setting("", _CLIENT_ID, "OAuth client id of the gateway there, for introspection.")
    client_secret: str = setting("", TEXT, "OAuth client secret of the gateway there; write a reference.", secret=True)


@dataclass(frozen=True, kw_only=True)
class SignIn:
    """Sign-in at the gateway, which identifies people at an identity provider as the provider's only client.

    The provider is ``issuer``, whose metadata is looked up (OpenID Connect), or is given by the three URLs.
    """

    client_id: str = field(metadata=required(_CLIENT_ID, "OAuth client id of the gateway at the provider."))
    allow: tuple[str, ...] = field(
        metadata=required(
            each(_RULE, "email:GLOB, group:NAME, sub:TEXT or *"),
            "People who may connect: email:GLOB (verified addresses), group:NAME, sub:TEXT, or * for everybody.",
        )
    )
    client_secret: str = setting(
        "", TEXT, "OAuth client secret of the gateway at the provider; write a reference.", secret=True
    )
    issuer: str | None = setting(None, URL, "Identity provider (OpenID Connect), whose metadata is looked up.")
    authorization_url: str | None = setting(
        None, URL, "Authorization endpoint of a provider without metadata, where people sign in."
    )
    token_url: str | None = setting(None, URL, "Token endpoint of a provider without metadata.")
    userinfo_url: str | None = setting(
        None, URL, "Userinfo endpoint of a provider without ID tokens, which says who signed in."
    )
    request: tuple[str, ...] = setting(("openid", "email"), _WORDS, "Scopes that the gateway requests of the provider.")
    scopes: tuple[str, ...] = setting((), _WORDS, "Scopes of the tokens that clients get.")
    name_claim: str = setting("sub", _CLAIM, "Claim that names the caller; choose one that never changes.")
    groups_claim: str = setting(
        "groups", _CLAIM, "Claim that lists the caller's groups; dots lead into objects, as in realm_access.roles."
    )
    redirect_schemes: tuple[str, ...] = setting(
        (), checked_by(_read_schemes, _SCHEMES), "URL schemes of programs that may receive answers, as cursor."
    )
    access_seconds: float = setting(600.0, SECONDS, "Lifetime of an access token.", unit="seconds")
    session_seconds: float = setting(
        30 * 86_400.0, SECONDS, "Longest time that somebody stays signed in.", unit="seconds"
    )

    @property
    def vouches(self) -> str:
        """The issuer that vouches for the people who sign in."""
        return self.issuer or self.authorization_url or ""


def _check_sign_in(fields: Fields, found: dict[str, object]) -> None:
    urls = [name for name in ("authorization_url", "token_url", "userinfo_url") if name in found]
    if "issuer" in found and urls:
        fields.add(urls[0], "it is set together with issuer", "Keep the issuer, or the three URLs.")
    elif "issuer" not in found and len(urls) < 3:
        missing = "issuer (or authorization_url, token_url and userinfo_url)"
        fields.add("issuer", f"{missing} is missing", "Add the provider where people sign in.")
    if "allow" in found and not found["allow"]:
        fields.add("allow", "it is empty, so nobody may connect", 'Name somebody, or write ["*"].')


@dataclass(frozen=True, kw_only=True)
class Access:
    """Who may connect, and how they authenticate."""

    public_url: str | None = setting(None, ORIGIN_URL, "Address at which clients reach the gateway: https://HOST.")
    token_name: str = setting(
        "local",
        matching(NAME, "a short name"),
        "Name of the principal that the setting `token` authenticates.",
        live=True,
    )
    tokens: Mapping[str, KnownToken] = setting(
        EMPTY,
        named_tables(rows_of(KnownToken), lambda name, _, found: KnownToken(name=name, **found)),
        "Static tokens, by the name of their holder.",
        live=True,
    )
    oauth: Mapping[str, Issuer] = setting(
        EMPTY,
        named_tables(rows_of(Issuer), lambda _, __, found: Issuer(**found)),
        "Authorization servers whose access tokens are accepted.",
    )
    sign_in: SignIn | None = setting(
        None,
        table(SignIn, _check_sign_in),
        "Clients sign in at the gateway, which identifies people at this identity provider.",
    )

    @property
    def asks(self) -> bool:
        """Whether the table itself requires callers to authenticate."""
        return bool(self.tokens or self.oauth or self.sign_in)


def check_access(fields: Fields, found: dict[str, Any]) -> None:
    """Report fields of the table that contradict each other."""
    issuers: Mapping[str, Issuer] = found.get("oauth", {})
    known: dict[str, str] = {}
    for key, issuer in issuers.items():
        where = f"oauth.{key}"
        if (first := known.setdefault(issuer.issuer, key)) != key:
            fields.add(where, f"it has the same issuer as {first}", "Keep one of them.")
        if issuer.introspection != "never" and not (issuer.client_id and issuer.client_secret):
            fields.add(where, "introspection needs client_id and client_secret", "Add both.")
    asked = [key for key, issuer in issuers.items() if issuer.introspection != "never"]
    if len(asked) > 1:
        problem = f"a token that does not name its issuer would be shown to {' and '.join(asked)}"
        fields.add("oauth", problem, "Leave introspection to one of them.")
    sign_in: SignIn | None = found.get("sign_in")
    # Two claims for the same people: the name of one person could be another's.
    for key, issuer in issuers.items():
        if sign_in is not None and issuer.issuer == sign_in.vouches and issuer.name_claim != sign_in.name_claim:
            problem = f"sign_in has the same issuer, and uses {sign_in.name_claim}"
            fields.add(f"oauth.{key}.name_claim", problem, "Name the same claim in both.")

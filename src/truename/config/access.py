"""Read the table ``[access]``: who may connect, by static tokens, OAuth or sign-in."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from ipaddress import ip_address
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, get_args
from urllib.parse import urlsplit

from truename.config.fields import unknown_setting
from truename.errors import excerpt, spelling_remedy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from truename.config.fields import Fields

__all__ = [
    "ACCESS",
    "Access",
    "Issuer",
    "KnownToken",
    "SignIn",
    "each",
    "plain_token",
    "read_access",
    "text",
    "url",
]

Introspection = Literal["never", "opaque", "always"]
ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "Ed25519"),
)
_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]{0,63}")
# Schemes that a browser runs or opens itself: nobody's address.
_NO_ADDRESS: Final = frozenset(
    {"http", "https", "javascript", "data", "file", "about", "blob", "vbscript", "ws", "wss"}
)
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_WORD: Final = re.compile(r"[!-~]{1,256}")
_HASH: Final = re.compile(r"tn1:[0-9a-f]{16}:[0-9a-f]{64}")
_RULE: Final = re.compile(r"\*|(?:email|group|sub):\S.{0,255}")
_TEXT: Final = {"type": "string"}
_REFERENCE: Final = {"type": "string", "pattern": r"\$\{"}
_TEXTS: Final = {"type": "array", "items": _TEXT}
_SECONDS: Final = {"type": "number", "exclusiveMinimum": 0}


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

    ``public_url`` is how clients reach the gateway, ``token_name`` who the setting ``token`` stands for.
    """

    public_url: str | None = None
    token_name: str = "local"  # noqa: S105 - a name
    tokens: Mapping[str, KnownToken] = field(default_factory=_nothing)
    oauth: Mapping[str, Issuer] = field(default_factory=_nothing)
    sign_in: SignIn | None = None

    @property
    def asks(self) -> bool:
        """Whether it says by itself that callers have to prove who they are."""
        return bool(self.tokens or self.oauth or self.sign_in)


def matching(pattern: re.Pattern[str], what: str) -> Callable[[Fields, str], str | None]:
    """Return a reader of texts of this form."""

    def read(fields: Fields, name: str) -> str | None:
        text = fields.text(name)
        if text is not None and pattern.fullmatch(text) is None:
            fields.faults.add(fields.where(name), f"it is not {what}", f"Write {what}.")
            return None
        return text

    return read


def each(pattern: re.Pattern[str], what: str) -> Callable[[Fields, str], tuple[str, ...] | None]:
    """Return a reader of lists whose texts have this form."""

    def read(fields: Fields, name: str) -> tuple[str, ...] | None:
        if name not in fields:
            return None
        texts = fields.texts(name)
        for text in texts:
            if pattern.fullmatch(text) is None:
                fields.faults.add(fields.where(name), f"{excerpt(text)} is not {what}", f"Write {what}.")
        return texts

    return read


def url(fields: Fields, name: str) -> str | None:
    """Read an address that secrets may go to."""
    text = fields.text(name)
    if text is not None and (problem := _wrong_url(text)):
        fields.faults.add(fields.where(name), problem, "Write https://HOST/..., or http:// on a loopback address.")
        return None
    return text


def origin(fields: Fields, name: str) -> str | None:
    """Read scheme, host and port."""
    text = url(fields, name)
    if text is not None and (urlsplit(text).path.rstrip("/") or urlsplit(text).query):
        fields.faults.add(fields.where(name), "it has a path", "Write scheme, host and port alone: https://HOST.")
        return None
    return None if text is None else text.rstrip("/")


def _wrong_url(text: str) -> str | None:
    try:
        found = urlsplit(text)
        host, _ = found.hostname or "", found.port
    except ValueError:
        return "it is not an address"
    if not text.isascii() or not text.isprintable() or " " in text or not host or found.username is not None:
        return "it is not an address"
    if found.fragment or found.scheme not in {"http", "https"}:
        return "it is not an address"
    return "it is plain HTTP to another machine" if found.scheme == "http" and not _is_here(host) else None


def _is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def text(fields: Fields, name: str) -> str | None:
    """Read a text."""
    return fields.text(name)


def number(fields: Fields, name: str) -> float | None:
    """Read a number above nought."""
    return fields.number(name)


def algorithms(fields: Fields, name: str) -> tuple[str, ...] | None:
    """Read signatures with public keys."""
    if name not in fields:
        return None
    texts = fields.texts(name)
    for text in texts:
        if text not in ALGORITHMS:
            fields.faults.add(
                fields.where(name),
                f"{excerpt(text)} is no signature with a public key",
                spelling_remedy(text, ALGORITHMS),
            )
    if not texts:
        fields.faults.add(fields.where(name), "it is empty", "Leave it out, or name one.")
    return texts


def schemes(fields: Fields, name: str) -> tuple[str, ...] | None:
    """Read schemes of programs' own."""
    texts = each(_SCHEME, "a scheme of a program's own, as in cursor")(fields, name)
    for text in texts or ():
        if text in _NO_ADDRESS:
            fields.faults.add(fields.where(name), f"{excerpt(text)} is no program's own", "Leave it out.")
    return texts


def introspection(fields: Fields, name: str) -> str | None:
    """Read which tokens an issuer is asked about."""
    text = fields.text(name)
    if text is not None and text not in get_args(Introspection):
        fields.faults.add(
            fields.where(name), f"{excerpt(text)} is no choice", spelling_remedy(text, get_args(Introspection))
        )
        return None
    return text


def moment(fields: Fields, name: str) -> float | None:
    """Read a time as seconds since 1970."""
    # TOML has days and times of its own.
    said = fields.raw(name)
    text = said.isoformat() if isinstance(said, date) else fields.text(name)
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        fields.faults.add(fields.where(name), f"{excerpt(text)} is no time", "Write it as in 2027-02-01T00:00:00Z.")
        return None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


_SUBJECT: Final = Issuer.name_claim


class _Row(NamedTuple):
    read: Callable[[Fields, str], Any]
    schema: Mapping[str, Any]
    what: str


def _one_of(words: tuple[str, ...]) -> dict[str, Any]:
    return {"anyOf": [{"enum": list(words)}, _REFERENCE]}


_GROUPS: Final = each(_WORD, "a word")


_TOKEN: Final[Mapping[str, _Row]] = {
    "hash": _Row(matching(_HASH, "what `truename token add --print-hash` printed"), _TEXT, "The token's digest."),
    "groups": _Row(_GROUPS, _TEXTS, "Groups of whoever has it, for profiles."),
    "scopes": _Row(_GROUPS, _TEXTS, "Its scopes, for profiles."),
    "expires": _Row(moment, _TEXT, "Until when it is good, as 2027-02-01T00:00:00Z; else for ever."),
}


_CLAIM: Final = _Row(
    matching(_WORD, "a claim's name"), _TEXT, "The claim that says who it is; best one that never changes."
)


_GROUPS_CLAIM: Final = _Row(
    matching(_WORD, "a claim's name"), _TEXT, "The claim with the groups; dots lead into objects: realm_access.roles."
)


_CLIENT: Final[Mapping[str, _Row]] = {
    "client_id": _Row(matching(_WORD, "an id of a client"), _TEXT, "The gateway's own id there."),
    "client_secret": _Row(text, _TEXT, "Its secret there; best a reference."),
    "name_claim": _CLAIM,
    "groups_claim": _GROUPS_CLAIM,
}


_ISSUER: Final[Mapping[str, _Row]] = {
    "issuer": _Row(url, _TEXT, "The authorization server, exactly as its tokens name it."),
    "audience": _Row(each(_WORD, "an audience"), _TEXTS, "Audiences that are accepted; else the gateway's address."),
    "scopes": _Row(_GROUPS, _TEXTS, "Scopes that every token must have."),
    "clients": _Row(_GROUPS, _TEXTS, "The OAuth clients that may act; else any."),
    "algorithms": _Row(algorithms, {"type": "array", "items": _one_of(ALGORITHMS)}, "Signatures accepted."),
    "leeway": _Row(number, _SECONDS, "Seconds that its clock and ours may differ."),
    "jwks_url": _Row(url, _TEXT, "Where its keys are, if its metadata does not say so."),
    "introspection": _Row(
        introspection, _one_of(get_args(Introspection)), "Which tokens it is asked about (RFC 7662)."
    ),
    "introspection_url": _Row(url, _TEXT, "Where to ask, if its metadata does not say so."),
    **_CLIENT,
}


_SIGN_IN: Final[Mapping[str, _Row]] = {
    "issuer": _Row(url, _TEXT, "The identity provider (OpenID Connect); its metadata is looked up."),
    "authorization_url": _Row(url, _TEXT, "Where people sign in, for a provider without metadata."),
    "token_url": _Row(url, _TEXT, "Where codes are exchanged, for a provider without metadata."),
    "userinfo_url": _Row(url, _TEXT, "Where it says who signed in, for a provider without ID tokens."),
    "request": _Row(_GROUPS, _TEXTS, "The scopes that the gateway asks it for."),
    "scopes": _Row(_GROUPS, _TEXTS, "The scopes that clients get."),
    "allow": _Row(
        each(_RULE, "email:GLOB, group:NAME, sub:TEXT or *"), _TEXTS, "Who may come in of those who can sign in there."
    ),
    "redirect_schemes": _Row(schemes, _TEXTS, "Schemes of programs that answers may go to, as cursor."),
    "access_seconds": _Row(number, _SECONDS, "How long an access token is good."),
    "session_seconds": _Row(number, _SECONDS, "How long somebody stays signed in at most."),
    **_CLIENT,
}


_ACCESS: Final[Mapping[str, _Row]] = {
    "public_url": _Row(origin, _TEXT, "How clients reach the gateway: https://HOST, without a path."),
    "token_name": _Row(matching(_NAME, "a short name"), _TEXT, "Who the setting token stands for."),
}


def _schema(rows: Mapping[str, _Row], *required: str) -> dict[str, Any]:
    properties = {name: {**row.schema, "description": row.what} for name, row in rows.items()}
    more = {"required": list(required)} if required else {}
    return {"type": "object", "properties": properties, "additionalProperties": False, **more}


def _named(schema: Mapping[str, Any], what: str) -> dict[str, Any]:
    names = {"pattern": f"^{_NAME.pattern}$"}
    return {"type": "object", "propertyNames": names, "additionalProperties": schema, "description": what}


_TABLES: Final = _schema(_ACCESS)


ACCESS: Final[Mapping[str, Any]] = {
    **_TABLES,
    "properties": {
        **_TABLES["properties"],
        "tokens": _named(_schema(_TOKEN, "hash"), "Static tokens by the name of who has them, as digests."),
        "oauth": _named(_schema(_ISSUER, "issuer"), "Authorization servers whose access tokens are accepted."),
        "sign_in": {**_schema(_SIGN_IN, "client_id", "allow"), "description": "Sign-in for clients by the gateway."},
    },
}


def read_access(fields: Fields, name: str, _: Path) -> Access | None:
    """Read who may come in; what can't be read of it is a fault, for it may be what keeps somebody out."""
    if name not in tuple(fields):
        return None
    said = fields.nested(name, "an object")
    if said is None:
        if fields.raw(name) is None:
            fields.faults.add(fields.where(name), "it is null, not an object", "Leave it out, or say who may come in.")
        return None
    _check_words(said, (*_ACCESS, "tokens", "oauth", "sign_in"))
    given = _given(said, _ACCESS)
    tokens = _each_named(said, "tokens", _TOKEN, ("hash",))
    issuers = _each_named(said, "oauth", _ISSUER, ("issuer",))
    sign_in = _sign_in(said)
    _check_issuers(said, issuers)
    _check_names(said, issuers, sign_in)
    if len(said.faults):
        return None
    return Access(
        **given,
        tokens=MappingProxyType({key: KnownToken(name=key, **row) for key, row in tokens.items()}),
        oauth=MappingProxyType({key: Issuer(**row) for key, row in issuers.items()}),
        sign_in=sign_in,
    )


def _check_words(said: Fields, known: tuple[str, ...]) -> None:
    for word in said:
        if word not in known:
            place = said.where(excerpt(word)[1:-1])
            said.faults.add(place, *unknown_setting(place, word, known))
        elif word not in said:
            said.faults.add(said.where(word), "it is null", "Leave it out, or say something.")


def _given(said: Fields, rows: Mapping[str, _Row]) -> dict[str, Any]:
    read = {name: row.read(said, name) for name, row in rows.items() if name in said}
    return {name: value for name, value in read.items() if value is not None}


def _each_named(
    said: Fields, name: str, rows: Mapping[str, _Row], required: tuple[str, ...]
) -> dict[str, dict[str, Any]]:
    tables = said.nested(name, "an object: NAME -> object")
    found: dict[str, dict[str, Any]] = {}
    for key in tables or ():
        assert tables is not None  # noqa: S101 - it had a key
        if _NAME.fullmatch(key) is None:
            problem = f"{excerpt(key)} can't be a name"
            tables.faults.add(
                tables.where(excerpt(key)[1:-1]), problem, "Use up to 64 of A-Z, a-z, 0-9, '.', '_', '-'."
            )
        elif (table := tables.nested(key, "an object")) is None:
            tables.faults.add(tables.where(key), "it is empty", "Leave it out, or fill it.")
        else:
            found[key] = _table(table, rows, required)
    return found


def _table(table: Fields, rows: Mapping[str, _Row], required: tuple[str, ...]) -> dict[str, Any]:
    _check_words(table, tuple(rows))
    for word in required:
        if word not in tuple(table):
            table.faults.add(table.where(word), "it is missing", "Say it.")
    return _given(table, rows)


def _check_issuers(said: Fields, issuers: Mapping[str, Mapping[str, Any]]) -> None:
    known: dict[str, str] = {}
    for key, row in issuers.items():
        where = said.where(f"oauth.{key}")
        if (first := known.setdefault(str(row.get("issuer")), key)) != key:
            said.faults.add(where, f"it is the issuer of {first} again", "Keep one of them.")
        if row.get("introspection", "never") != "never" and not (row.get("client_id") and row.get("client_secret")):
            said.faults.add(where, "introspection needs client_id and client_secret", "Add both.")
    asked = [key for key, row in issuers.items() if row.get("introspection", "never") != "never"]
    if len(asked) > 1:
        problem = f"a token that says nothing of itself would be shown to {' and '.join(asked)}"
        said.faults.add(said.where("oauth"), problem, "Leave introspection to one of them.")


def _check_names(said: Fields, issuers: Mapping[str, Mapping[str, Any]], sign_in: SignIn | None) -> None:
    """Refuse two claims for the names of one issuer's people: what one says of somebody can be another in the other."""
    for key, row in issuers.items():
        same = sign_in is not None and row.get("issuer") == sign_in.vouches
        if same and sign_in is not None and row.get("name_claim", _SUBJECT) != sign_in.name_claim:
            problem = f"sign_in has the same issuer, and goes by {sign_in.name_claim}"
            said.faults.add(said.where(f"oauth.{key}.name_claim"), problem, "Name the same claim in both.")


def _sign_in(said: Fields) -> SignIn | None:
    table = said.nested("sign_in", "an object")
    if table is None:
        return None
    row = _table(table, _SIGN_IN, ("client_id", "allow"))
    urls = [name for name in ("authorization_url", "token_url", "userinfo_url") if name in row]
    if "issuer" in row and urls:
        said.faults.add(table.where(urls[0]), "it stands beside issuer", "Keep the issuer, or the three URLs.")
    elif "issuer" not in row and len(urls) < 3:
        missing = "issuer (or authorization_url, token_url and userinfo_url)"
        said.faults.add(table.where("issuer"), f"{missing} is missing", "Say where people sign in.")
    if "allow" in row and not row["allow"]:
        said.faults.add(table.where("allow"), "it is empty, so nobody may come in", 'Name somebody, or write ["*"].')
    return None if len(said.faults) or "client_id" not in row or "allow" not in row else SignIn(**row)


def plain_token(token: KnownToken) -> dict[str, Any]:
    """Return the table that is read to this; who has the token is the table's key."""
    said = {name: getattr(token, name) for name in ("hash", "groups", "scopes") if getattr(token, name)}
    if token.expires is not None:
        said["expires"] = datetime.fromtimestamp(token.expires, UTC).isoformat()
    return said

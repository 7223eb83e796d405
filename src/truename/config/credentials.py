"""Read the ``auth`` of a server's entry: how the gateway gets an access token for that server."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit

from truename.config.access import each, text, url
from truename.config.fields import chosen
from truename.errors import excerpt, spelling_remedy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from truename.config.fields import Fields

__all__ = ["AUTH", "Auth", "ClientCredentials", "Login", "TokenExchange", "plain_auth", "read_auth"]

_TEXT: Final = {"type": "string"}
_WORD: Final = re.compile(r"[!-~]{1,256}")
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
# As RFC 8693 section 3 names them, without what they have in common.
_TOKEN_TYPES: Final = ("access_token", "jwt")
_REQUIRED: Final[Mapping[str, tuple[str, ...]]] = {
    "client_credentials": ("client_id", "client_secret"),
    "login": (),
    "token_exchange": ("client_id", "client_secret"),
}
_ONE_PLACE: Final = frozenset({"client_credentials", "token_exchange"})
_WHAT: Final = (
    "client_credentials: the gateway has a client of its own, and all share its tokens; login: each person's; "
    "token_exchange: each person's, for the token that they came in with."
)


@dataclass(frozen=True, kw_only=True)
class ClientCredentials:
    """An OAuth client of its own, which is given access tokens (RFC 6749 section 4.4) for all who call.

    Its authorization server is looked up (``issuer``), or ``token_url`` says where to ask. ``resource`` is for what the
    tokens are to be good (RFC 8707); None is the server's address, and an empty text says nothing. ``audience`` is
    that in the words of an authorization server that goes by them.
    """

    client_id: str
    client_secret: str = field(repr=False)
    issuer: str | None = None
    token_url: str | None = None
    scopes: tuple[str, ...] = ()
    resource: str | None = None
    audience: str = ""

    def resource_of(self, address: str) -> str:
        """Return for what tokens are asked for."""
        return address if self.resource is None else self.resource


@dataclass(frozen=True, kw_only=True)
class Login:
    """Each person logs in at the server's issuer by themselves, and calls with their own tokens.

    ``client_id`` is what the gateway is there; without a ``client_secret`` it is a public client. What is "" is found
    out when somebody logs in: the issuer from the server, the client by registration.
    """

    client_id: str = ""
    issuer: str = ""
    client_secret: str = field(default="", repr=False)
    scopes: tuple[str, ...] = ()
    resource: str | None = None

    def resource_of(self, address: str) -> str:
        """Return for what tokens are asked for."""
        return address if self.resource is None else self.resource

    @property
    def is_whole(self) -> bool:
        """Whether nothing has to be found out."""
        return bool(self.issuer and self.client_id)


@dataclass(frozen=True, kw_only=True)
class TokenExchange:
    """The token that a caller came in with is exchanged for one for the server (RFC 8693), person by person.

    Only tokens of ``subject_issuers`` are shown to the authorization server: a token that it sees is one that it could
    use. None named is the ``issuer`` itself. ``requested_token_type`` is the last part of the token type's URN.
    """

    client_id: str
    client_secret: str = field(repr=False)
    issuer: str | None = None
    token_url: str | None = None
    scopes: tuple[str, ...] = ()
    resource: str | None = None
    audience: str = ""
    requested_token_type: str = "access_token"  # noqa: S105 - a kind of token, and none
    subject_issuers: tuple[str, ...] = ()

    def resource_of(self, address: str) -> str:
        """Return for what tokens are asked for."""
        return address if self.resource is None else self.resource

    def takes(self, issuer: str) -> bool:
        """Tell whether the tokens of an issuer are exchanged."""
        return bool(issuer) and issuer in (self.subject_issuers or (self.issuer,))

    @property
    def own(self) -> ClientCredentials:
        """What the gateway has for itself, to read the list of tools with."""
        return ClientCredentials(
            client_id=self.client_id,
            client_secret=self.client_secret,
            issuer=self.issuer,
            token_url=self.token_url,
            scopes=self.scopes,
            resource=self.resource,
            audience=self.audience,
        )


Auth = ClientCredentials | Login | TokenExchange


class _AuthRow(NamedTuple):
    read: Callable[[Fields, str], Any]
    schema: Mapping[str, Any]
    what: str


_ROWS: Final[Mapping[str, _AuthRow]] = {
    "client_id": _AuthRow(text, _TEXT, "The gateway's own id at the authorization server."),
    "client_secret": _AuthRow(text, _TEXT, "Its secret there; best a reference."),
    "issuer": _AuthRow(url, _TEXT, "The authorization server; its metadata is looked up."),
    "token_url": _AuthRow(url, _TEXT, "Where tokens are asked for, if there is no metadata."),
    "scopes": _AuthRow(each(_WORD, "a scope"), {"type": "array", "items": _TEXT}, "The scopes that are asked for."),
    "resource": _AuthRow(
        text, _TEXT, "The resource that the tokens are for; else the server's address. Empty: none is sent."
    ),
    "audience": _AuthRow(text, _TEXT, "The same, in the authorization server's own words."),
    "requested_token_type": _AuthRow(*chosen(_TOKEN_TYPES, "Which kind of token is asked for in exchange.")),
    "subject_issuers": _AuthRow(
        each(_WORD, "an issuer"),
        {"type": "array", "items": _TEXT},
        "Whose tokens are exchanged there; else those of the issuer itself.",
    ),
}


_KINDS: Final[Mapping[str, type[Auth]]] = {
    "client_credentials": ClientCredentials,
    "login": Login,
    "token_exchange": TokenExchange,
}

AUTH: Final[Mapping[str, Any]] = {
    "description": "How access tokens for it are had.",
    "if": {"type": "object", "required": ["type"]},
    "then": {
        "properties": {
            "type": {"enum": list(_KINDS), "description": _WHAT},
            **{name: {**row.schema, "description": row.what} for name, row in _ROWS.items()},
        },
        "required": ["type"],
        "additionalProperties": False,
    },
}


def read_auth(fields: Fields, address: str | None, headers: Mapping[str, str]) -> Auth | None:
    """Return how tokens are had for a server; clients' own ``auth``, which has no ``type``, means nothing here."""
    said = fields.raw("auth")
    if not isinstance(said, dict) or "type" not in said:
        return None
    table = fields.nested("auth", "an object")
    assert table is not None  # noqa: S101 - it is an object
    before = len(fields.faults)
    kind = table.text("type") or ""
    if kind not in _KINDS:
        problem = f"{excerpt(kind)} is no way to get tokens"
        fields.faults.add(table.where("type"), problem, spelling_remedy(kind, tuple(_KINDS)))
        return None
    _check(table, kind)
    _check_target(table, address, headers)
    given = {name: row.read(table, name) for name, row in _ROWS.items() if name in table}
    if len(fields.faults) > before:
        return None
    return _KINDS[kind](**{name: value for name, value in given.items() if value is not None})


def _check(table: Fields, kind: str) -> None:
    add, where = table.faults.add, table.where
    known = tuple(name for name in _ROWS if name in _KINDS[kind].__dataclass_fields__)
    for word in table:
        if word != "type" and word not in known:
            add(where(excerpt(word)[1:-1]), f"it is not a setting of {kind}", spelling_remedy(word, known))
    for word in _REQUIRED[kind]:
        if word not in table:
            add(where(word), "it is missing", "Say it.")
    if kind in _ONE_PLACE and ("issuer" in table) == ("token_url" in table):
        add(where("issuer"), "it needs either issuer or token_url", "Say one of them.")
    if kind == "login" and "client_secret" in table:
        # A server that may name where to log in would be told the secret there.
        for word in ("issuer", "client_id"):
            if word not in table:
                add(where(word), "it is missing beside client_secret", "Say whose secret it is, and for whom.")
    if kind == "token_exchange" and "issuer" not in table and not table.raw("subject_issuers"):
        add(where("subject_issuers"), "nobody is named whose tokens are exchanged", "Name the issuer of your callers.")


def _check_target(table: Fields, address: str | None, headers: Mapping[str, str]) -> None:
    add, where = table.faults.add, table.where
    problem = "only a server with a url takes tokens" if address is None else _unfit(address)
    if problem:
        remedy = "Leave auth out; give programs what they need by env." if address is None else "Correct the address."
        add(where("type"), problem, remedy)
    if any(name.lower() == "authorization" for name in headers):
        add(where("type"), "there is an Authorization header too", "Keep one of them.")


def _unfit(address: str) -> str | None:
    """Say why no token may be sent to an address."""
    try:
        parts = urlsplit(address)
        host = parts.hostname
    except ValueError:
        return None  # which is told already
    if "@" in parts.netloc:
        return "there are credentials in the address too"
    return "tokens would travel unencrypted" if parts.scheme == "http" and host not in _LOOPBACK else None


def plain_auth(auth: Auth) -> dict[str, Any]:
    """Return the table that is read back to this."""
    kind = next(name for name, one in _KINDS.items() if isinstance(auth, one))
    said = {name: getattr(auth, name, None) for name in _ROWS}
    # An empty resource says something.
    told = {name: value for name, value in said.items() if value or (name == "resource" and value is not None)}
    return {"type": kind, **told}

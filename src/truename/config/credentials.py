"""The table ``auth`` of a server's entry: how the gateway gets an access token for that server."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from truename.config.field_types import TEXT, URL, choice, each
from truename.config.fields import plain_table, read_table, required, rows_of, setting
from truename.errors import excerpt, spelling_remedy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.config.fields import Fields, Setting

__all__ = ["AUTH", "AUTH_ROWS", "Auth", "ClientCredentials", "Login", "TokenExchange", "plain_auth", "read_auth"]

_WORD: Final = re.compile(r"[!-~]{1,256}")
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
# The last parts of the URNs of RFC 8693 section 3.
_TOKEN_TYPES: Final = ("access_token", "jwt")
_SCOPES: Final = each(_WORD, "a scope")
_KINDS_IN_WORDS: Final = (
    "client_credentials: the gateway's own OAuth client, whose tokens all callers share; login: each person logs in; "
    "token_exchange: the token that a person connected with is exchanged."
)


@dataclass(frozen=True, kw_only=True)
class TokenRequest:
    """An OAuth client of the gateway, and what its access tokens are for."""

    client_id: str = field(metadata=required(TEXT, "OAuth client id of the gateway at the authorization server."))
    client_secret: str = field(
        repr=False, metadata=required(TEXT, "OAuth client secret of the gateway; write a reference.", secret=True)
    )
    issuer: str | None = setting(None, URL, "Authorization server, whose metadata is looked up.")
    token_url: str | None = setting(None, URL, "Token endpoint of an authorization server without metadata.")
    scopes: tuple[str, ...] = setting((), _SCOPES, "Scopes to request.")
    resource: str | None = setting(
        None, TEXT, "Resource that the tokens are for (RFC 8707); without it the server's address, none if empty."
    )
    audience: str = setting("", TEXT, "Audience to request, for an authorization server that ignores resources.")

    def resource_of(self, address: str) -> str:
        """Return the resource to request tokens for."""
        return address if self.resource is None else self.resource


@dataclass(frozen=True, kw_only=True)
class ClientCredentials(TokenRequest):
    """An OAuth client of its own, which gets access tokens (RFC 6749 section 4.4) for all callers."""


@dataclass(frozen=True, kw_only=True)
class Login:
    """Each person logs in at the server's authorization server, and calls with their own tokens.

    Without a ``client_secret`` the gateway is a public client there. An empty ``issuer`` is looked up at the server, an
    empty ``client_id`` is registered, when somebody logs in.
    """

    client_id: str = setting("", TEXT, "OAuth client id of the gateway; without it the gateway registers itself.")
    issuer: str = setting("", URL, "Authorization server; without it the server's metadata names it.")
    client_secret: str = setting(
        "", TEXT, "OAuth client secret of the gateway, if it has one; write a reference.", secret=True
    )
    scopes: tuple[str, ...] = setting((), _SCOPES, "Scopes to request.")
    resource: str | None = setting(
        None, TEXT, "Resource that the tokens are for (RFC 8707); without it the server's address, none if empty."
    )

    def resource_of(self, address: str) -> str:
        """Return the resource to request tokens for."""
        return address if self.resource is None else self.resource

    @property
    def is_whole(self) -> bool:
        """Whether nothing has to be looked up or registered."""
        return bool(self.issuer and self.client_id)


@dataclass(frozen=True, kw_only=True)
class TokenExchange(TokenRequest):
    """The token that a caller connected with is exchanged for one for the server (RFC 8693), person by person."""

    requested_token_type: str = setting("access_token", choice(_TOKEN_TYPES), "Type of token to request in exchange.")
    subject_issuers: tuple[str, ...] = setting(
        (),
        each(_WORD, "an issuer"),
        "Issuers of callers' tokens that may be sent to the authorization server for exchange; default: only `issuer`. "
        "A server that sees a token can use it.",
    )

    def takes(self, issuer: str) -> bool:
        """Return whether an issuer's tokens are exchanged for tokens of the server."""
        return bool(issuer) and issuer in (self.subject_issuers or (self.issuer,))

    @property
    def own(self) -> ClientCredentials:
        """The gateway's own client, to read the list of tools with."""
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

_KINDS: Final[Mapping[str, type[Auth]]] = {
    "client_credentials": ClientCredentials,
    "login": Login,
    "token_exchange": TokenExchange,
}
_ONE_PLACE: Final = frozenset({"client_credentials", "token_exchange"})
AUTH_ROWS: Final[Mapping[str, Mapping[str, Setting]]] = MappingProxyType(
    {name: rows_of(kind) for name, kind in _KINDS.items()}
)
"""The fields of ``auth`` by its ``type``."""

AUTH: Final[Mapping[str, Any]] = {
    "if": {"type": "object", "required": ["type"]},
    "then": {
        "properties": {
            "type": {"enum": list(_KINDS), "description": _KINDS_IN_WORDS},
            **{
                name: {"description": row.meaning, **row.type.schema}
                for rows in reversed(list(AUTH_ROWS.values()))
                for name, row in rows.items()
            },
        },
        "required": ["type"],
        "additionalProperties": False,
    },
}
"""The JSON Schema of ``auth``; a client's own ``auth``, which has no ``type``, is left alone."""


def read_auth(fields: Fields, address: str | None, headers: Mapping[str, str]) -> Auth | None:
    """Return how the gateway gets tokens for a server; a client's own ``auth``, which has no ``type``, is ignored."""
    given = fields.raw("auth")
    if not isinstance(given, dict) or "type" not in given or (table := fields.nested("auth")) is None:
        return None
    before = len(fields.errors)
    kind = table.text("type") or ""
    if kind not in _KINDS:
        table.add("type", f"{excerpt(kind)} is not one of: {', '.join(_KINDS)}", spelling_remedy(kind, _KINDS))
        return None
    found = read_table(table, AUTH_ROWS[kind], others=("type",), wanted=f"a setting of {kind}")
    if kind in _ONE_PLACE and ("issuer" in table) == ("token_url" in table):
        table.add("issuer", "it needs either issuer or token_url", "Write one of them.")
    if kind == "login" and "client_secret" in table:
        # A server that may name its authorization server would be sent the secret there.
        for word in ("issuer", "client_id"):
            if word not in table:
                table.add(word, "it is missing beside client_secret", "Name the issuer and the client of the secret.")
    if kind == "token_exchange" and "issuer" not in table and not table.raw("subject_issuers"):
        problem = "no issuer is named whose tokens are exchanged"
        table.add("subject_issuers", problem, "Name the issuer of your callers' tokens.")
    _check_target(table, address, headers)
    return _KINDS[kind](**found) if len(fields.errors) == before else None


def _check_target(table: Fields, address: str | None, headers: Mapping[str, str]) -> None:
    problem = "only a server with a url takes tokens" if address is None else _unfit(address)
    if problem:
        remedy = (
            "Leave auth out; give programs their credentials by env." if address is None else "Correct the address."
        )
        table.add("type", problem, remedy)
    if any(name.lower() == "authorization" for name in headers):
        table.add("type", "there is an Authorization header too", "Keep one of them.")


def _unfit(address: str) -> str | None:
    """Return why no token may be sent to an address, or None."""
    try:
        parts = urlsplit(address)
        host = parts.hostname
    except ValueError:
        return None  # which is reported already
    if "@" in parts.netloc:
        return "there are credentials in the address too"
    return "tokens would travel unencrypted" if parts.scheme == "http" and host not in _LOOPBACK else None


def plain_auth(auth: Auth) -> dict[str, Any]:
    """Return the table as a file writes it."""
    kind = next(name for name, one in _KINDS.items() if isinstance(auth, one))
    return {"type": kind, **plain_table(auth, AUTH_ROWS[kind])}

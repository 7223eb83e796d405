"""What the gateway proves itself with at a server, as frozen values: the table ``auth`` of an entry."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Auth", "ClientCredentials", "Login", "TokenExchange"]


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

"""What the gateway proves itself with at a server, as frozen values: the table ``auth`` of an entry."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Auth", "ClientCredentials", "Login"]


@dataclass(frozen=True, kw_only=True)
class ClientCredentials:
    """An OAuth client of its own, which is given access tokens (RFC 6749 section 4.4) for all who call.

    Its authorization server is looked up (``issuer``), or ``token_url`` says where to ask. ``resource`` is for what the
    tokens are to be good (RFC 8707); None is the server's address, and an empty text says nothing.
    """

    client_id: str
    client_secret: str = field(repr=False)
    issuer: str | None = None
    token_url: str | None = None
    scopes: tuple[str, ...] = ()
    resource: str | None = None

    def resource_of(self, address: str) -> str:
        """Return for what tokens are asked for."""
        return address if self.resource is None else self.resource


@dataclass(frozen=True, kw_only=True)
class Login:
    """Each person logs in at the server's issuer by themselves, and calls with their own tokens.

    ``client_id`` is what the gateway is there; without a ``client_secret`` it is a public client.
    """

    client_id: str
    issuer: str
    client_secret: str = field(default="", repr=False)
    scopes: tuple[str, ...] = ()
    resource: str | None = None

    def resource_of(self, address: str) -> str:
        """Return for what tokens are asked for."""
        return address if self.resource is None else self.resource


Auth = ClientCredentials | Login

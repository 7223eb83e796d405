"""The short-lived state of a sign-in: the consent, the code and the refresh token."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mcp.server.auth.provider import AuthorizationCode, AuthorizationParams, RefreshToken
from pydantic import AnyUrl, Field

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["ConsentGiven", "IssuedCode", "IssuedRefreshToken"]


@dataclass(frozen=True)
class ConsentGiven:
    """The request to which a person consented; ``client`` is a digest of the client's id."""

    client: str
    params: AuthorizationParams

    def packed(self) -> Sequence[object]:
        """Return the fields needed later as short JSON values."""
        params = self.params
        return [self.client, str(params.redirect_uri), params.state, params.code_challenge, params.scopes or []]

    @classmethod
    def of(cls, packed: Sequence[Any]) -> ConsentGiven:
        """Restore a consent from its packed form."""
        client, redirect_uri, state, challenge, scopes = packed
        params = AuthorizationParams(
            redirect_uri=AnyUrl(redirect_uri),
            redirect_uri_provided_explicitly=True,
            state=state,
            code_challenge=challenge,
            scopes=scopes,
        )
        return cls(client, params)


class IssuedCode(AuthorizationCode):
    """An authorization code, with the session that it starts."""

    session: Any = None
    refresh_token: str = Field(default="", repr=False)


class IssuedRefreshToken(RefreshToken):
    """A refresh token, with its session."""

    session: Any = None

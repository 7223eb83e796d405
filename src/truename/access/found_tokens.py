"""Somebody's tokens for a server whose issuer, or whose client there, was found out when they logged in."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from truename.access.client_tokens import LoginNeeded, NoCredential
from truename.access.granted import TokenRefused
from truename.access.logins import UserTokens
from truename.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from truename.access.arrangements import Arrangements
    from truename.access.fetching import Fetch
    from truename.config.credentials import Login

__all__ = ["FoundTokens"]


class FoundTokens:
    """One person's tokens; with whom and as which client is read anew at each request, as the tokens are."""

    def __init__(
        self, kept: Arrangements, principal: str, *, fetch: Fetch, clock: Callable[[], float] = time.time
    ) -> None:
        self._kept = kept
        self._principal = principal
        self._fetch = kept.within(fetch)
        self._clock = clock
        self._now: tuple[Login, UserTokens] | None = None

    async def token(self) -> str:
        """Return an access token. Raises `LoginNeeded` and `NoCredential`."""
        whole, tokens = self._tokens()
        try:
            return await tokens.token()
        except NoCredential as error:
            cause = error.__cause__
            is_gone = isinstance(cause, TokenRefused) and cause.error == "invalid_client"
            if not is_gone or whole.client_id == self._kept.said.client_id:
                raise
            # The gateway registers itself again when they log in again.
            self._kept.forget_client(whole)
            self._kept.forget(self._principal)
            message = f"the authorization server knows the gateway no more, so the login of {self._principal} is over"
            raise LoginNeeded(message) from error

    def refused(self, token: str) -> None:
        """Renew it next."""
        if self._now is not None:
            self._now[1].refused(token)

    def _tokens(self) -> tuple[Login, UserTokens]:
        try:
            whole = self._kept.of(self._principal)
        except (StoreError, ValueError, KeyError, TypeError) as error:
            message = str(error) if isinstance(error, StoreError) else "what is kept of the login can't be read"
            raise NoCredential(message) from error
        if whole is None:
            message = f"{self._principal} is not logged in there"
            raise LoginNeeded(message)
        if self._now is None or self._now[0] != whole:
            logins, address = self._kept.logins(whole), self._kept.address
            tokens = UserTokens(whole, address, self._principal, logins=logins, fetch=self._fetch, clock=self._clock)
            self._now = whole, tokens
        return self._now

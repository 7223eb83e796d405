"""Access tokens for servers: asked for when they are needed, kept while they are good, renewed before they are not."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, ClassVar, Final, Protocol

import anyio

from truename.access.fetching import FetchFault
from truename.access.granted import Granted, granted, proven
from truename.access.keys import Speaker

if TYPE_CHECKING:
    from collections.abc import Callable

    from truename.access.fetching import Fetch, Fetched
    from truename.config.credentials import ClientCredentials

__all__ = ["ClientTokens", "Credential", "LoginNeeded", "NoCredential"]

# An authorization server that is down is not asked by each call.
_PAUSE: Final = 5.0


class NoCredential(Exception):
    """There is no access token to be had; the text says why, and has nothing secret in it.

    ``kind`` is what such a fault is called.
    """

    kind: ClassVar[str] = "credential"


class LoginNeeded(NoCredential):
    """Somebody has to log in first, or again."""

    kind = "login"


class Credential(Protocol):
    """What a server is shown."""

    async def token(self) -> str:
        """Return an access token that is good now. Raises `NoCredential`."""
        ...

    def refused(self, token: str) -> None:
        """Know that the server did not take a token: the next one is another."""
        ...


class ClientTokens:
    """Tokens of a client's own (RFC 6749 section 4.4), one for all; asked for once, however many wait for it."""

    def __init__(
        self, said: ClientCredentials, address: str, fetch: Fetch, clock: Callable[[], float] = time.time
    ) -> None:
        self._said = said
        self._address = address
        self._speaker = Speaker(said.issuer or "", fetch, clock)
        self._clock = clock
        self._had = Granted()
        self._failure = ""
        self._failed_at = float("-inf")
        self._lock = anyio.Lock()

    async def token(self) -> str:
        """Return an access token. Raises `NoCredential`."""
        if self._clock() >= self._had.until:
            async with self._lock:
                if self._clock() >= self._had.until:
                    await self._renew()
        return self._had.token

    def refused(self, token: str) -> None:
        """Ask for another one next, unless that was done already."""
        if self._had.token == token:
            self._had = Granted()

    async def _renew(self) -> None:
        if self._clock() < self._failed_at + _PAUSE:
            raise NoCredential(self._failure)
        try:
            self._had = granted(await self._asked(), self._clock())
        except FetchFault as error:
            self._failure, self._failed_at = str(error), self._clock()
            raise NoCredential(self._failure) from error

    async def _asked(self) -> Fetched:
        said = self._said
        more, headers = proven(said, {} if said.token_url is not None else await self._speaker.metadata())
        form = {"grant_type": "client_credentials", "scope": " ".join(said.scopes), **more}
        form |= {"resource": said.resource_of(self._address), "audience": said.audience}
        form = {name: value for name, value in form.items() if value}
        found: Fetched = await self._speaker.ask("token_endpoint", said.token_url, form, headers)
        return found

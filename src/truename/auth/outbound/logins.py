"""Store people's tokens for servers, and refresh them.

Processes that share a directory of locks take turns at refreshing one person's tokens; a process that cannot get the
lock in time refreshes without it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
from contextlib import ExitStack, asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio

from truename.auth.in_thread import in_thread
from truename.auth.network.fetch import FetchError
from truename.auth.oauth import (
    IssuerClient,
    TokenRefused,
    TokenResponse,
    client_authentication,
    parse_token_response,
    revoke_tokens,
)
from truename.auth.outbound.tokens import LoginNeeded, NoCredential
from truename.errors import StoreError
from truename.files.lock import locked
from truename.files.private import make_private

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from truename.auth.network.fetch import Fetch
    from truename.auth.vault import Vault
    from truename.config.credentials import Login

__all__ = ["Logins", "UserTokens", "turn"]

log: Final = logging.getLogger("truename.auth")

# Longer than a renewal, which waits ten seconds at most for metadata and ten for the token.
_PATIENCE: Final = 30.0
_TURNS_PAUSE: Final = 0.02


@asynccontextmanager
async def turn(locks: Path | None, *what: str, patience: float = _PATIENCE) -> AsyncIterator[None]:
    """Lock out all processes that do the same and share the directory of locks, during the block.

    There are 256 locks: two things that happen to have the same one wait for each other. A lock ends with its process,
    however that ends. A process that holds one for longer than ``patience`` seconds (it was stopped) is not waited for
    any longer. Without a directory nothing is shared.
    """
    if locks is None:
        yield
        return
    number = hashlib.sha256(json.dumps(what).encode()).digest()[0]
    with await _taken(locks / "turns", f"{number:02x}", patience):
        yield


async def _taken(folder: Path, name: str, patience: float) -> ExitStack:
    deadline = anyio.current_time() + patience
    with ExitStack() as stack:
        while True:
            try:
                make_private(folder)
                # A thread that waits for a lock cannot be cancelled.
                stack.enter_context(locked(folder / name, shared=False, patience=-1.0))
                break
            except TimeoutError:
                if anyio.current_time() > deadline:
                    log.warning(
                        "Another process has held %s for longer than %g seconds; continuing without the lock",
                        folder / name,
                        patience,
                    )
                    break
            except OSError as error:
                log.warning("Cannot lock %s: %s; continuing without the lock", folder, error.strerror or error)
                break
            await anyio.sleep(_TURNS_PAUSE)
        return stack.pop_all()


_KIND: Final = "truename:login"
_PAUSE: Final = 5.0


class Logins:
    """The logins at one server, by principal. All methods raise `StoreError`."""

    def __init__(self, said: Login, address: str, vault: Vault) -> None:
        self._place = json.dumps([_KIND, said.issuer, said.client_id, address])
        self._vault = vault

    def of(self, principal: str) -> TokenResponse | None:
        """Return the tokens of a person, or None, as far as this process heard (`Vault.recent`)."""
        raw = self._vault.recent(self._place, principal)
        return None if raw is None else _read(raw)

    def now(self, principal: str) -> TokenResponse | None:
        """Return the tokens of a person as they are in the database, or None."""
        raw = self._vault.get(self._place, principal)
        return None if raw is None else _read(raw)

    def asks(self, principal: str) -> bool:
        """Return whether `of` has to ask the database."""
        return self._vault.asks(self._place, principal)

    def keep(self, principal: str, had: TokenResponse) -> None:
        """Store the tokens of a person, replacing earlier ones in one step."""
        self._vault.put(self._place, principal, _written(had))

    def follow(self, principal: str, before: TokenResponse, new: TokenResponse | None) -> bool:
        """Replace tokens by new ones, or delete them; return False if ``before`` is no longer stored.

        A renewal must not log in somebody who logged out meanwhile, or replace the tokens of a new login.
        """
        written = None if new is None else _written(new)
        return self._vault.replace(self._place, principal, lambda raw: _read(raw) == before, written)

    def turn(self, principal: str) -> AbstractAsyncContextManager[None]:
        """Lock out all other renewals of a person's tokens, in all processes, during the block."""
        return turn(self._vault.locks, self._place, principal)

    def forget(self, principal: str) -> bool:
        """Delete the tokens of a person; return whether there were any."""
        return self._vault.remove(self._place, principal)

    def principals(self) -> list[tuple[str, int]]:
        """Return each person who is logged in, with the time of their current tokens."""
        return [(principal, at) for place, principal, at in self._vault.entries() if place == self._place]


def _read(raw: bytes) -> TokenResponse:
    kept: dict[str, Any] = json.loads(raw)
    return TokenResponse(kept["token"], kept["until"], kept["refresh"])


def _written(had: TokenResponse) -> bytes:
    kept = {"schema": 1, "token": had.token, "until": had.until, "refresh": had.refresh}
    return json.dumps(kept).encode()


class UserTokens:
    """The tokens of one person for one server, read at each request: a logout takes effect at once everywhere."""

    def __init__(
        self,
        said: Login,
        address: str,
        principal: str,
        *,
        logins: Logins,
        fetch: Fetch,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._said = said
        self._resource = said.resource_of(address)
        self._principal = principal
        self._logins = logins
        self._issuer_client = IssuerClient(said.issuer, fetch, clock)
        self._clock = clock
        self._refused = ""
        self._failure = ""
        self._failed_at = float("-inf")
        self._lock = anyio.Lock()

    async def token(self) -> str:
        """Return an access token. Raises `LoginNeeded` and `NoCredential`."""
        had = await self._had()
        if self._is_good(had):
            return had.token
        async with self._lock, self._logins.turn(self._principal):
            had = await self._had(anew=True)
            return had.token if self._is_good(had) else (await self._renewed(had)).token

    def refused(self, token: str) -> None:
        """Renew the token at the next request, since the server refused it."""
        self._refused = token

    def _is_good(self, had: TokenResponse) -> bool:
        return self._clock() < had.until and had.token != self._refused

    async def _had(self, *, anew: bool = False) -> TokenResponse:
        """Return the tokens; ``anew`` those in the database, where another process may have renewed them just now."""
        look = self._logins.now if anew else self._logins.of
        try:
            if anew or self._logins.asks(self._principal):
                had = await in_thread(partial(look, self._principal))
            else:
                had = look(self._principal)
        except (StoreError, ValueError, KeyError, TypeError) as error:
            message = str(error) if isinstance(error, StoreError) else "the stored login is not readable"
            raise NoCredential(message) from error
        if had is None:
            message = f"{self._principal} is not logged in at the server"
            raise LoginNeeded(message)
        return had

    async def _renewed(self, had: TokenResponse) -> TokenResponse:
        if not had.refresh:
            message = f"the login of {self._principal} has expired"
            raise LoginNeeded(message)
        if self._clock() < self._failed_at + _PAUSE:
            raise NoCredential(self._failure)
        try:
            more, headers = client_authentication(self._said, await self._issuer_client.metadata())
            form = {"grant_type": "refresh_token", "refresh_token": had.refresh, "resource": self._resource, **more}
            form = {name: value for name, value in form.items() if value}
            new = parse_token_response(
                await self._issuer_client.ask("token_endpoint", None, form, headers), self._clock()
            )
            # A server that does not rotate its refresh token may omit it.
            new = new if new.refresh else TokenResponse(new.token, new.until, had.refresh)
            is_kept = await in_thread(partial(self._logins.follow, self._principal, had, new))
        except TokenRefused as error:
            return await self._after(error, had)
        except (FetchError, StoreError) as error:
            self._failure, self._failed_at = str(error), self._clock()
            raise NoCredential(self._failure) from error
        return new if is_kept else await self._had_anew(new)

    async def _had_anew(self, stray: TokenResponse) -> TokenResponse:
        """Return the current tokens; if the person logged out meanwhile, try to revoke the renewed ones."""
        try:
            return await self._had(anew=True)
        except LoginNeeded:
            with suppress(FetchError):
                await revoke_tokens(self._said, stray, self._issuer_client)
            raise

    async def _after(self, error: TokenRefused, had: TokenResponse) -> TokenResponse:
        """Handle a refused renewal: use the tokens that another process renewed meanwhile, else end the login."""
        now = await self._had(anew=True)
        if now.refresh != had.refresh:
            return now
        if error.error == "invalid_grant":
            await in_thread(partial(self._logins.follow, self._principal, had, None))
            message = f"the login of {self._principal} has ended"
            raise LoginNeeded(message) from error
        self._failure, self._failed_at = str(error), self._clock()
        raise NoCredential(self._failure) from error

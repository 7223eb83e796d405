"""The doors of the gateway: all ways to be let in over HTTP, and what is told to whom they are closed."""

from __future__ import annotations

import hmac
import logging
import time
from typing import TYPE_CHECKING, Final

from truename.access.admission import Admission, Refusal, bearer_of
from truename.access.events import Turnstile, ignore_access
from truename.access.tokens import PREFIX, TokenStore
from truename.config.access import TOKENS
from truename.errors import StoreError
from truename.policy.principal import LOCAL, Principal

if TYPE_CHECKING:
    from collections.abc import Callable

    from truename.access.admission import Way
    from truename.access.events import OnAccess
    from truename.access.tokens import StaticToken
    from truename.config import Config

__all__ = ["Doors", "asks_for_credentials", "token_store"]

log: Final = logging.getLogger("truename.access")

_UNKNOWN: Final = Refusal(error="invalid_token", text="The token is not known here, has expired, or was revoked.")
_BROKEN: Final = Refusal(error="temporarily_unavailable", text="Tokens can't be checked now. Try again later.")


def token_store(config: Config) -> TokenStore:
    """Return the static tokens of a configuration."""
    directory = config.access_path()
    return TokenStore(None if directory is None else directory / TOKENS, config.settings.access.tokens)


def asks_for_credentials(config: Config) -> bool:
    """Tell whether callers have to prove who they are: a token was set or made, or OAuth or sign-in is configured."""
    settings = config.settings
    return settings.token is not None or settings.access.asks or token_store(config).exists


class _OneToken:
    """The setting ``token``: one secret, one name."""

    def __init__(self, token: str, name: str) -> None:
        self._token = token.encode()
        self._is_good = True
        self._admission = Admission(principal=Principal(name=name), stands=lambda: self._is_good)

    def end(self) -> None:
        """Have what was begun with it end."""
        self._is_good = False

    def is_same(self, token: str | None, name: str) -> bool:
        """Tell whether settings mean this one."""
        return token is not None and self.knows(token) and self._admission.principal.name == name

    def knows(self, token: str) -> bool:
        return hmac.compare_digest(token.encode(), self._token)

    async def admit(self, _: str) -> Admission | Refusal:
        return self._admission


class _StaticTokens:
    """Tokens that an operator made, kept as digests."""

    def __init__(self, store: TokenStore, clock: Callable[[], float]) -> None:
        self.store = store
        self._clock = clock

    def knows(self, token: str) -> bool:
        # One that is misspelt too: nearly all of a secret is shown to no issuer that is asked about tokens.
        return token.startswith(PREFIX)

    async def admit(self, token: str) -> Admission | Refusal:
        try:
            found = self.store.holder(token, self._clock())
        except StoreError as error:
            log.error("static tokens can't be checked: %s", error)  # noqa: TRY400 - the text says it all
            return _BROKEN
        if found is None:
            return _UNKNOWN
        return Admission(principal=found.principal, until=found.expires, stands=lambda: self._stands(found))

    def _stands(self, token: StaticToken) -> bool:
        try:
            return self.store.stands(token, self._clock())
        except StoreError:
            return False


class Doors:
    """Who it is that asks. ``ways`` are the ways in besides static tokens; the first that knows a token judges it."""

    def __init__(
        self,
        store: TokenStore,
        *,
        token: str | None = None,
        token_name: str = LOCAL.name,
        ways: tuple[Way, ...] = (),
        clock: Callable[[], float] = time.time,
        on_access: OnAccess = ignore_access,
    ) -> None:
        self._turnstile = Turnstile(on_access)
        self._one = None if token is None else _OneToken(token, token_name)
        self._static = _StaticTokens(store, clock)
        self._others = ways
        self._local = Admission(principal=LOCAL, stands=lambda: self.are_open)

    def retune(self, store: TokenStore, *, token: str | None, token_name: str) -> None:
        """Have other static tokens; what was begun with those that are gone ends."""
        self._static.store = store
        if self._one is None or not self._one.is_same(token, token_name):
            if self._one is not None:
                self._one.end()
            self._one = None if token is None else _OneToken(token, token_name)

    @property
    def are_open(self) -> bool:
        """Whether nothing is asked for. From the first static token on something is, in running gateways too."""
        return self._one is None and not self._others and not self._static.store.exists

    async def admit(self, authorization: list[str]) -> Admission | Refusal:
        """Return who sent these Authorization headers, or why they are not let in."""
        if self.are_open:
            return self._local
        found = await self._judged(authorization)
        # Who has no token yet is about to get one.
        if isinstance(found, Refusal) and found.error:
            self._turnstile.turned_away(found.text)
        return found

    async def _judged(self, authorization: list[str]) -> Admission | Refusal:
        token = bearer_of(authorization)
        if isinstance(token, Refusal):
            return token
        ways: tuple[Way, ...] = (self._static, *self._others)
        for way in ways if self._one is None else (self._one, *ways):
            if way.knows(token):
                return await way.admit(token)
        return _UNKNOWN

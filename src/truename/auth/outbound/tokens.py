"""Obtain access tokens for servers: client credentials, and token exchange (RFC 8693)."""

from __future__ import annotations

import hashlib
import time
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Final, Protocol

import anyio

from truename.auth.network.fetch import FetchError
from truename.auth.oauth import IssuerClient, TokenResponse, granted, proven
from truename.cache import LRUCache

if TYPE_CHECKING:
    from collections.abc import Callable

    from truename.auth.inbound.authentication import Authenticated
    from truename.auth.network.fetch import Fetch, FetchedDocument
    from truename.config.credentials import ClientCredentials, TokenExchange

__all__ = [
    "CallerTokenNeeded",
    "ClientTokens",
    "ExchangedTokens",
    "LoginNeeded",
    "NoCredential",
    "ServerCredential",
    "TokenCaller",
    "TokenExchanges",
]

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


class ServerCredential(Protocol):
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
        self._speaker = IssuerClient(said.issuer or "", fetch, clock)
        self._clock = clock
        self._had = TokenResponse()
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
            self._had = TokenResponse()

    async def _renew(self) -> None:
        if self._clock() < self._failed_at + _PAUSE:
            raise NoCredential(self._failure)
        try:
            self._had = granted(await self._asked(), self._clock())
        except FetchError as error:
            self._failure, self._failed_at = str(error), self._clock()
            raise NoCredential(self._failure) from error

    async def _asked(self) -> FetchedDocument:
        said = self._said
        more, headers = proven(said, {} if said.token_url is not None else await self._speaker.metadata())
        form = {"grant_type": "client_credentials", "scope": " ".join(said.scopes), **more}
        form |= {"resource": said.resource_of(self._address), "audience": said.audience}
        form = {name: value for name, value in form.items() if value}
        found: FetchedDocument = await self._speaker.ask("token_endpoint", said.token_url, form, headers)
        return found


_GRANT: Final = "urn:ietf:params:oauth:grant-type:token-exchange"
_TYPE: Final = "urn:ietf:params:oauth:token-type:"
_ACCESS_TOKEN: Final = f"{_TYPE}access_token"
# What can be shown to a server: no ID token, no assertion, nothing to renew with.
_ISSUED: Final = frozenset({_ACCESS_TOKEN, f"{_TYPE}jwt"})
_MOST: Final = 2_000
# What was refused is not asked for by each call.


class CallerTokenNeeded(NoCredential):
    """The caller has shown no token that can be exchanged, or it is over."""

    kind = "caller"


class TokenCaller:
    """Whose connection it is, as far as tokens go: known in memory only.

    Somebody can come in with several tokens that let them in alike, and say different things besides (how they proved
    who they are). What a request needs is had for its own; what the connection says by itself goes by the last one.
    """

    def __init__(self) -> None:
        self._last: Authenticated | None = None

    @property
    def admission(self) -> Authenticated | None:
        """How they were let in."""
        asking = _ASKING.get()
        return asking[1] if asking is not None and asking[0] is self else self._last

    def asks(self, admission: Authenticated | None) -> None:
        """Know how they were let in for what this task, and those that it begins, asks for."""
        self._last = admission
        _ASKING.set((self, admission))


_ASKING: Final[ContextVar[tuple[TokenCaller, Authenticated | None] | None]] = ContextVar(
    "truename.asking", default=None
)


@dataclass
class _Had:
    granted: TokenResponse = field(default_factory=TokenResponse)
    failure: str = ""
    failed_at: float = float("-inf")
    lock: anyio.Lock = field(default_factory=anyio.Lock)


class TokenExchanges:
    """The exchanges for one server, each known by the digest of the very token that was exchanged.

    So nobody gets what was given for another's token, and no token of a caller's is kept.
    """

    def __init__(self, said: TokenExchange, address: str, fetch: Fetch, clock: Callable[[], float] = time.time) -> None:
        self._said = said
        self._resource = said.resource_of(address)
        self._speaker = IssuerClient(said.issuer or "", fetch, clock)
        self._clock = clock
        self._had: LRUCache[bytes, _Had] = LRUCache(_MOST)

    async def token(self, admission: Authenticated | None) -> str:
        """Return an access token that is good for the server, for whoever was let in so.

        Raises `CallerTokenNeeded`, and `NoCredential` for one that the authorization server does not exchange.
        """
        token = self._exchangeable(admission)
        had = self._of(token)
        if self._clock() >= had.granted.until:
            async with had.lock:
                if self._clock() >= had.granted.until:
                    await self._renew(had, token)
                # It may have been taken back meanwhile.
                self._exchangeable(admission)
        return had.granted.token

    def refused(self, admission: Authenticated | None, token: str) -> None:
        """Know that the server did not take a token: the next one is another."""
        had = None if admission is None else self._had.get(_digest(admission.token))
        if had is not None and had.granted.token == token:
            had.granted = TokenResponse()

    def _exchangeable(self, admission: Authenticated | None) -> str:
        if admission is None or not admission.token:
            message = "this caller came in without an access token of an authorization server"
            raise CallerTokenNeeded(message)
        if not self._said.takes(admission.principal.issuer):
            message = "this caller's token is of an issuer whose tokens are not exchanged there"
            raise CallerTokenNeeded(message)
        is_over = admission.until is not None and self._clock() >= admission.until
        if is_over or not admission.stands():
            message = "the token that this caller came in with is over"
            raise CallerTokenNeeded(message)
        return admission.token

    def _of(self, token: str) -> _Had:
        key = _digest(token)
        if (had := self._had.get(key)) is None:
            had = self._had[key] = _Had()
        return had

    async def _renew(self, had: _Had, token: str) -> None:
        if self._clock() < had.failed_at + _PAUSE:
            raise NoCredential(had.failure)
        try:
            answer = await self._asked(token)
            # Nothing of it is kept but the access token: whoever may come in may have it exchanged again.
            found = replace(granted(answer, self._clock()), refresh="")
            _check(answer, found, token)
            had.granted = found
        except FetchError as error:
            had.failure, had.failed_at = f"this caller's token is not exchanged: {error}", self._clock()
            raise NoCredential(had.failure) from error

    async def _asked(self, token: str) -> FetchedDocument:
        said = self._said
        more, headers = proven(said, {} if said.token_url is not None else await self._speaker.metadata())
        form = {
            "grant_type": _GRANT,
            "subject_token": token,
            "subject_token_type": _ACCESS_TOKEN,
            "requested_token_type": f"{_TYPE}{said.requested_token_type}",
            "scope": " ".join(said.scopes),
            "resource": self._resource,
            "audience": said.audience,
            **more,
        }
        form = {name: value for name, value in form.items() if value}
        found: FetchedDocument = await self._speaker.ask("token_endpoint", said.token_url, form, headers)
        return found


class ExchangedTokens:
    """What a server is shown on the connection of one caller."""

    def __init__(self, exchanges: TokenExchanges, caller: TokenCaller) -> None:
        self._exchanges = exchanges
        self._caller = caller

    async def token(self) -> str:
        """Return an access token that is good now. Raises `NoCredential`."""
        return await self._exchanges.token(self._caller.admission)

    def refused(self, token: str) -> None:
        """Know that the server did not take a token."""
        self._exchanges.refused(self._caller.admission, token)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def _check(answer: FetchedDocument, found: TokenResponse, token: str) -> None:
    """Refuse what is no answer to an exchange (RFC 8693 section 2.2.1). Raises `FetchError`."""
    issued = answer.document().get("issued_token_type")
    if not isinstance(issued, str) or issued not in _ISSUED:
        message = "the authorization server does not say that it is an access token that it gives"
        raise FetchError(message)
    if found.token == token:
        message = "the authorization server gives back the very token that it was sent"
        raise FetchError(message)

"""Obtain access tokens for servers: client credentials, and token exchange (RFC 8693)."""

from __future__ import annotations

import hashlib
import time
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Protocol

import anyio

from truename.auth.network.fetch import FetchError
from truename.auth.oauth import IssuerClient, TokenResponse, client_authentication, parse_token_response
from truename.auth.outbound.refused import LoginNeeded, NoCredential
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

# The pause before asking again, so that not every call asks an authorization server that is down.
_PAUSE: Final = 5.0


class ServerCredential(Protocol):
    """A source of access tokens for one server."""

    async def token(self) -> str:
        """Return a valid access token. Raises `NoCredential`."""
        ...

    def refused(self, token: str) -> None:
        """Discard a token that the server refused; the next one is a new one."""
        ...


class ClientTokens:
    """The client's own tokens (RFC 6749 section 4.4), shared by all callers; concurrent calls send one request."""

    def __init__(
        self, said: ClientCredentials, address: str, fetch: Fetch, clock: Callable[[], float] = time.time
    ) -> None:
        self._said = said
        self._address = address
        self._issuer_client = IssuerClient(said.issuer or "", fetch, clock)
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
        """Discard a token that the server refused, unless it was already replaced."""
        if self._had.token == token:
            self._had = TokenResponse()

    async def _renew(self) -> None:
        if self._clock() < self._failed_at + _PAUSE:
            raise NoCredential(self._failure)
        try:
            self._had = parse_token_response(await self._asked(), self._clock())
        except FetchError as error:
            self._failure, self._failed_at = str(error), self._clock()
            raise NoCredential(self._failure) from error

    async def _asked(self) -> FetchedDocument:
        said = self._said
        more, headers = client_authentication(
            said, {} if said.token_url is not None else await self._issuer_client.metadata()
        )
        form = {"grant_type": "client_credentials", "scope": " ".join(said.scopes), **more}
        form |= {"resource": said.resource_of(self._address), "audience": said.audience}
        form = {name: value for name, value in form.items() if value}
        return await self._issuer_client.ask("token_endpoint", said.token_url, form, headers)


_GRANT: Final = "urn:ietf:params:oauth:grant-type:token-exchange"
_TYPE: Final = "urn:ietf:params:oauth:token-type:"
_ACCESS_TOKEN: Final = f"{_TYPE}access_token"
# The types that may be sent to a server: no ID token, no assertion, no refresh token.
_ISSUED: Final = frozenset({_ACCESS_TOKEN, f"{_TYPE}jwt"})
_MOST: Final = 2_000


class CallerTokenNeeded(NoCredential):
    """The caller has sent no exchangeable token, or it has expired."""

    kind = "caller"


class TokenCaller:
    """The caller of a connection, with their authentication; kept in memory only.

    A caller may authenticate with several tokens that grant the same access but differ in other claims (such as the
    authentication method). A request uses its own; background tasks of the connection use the last one.
    """

    def __init__(self) -> None:
        self._last: Authenticated | None = None

    @property
    def admission(self) -> Authenticated | None:
        """The authentication of the current task, else the last one."""
        asking = _ASKING.get()
        return asking[1] if asking is not None and asking[0] is self else self._last

    def asks(self, admission: Authenticated | None) -> None:
        """Set the authentication for this task, and for the tasks that it starts."""
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
    """The exchanges for one server, cached under a digest of the exchanged token.

    So a caller never receives a token that was issued for another one, and no caller's token is stored.
    """

    def __init__(self, said: TokenExchange, address: str, fetch: Fetch, clock: Callable[[], float] = time.time) -> None:
        self._said = said
        self._resource = said.resource_of(address)
        self._issuer_client = IssuerClient(said.issuer or "", fetch, clock)
        self._clock = clock
        self._had: LRUCache[bytes, _Had] = LRUCache(_MOST)

    async def token(self, admission: Authenticated | None) -> str:
        """Return an access token for the server, on behalf of this caller.

        Raises `CallerTokenNeeded`, and `NoCredential` if the authorization server refuses the exchange.
        """
        token = self._exchangeable(admission)
        had = self._of(token)
        if self._clock() >= had.granted.until:
            async with had.lock:
                if self._clock() >= had.granted.until:
                    await self._renew(had, token)
                # The caller's token may have been revoked meanwhile.
                self._exchangeable(admission)
        return had.granted.token

    def refused(self, admission: Authenticated | None, token: str) -> None:
        """Discard a token that the server refused; the next one is a new one."""
        had = None if admission is None else self._had.get(_digest(admission.token))
        if had is not None and had.granted.token == token:
            had.granted = TokenResponse()

    def _exchangeable(self, admission: Authenticated | None) -> str:
        if admission is None or not admission.token:
            message = "this caller did not authenticate with an access token of an authorization server"
            raise CallerTokenNeeded(message)
        if not self._said.takes(admission.principal.issuer):
            message = "this caller's token comes from an issuer whose tokens are not exchanged for this server"
            raise CallerTokenNeeded(message)
        is_over = admission.until is not None and self._clock() >= admission.until
        if is_over or not admission.stands():
            message = "the token of this caller has expired or was revoked"
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
            # Only the access token is kept: a caller who is still authenticated can exchange again.
            found = replace(parse_token_response(answer, self._clock()), refresh="")
            # The checks of RFC 8693 section 2.2.1.
            issued = answer.document().get("issued_token_type")
            if not isinstance(issued, str) or issued not in _ISSUED:
                message = "the authorization server does not declare the issued token as an access token"
                raise FetchError(message)
            if found.token == token:
                message = "the authorization server returns the same token that it received"
                raise FetchError(message)
            had.granted = found
        except FetchError as error:
            had.failure, had.failed_at = f"cannot exchange this caller's token: {error}", self._clock()
            raise NoCredential(had.failure) from error

    async def _asked(self, token: str) -> FetchedDocument:
        said = self._said
        more, headers = client_authentication(
            said, {} if said.token_url is not None else await self._issuer_client.metadata()
        )
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
        return await self._issuer_client.ask("token_endpoint", said.token_url, form, headers)


class ExchangedTokens:
    """The credential for a server on the connection of one caller."""

    def __init__(self, exchanges: TokenExchanges, caller: TokenCaller) -> None:
        self._exchanges = exchanges
        self._caller = caller

    async def token(self) -> str:
        """Return a valid access token. Raises `NoCredential`."""
        return await self._exchanges.token(self._caller.admission)

    def refused(self, token: str) -> None:
        """Discard a token that the server refused."""
        self._exchanges.refused(self._caller.admission, token)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()

"""Authenticate HTTP requests, and build 401 and 403 responses with WWW-Authenticate challenges."""

from __future__ import annotations

import hmac
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, runtime_checkable
from urllib.parse import urlsplit

from truename.auth.inbound.static_tokens import PREFIX, StaticTokenStore
from truename.errors import StoreError
from truename.policy.principal import LOCAL, Principal

if TYPE_CHECKING:
    from truename.auth.inbound.static_tokens import StaticToken
    from truename.config import Config

__all__ = [
    "METADATA",
    "AccessEvent",
    "AccessEvents",
    "Authenticated",
    "AuthenticationFailure",
    "Authenticator",
    "Authenticators",
    "OnAccess",
    "ProtectedResource",
    "asks_for_credentials",
    "bearer_token",
    "ignore_access",
    "token_store",
]

LONGEST_TOKEN: Final = 16_384

Reason = Literal["", "invalid_request", "invalid_token", "insufficient_scope", "temporarily_unavailable"]
_STATUS: Final = {"invalid_request": 400, "insufficient_scope": 403, "temporarily_unavailable": 503}


def _for_ever() -> bool:
    return True


@dataclass(frozen=True, kw_only=True, eq=False)
class Authenticated:
    """A successful authentication, valid until ``until`` (seconds since 1970), and only while ``stands`` returns True.

    ``token`` is the access token of the caller, if an authorization server issued it. It may be exchanged for another
    one (RFC 8693); it is not stored, and not sent anywhere else.
    """

    principal: Principal
    until: float | None = None
    stands: Callable[[], bool] = field(default=_for_ever, repr=False)
    token: str = field(default="", repr=False)

    @property
    def is_lasting(self) -> bool:
        """Whether it cannot end while the gateway runs."""
        return self.until is None and self.stands is _for_ever


@dataclass(frozen=True, kw_only=True)
class AuthenticationFailure:
    """A failed authentication. ``error`` is an error code of RFC 6750, "" if no credentials were sent.

    ``text`` tells the caller what to do, without the credentials; ``scopes`` are those that would suffice.
    """

    error: Reason = ""
    text: str = "Send a bearer token."
    scopes: tuple[str, ...] = ()

    @property
    def status(self) -> int:
        """The HTTP status of the response."""
        return _STATUS.get(self.error, 401)


class Authenticator(Protocol):
    """A method of authentication."""

    def knows(self, token: str) -> bool:
        """Return whether this authenticator is responsible for a token, judging by its form alone."""
        ...

    async def admit(self, token: str) -> Authenticated | AuthenticationFailure:
        """Authenticate the bearer of a token."""
        ...


@runtime_checkable
class RefreshingAuthenticator(Authenticator, Protocol):
    """A method of authentication that reads from a database whether bearers still stand (`Authenticated.stands`)."""

    async def refresh(self) -> None:
        """Read it again if it changed. Raises nothing."""
        ...


def bearer_token(values: list[str]) -> str | AuthenticationFailure:
    """Return the token of a request's Authorization headers (RFC 6750 section 2.1), or why there is none.

    >>> bearer_token(["bearer abc"])
    'abc'
    >>> bearer_token(["Bearer a", "Bearer b"]).error, bearer_token([]).error
    ('invalid_request', '')
    """
    if not values:
        return AuthenticationFailure()
    if len(values) > 1:
        return AuthenticationFailure(error="invalid_request", text="Send one Authorization header.")
    scheme, _, token = values[0].partition(" ")
    token = token.strip(" ")
    if scheme.lower() != "bearer":
        return AuthenticationFailure()
    if not token.isascii() or not token.isprintable() or " " in token or len(token) > LONGEST_TOKEN or not token:
        return AuthenticationFailure(error="invalid_token", text="This is not a bearer token.")
    return token


What = Literal["signed_in", "sign_in_refused", "sign_in_ended", "turned_away", "logged_in"]
_AT_ONCE: Final = 20.0
_A_SECOND: Final = 1.0


@dataclass(frozen=True, kw_only=True)
class AccessEvent:
    """An authentication event. ``principal`` is the key of the person, "" if unknown; ``client`` is the OAuth client.

    ``server`` is the server of a login on the gateway's page. ``why`` is the reason, without token contents; ``times``
    counts the events since the last report.
    """

    what: What
    principal: str = ""
    client: str = ""
    server: str = ""
    why: str = ""
    times: int = 1


OnAccess = Callable[[AccessEvent], None]
"""A callback for each event, which must neither block nor raise."""


def ignore_access(_: AccessEvent) -> None:
    """Do nothing."""


class AccessEvents:
    """A rate limit for events of refused callers: at most one a second on average.

    Anybody can send wrong tokens at any rate, and must not be able to fill the audit log with them.
    """

    def __init__(self, tell: OnAccess, clock: Callable[[], float] = time.monotonic) -> None:
        self._tell = tell
        self._clock = clock
        self._left = _AT_ONCE
        self._at = clock()
        self._silent = 0

    def turned_away(self, why: str) -> None:
        """Report a refused caller, or count it for the next report."""
        now = self._clock()
        self._left = min(_AT_ONCE, self._left + (now - self._at) * _A_SECOND)
        self._at = now
        self._silent += 1
        if self._left >= 1.0:
            self._left -= 1.0
            times, self._silent = self._silent, 0
            self._tell(AccessEvent(what="turned_away", why=why, times=times))


METADATA: Final = "/.well-known/oauth-protected-resource"


@dataclass(frozen=True, kw_only=True)
class ProtectedResource:
    """The gateway as a protected resource: its identifier, the issuers of its tokens, and the scopes that it requires.

    All endpoints of one gateway are one resource (RFC 8707): the permissions of a token do not depend on the names
    shown.

    >>> ProtectedResource(identifier="https://tools.example/mcp", issuers=("https://idp.example",)).metadata_url
    'https://tools.example/.well-known/oauth-protected-resource/mcp'
    """

    identifier: str
    issuers: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    name: str = "Truename"

    @property
    def metadata_url(self) -> str:
        """The URL of its metadata (RFC 9728 section 3.1)."""
        parts = urlsplit(self.identifier)
        return f"{parts.scheme}://{parts.netloc}{METADATA}{parts.path}"

    @property
    def metadata_paths(self) -> tuple[str, ...]:
        """The paths of its metadata: of the root, of the resource, and all below; none without an issuer."""
        own = urlsplit(self.identifier).path
        return (METADATA, f"{METADATA}{own}", f"{METADATA}{own}/*") if self.issuers else ()

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata of the resource (RFC 9728 section 2)."""
        more = {"scopes_supported": list(self.scopes)} if self.scopes else {}
        return {
            "resource": self.identifier,
            "authorization_servers": list(self.issuers),
            "bearer_methods_supported": ["header"],
            "resource_name": self.name,
            **more,
        }

    def challenge(self, refusal: AuthenticationFailure) -> str:
        """Return the value of WWW-Authenticate for a failed authentication."""
        said = {"error": refusal.error, "error_description": refusal.text if refusal.error else ""}
        if self.issuers:
            said["resource_metadata"] = self.metadata_url
            said["scope"] = " ".join(refusal.scopes or self.scopes)
        listed = ", ".join(f'{key}="{_quotable(value)}"' for key, value in said.items() if value)
        return f"Bearer {listed}".rstrip()


def _quotable(text: str) -> str:
    return "".join(letter for letter in text if letter.isascii() and letter.isprintable() and letter not in '"\\')


log: Final = logging.getLogger("truename.auth")

_UNKNOWN: Final = AuthenticationFailure(
    error="invalid_token", text="The token is unknown, has expired, or was revoked."
)
_BARRED: Final = AuthenticationFailure(error="invalid_token", text="This account was deprovisioned here.")
_BROKEN: Final = AuthenticationFailure(
    error="temporarily_unavailable", text="Tokens cannot be checked. Try again later."
)


def token_store(config: Config) -> StaticTokenStore:
    """Return the static tokens of a configuration."""
    return StaticTokenStore(config.state_location(), config.settings.access.tokens)


def asks_for_credentials(config: Config) -> bool:
    """Return whether callers must authenticate: a token exists, or OAuth or sign-in is configured."""
    settings = config.settings
    if settings.token is not None or settings.access.asks:
        return True
    with token_store(config) as store:
        return store.exists


def asks_for_token(config: Config) -> bool:
    """Return whether clients need a static token: one was set or created, and there is no sign-in."""
    access = config.settings.access
    if access.oauth or access.sign_in:
        return False
    if config.settings.token or access.tokens:
        return True
    with token_store(config) as store:
        return store.exists


class _OneToken:
    """The authenticator of the setting ``token``: one secret, one name."""

    def __init__(self, token: str, name: str) -> None:
        self._token = token.encode()
        self._is_good = True
        self._admission = Authenticated(principal=Principal(name=name), stands=lambda: self._is_good)

    def end(self) -> None:
        """End the sessions that were started with this token."""
        self._is_good = False

    def is_same(self, token: str | None, name: str) -> bool:
        """Return whether settings have the same token and name."""
        return token is not None and self.knows(token) and self._admission.principal.name == name

    def knows(self, token: str) -> bool:
        return hmac.compare_digest(token.encode(), self._token)

    async def admit(self, _: str) -> Authenticated | AuthenticationFailure:
        return self._admission


class _StaticTokens:
    """The authenticator of static tokens, which are stored as digests."""

    def __init__(self, store: StaticTokenStore, clock: Callable[[], float]) -> None:
        self.store = store
        self._clock = clock

    def knows(self, token: str) -> bool:
        # A misspelt token too: it contains most of a secret, which must not be sent to an issuer for introspection.
        return token.startswith(PREFIX)

    async def admit(self, token: str) -> Authenticated | AuthenticationFailure:
        try:
            found = self.store.holder(token, self._clock())
        except StoreError as error:
            log.error("Cannot check static tokens: %s", error)  # noqa: TRY400 - its text says what to do; no traceback
            return _BROKEN
        if found is None:
            return _UNKNOWN
        return Authenticated(principal=found.principal, until=found.expires, stands=lambda: self._stands(found))

    def _stands(self, token: StaticToken) -> bool:
        try:
            return self.store.stands(token, self._clock())
        except StoreError:
            return False


class Authenticators:
    """All authenticators of a gateway. Static tokens come first; the first authenticator that knows a token decides."""

    def __init__(
        self,
        store: StaticTokenStore,
        *,
        token: str | None = None,
        token_name: str = LOCAL.name,
        ways: tuple[Authenticator, ...] = (),
        clock: Callable[[], float] = time.time,
        on_access: OnAccess = ignore_access,
    ) -> None:
        self._refusals = AccessEvents(on_access)
        self._one = None if token is None else _OneToken(token, token_name)
        self._static = _StaticTokens(store, clock)
        self._others = ways
        self.local = Authenticated(principal=LOCAL, stands=lambda: self.are_open)

    def reload(self, store: StaticTokenStore, *, token: str | None, token_name: str) -> None:
        """Replace the static tokens; sessions of tokens that no longer exist end."""
        self._static.store = self._static.store.followed_by(store)
        if self._one is None or not self._one.is_same(token, token_name):
            if self._one is not None:
                self._one.end()
            self._one = None if token is None else _OneToken(token, token_name)

    def close(self) -> None:
        """Close the store of static tokens."""
        self._static.store.close()

    @property
    def are_open(self) -> bool:
        """Whether callers need no credentials. The first static token ends that, in running gateways too."""
        return self._one is None and not self._others and not self._static.store.exists

    async def admit(self, authorization: list[str]) -> Authenticated | AuthenticationFailure:
        """Authenticate a request by its Authorization headers."""
        if self.are_open:
            return self.local
        found = await self._judged(authorization)
        if isinstance(found, Authenticated) and self.is_barred(found.principal):
            found = _BARRED
        # A request without a token is not reported: the client is about to get one.
        if isinstance(found, AuthenticationFailure) and found.error:
            self._refusals.turned_away(found.text)
        return found

    async def refresh(self) -> None:
        """Have `Authenticated.stands` know what changed; ask it after that."""
        for one in self._others:
            if isinstance(one, RefreshingAuthenticator):
                await one.refresh()

    def is_barred(self, principal: Principal) -> bool:
        """Return whether somebody is let in no more, whatever credentials they have."""
        return self._static.store.is_barred(principal.key)

    async def _judged(self, authorization: list[str]) -> Authenticated | AuthenticationFailure:
        token = bearer_token(authorization)
        if isinstance(token, AuthenticationFailure):
            return token
        authenticators: tuple[Authenticator, ...] = (self._static, *self._others)
        for authenticator in authenticators if self._one is None else (self._one, *authenticators):
            if authenticator.knows(token):
                return await authenticator.admit(token)
        return _UNKNOWN

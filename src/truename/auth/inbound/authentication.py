"""Authenticate HTTP requests, and build 401 and 403 responses with WWW-Authenticate challenges."""

from __future__ import annotations

import hmac
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol
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
    "bearer_of",
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
    """Somebody was let in: ``until`` then (seconds since 1970), and as long as ``stands`` says that it holds.

    ``token`` is the access token that they showed, if an authorization server gave it, which may be exchanged for
    another one (RFC 8693): it is kept nowhere, and sent to nobody else.
    """

    principal: Principal
    until: float | None = None
    stands: Callable[[], bool] = field(default=_for_ever, repr=False)
    token: str = field(default="", repr=False)

    @property
    def is_lasting(self) -> bool:
        """Whether it can't end while the gateway runs."""
        return self.until is None and self.stands is _for_ever


@dataclass(frozen=True, kw_only=True)
class AuthenticationFailure:
    """Somebody was not let in. ``error`` is RFC 6750's word for it, "" where no credentials were sent.

    ``text`` says what to do, and nothing of the credentials; ``scopes`` are those that would do.
    """

    error: Reason = ""
    text: str = "Send a bearer token."
    scopes: tuple[str, ...] = ()

    @property
    def status(self) -> int:
        """The HTTP status that says so."""
        return _STATUS.get(self.error, 401)


class Authenticator(Protocol):
    """One way to be let in."""

    def knows(self, token: str) -> bool:
        """Tell whether such a token is this way's to judge; what it looks like is all that may count."""
        ...

    async def admit(self, token: str) -> Authenticated | AuthenticationFailure:
        """Judge a token."""
        ...


def bearer_of(values: list[str]) -> str | AuthenticationFailure:
    """Return the token of a request's Authorization headers (RFC 6750 section 2.1), or why there is none.

    >>> bearer_of(["bearer abc"])
    'abc'
    >>> bearer_of(["Bearer a", "Bearer b"]).error, bearer_of([]).error
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
        return AuthenticationFailure(error="invalid_token", text="That is no bearer token.")
    return token


What = Literal["signed_in", "sign_in_refused", "sign_in_ended", "turned_away", "logged_in"]
_AT_ONCE: Final = 20.0
_A_SECOND: Final = 1.0


@dataclass(frozen=True, kw_only=True)
class AccessEvent:
    """One thing that happened. ``principal`` is the key of whose it is, "" where nobody knows; ``client`` who acts.

    ``server`` is where somebody logged in, by the gateway's own page. ``why`` says what the reason was, and nothing of
    a token; ``times`` how often it happened since it was told last.
    """

    what: What
    principal: str = ""
    client: str = ""
    server: str = ""
    why: str = ""
    times: int = 1


OnAccess = Callable[[AccessEvent], None]
"""Is told of each. It must not wait, and must not raise."""


def ignore_access(_: AccessEvent) -> None:
    """Do nothing."""


class AccessEvents:
    """Tells of those who were turned away, and no more than one a second on the whole.

    Anybody can send wrong tokens, as fast as they like; a journal of them is not to be filled by that.
    """

    def __init__(self, tell: OnAccess, clock: Callable[[], float] = time.monotonic) -> None:
        self._tell = tell
        self._clock = clock
        self._left = _AT_ONCE
        self._at = clock()
        self._silent = 0

    def turned_away(self, why: str) -> None:
        """Tell of one, or count it for the next time that something is told."""
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
    """The gateway as a protected resource: its identifier, who issues tokens for it, and which scopes it wants.

    All addresses of one gateway are one resource (RFC 8707): what a token may do does not depend on the names that
    are shown.

    >>> ProtectedResource(identifier="https://tools.example/mcp", issuers=("https://idp.example",)).metadata_url
    'https://tools.example/.well-known/oauth-protected-resource/mcp'
    """

    identifier: str
    issuers: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    name: str = "Truename"

    @property
    def metadata_url(self) -> str:
        """Where its metadata is (RFC 9728 section 3.1)."""
        parts = urlsplit(self.identifier)
        return f"{parts.scheme}://{parts.netloc}{METADATA}{parts.path}"

    def is_metadata(self, path: str) -> bool:
        """Tell whether this path is where a client may look for it: for the resource, one of its paths, or the root."""
        own = urlsplit(self.identifier).path
        return path in {METADATA, METADATA + own} or path.startswith(f"{METADATA}{own}/")

    @property
    def metadata(self) -> dict[str, Any]:
        """Its metadata (RFC 9728 section 2)."""
        more = {"scopes_supported": list(self.scopes)} if self.scopes else {}
        return {
            "resource": self.identifier,
            "authorization_servers": list(self.issuers),
            "bearer_methods_supported": ["header"],
            "resource_name": self.name,
            **more,
        }

    def challenge(self, refusal: AuthenticationFailure) -> str:
        """Return the value of WWW-Authenticate for somebody who was not let in."""
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
    error="invalid_token", text="The token is not known here, has expired, or was revoked."
)
_BROKEN: Final = AuthenticationFailure(
    error="temporarily_unavailable", text="Tokens can't be checked now. Try again later."
)


def token_store(config: Config) -> StaticTokenStore:
    """Return the static tokens of a configuration."""
    return StaticTokenStore(config.state_location(), config.settings.access.tokens)


def asks_for_credentials(config: Config) -> bool:
    """Tell whether callers have to prove who they are: a token was set or made, or OAuth or sign-in is configured."""
    settings = config.settings
    if settings.token is not None or settings.access.asks:
        return True
    with token_store(config) as store:
        return store.exists


def asks_for_token(config: Config) -> bool:
    """Tell whether clients have to be given a token: one was set or made, and they are not to sign in instead."""
    access = config.settings.access
    if access.oauth or access.sign_in:
        return False
    if config.settings.token or access.tokens:
        return True
    with token_store(config) as store:
        return store.exists


class _OneToken:
    """The setting ``token``: one secret, one name."""

    def __init__(self, token: str, name: str) -> None:
        self._token = token.encode()
        self._is_good = True
        self._admission = Authenticated(principal=Principal(name=name), stands=lambda: self._is_good)

    def end(self) -> None:
        """Have what was begun with it end."""
        self._is_good = False

    def is_same(self, token: str | None, name: str) -> bool:
        """Tell whether settings mean this one."""
        return token is not None and self.knows(token) and self._admission.principal.name == name

    def knows(self, token: str) -> bool:
        return hmac.compare_digest(token.encode(), self._token)

    async def admit(self, _: str) -> Authenticated | AuthenticationFailure:
        return self._admission


class _StaticTokens:
    """Tokens that an operator made, kept as digests."""

    def __init__(self, store: StaticTokenStore, clock: Callable[[], float]) -> None:
        self.store = store
        self._clock = clock

    def knows(self, token: str) -> bool:
        # One that is misspelt too: nearly all of a secret is shown to no issuer that is asked about tokens.
        return token.startswith(PREFIX)

    async def admit(self, token: str) -> Authenticated | AuthenticationFailure:
        try:
            found = self.store.holder(token, self._clock())
        except StoreError as error:
            log.error("static tokens can't be checked: %s", error)  # noqa: TRY400 - the text says it all
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
    """Who it is that asks. ``ways`` are the ways in besides static tokens; the first that knows a token judges it."""

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
        self._turnstile = AccessEvents(on_access)
        self._one = None if token is None else _OneToken(token, token_name)
        self._static = _StaticTokens(store, clock)
        self._others = ways
        self._local = Authenticated(principal=LOCAL, stands=lambda: self.are_open)

    def reload(self, store: StaticTokenStore, *, token: str | None, token_name: str) -> None:
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

    async def admit(self, authorization: list[str]) -> Authenticated | AuthenticationFailure:
        """Return who sent these Authorization headers, or why they are not let in."""
        if self.are_open:
            return self._local
        found = await self._judged(authorization)
        # Who has no token yet is about to get one.
        if isinstance(found, AuthenticationFailure) and found.error:
            self._turnstile.turned_away(found.text)
        return found

    async def _judged(self, authorization: list[str]) -> Authenticated | AuthenticationFailure:
        token = bearer_of(authorization)
        if isinstance(token, AuthenticationFailure):
            return token
        ways: tuple[Authenticator, ...] = (self._static, *self._others)
        for way in ways if self._one is None else (self._one, *ways):
            if way.knows(token):
                return await way.admit(token)
        return _UNKNOWN

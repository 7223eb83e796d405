"""Discover the authorization server of an MCP server (RFC 9728), and remember issuer and client registration."""

from __future__ import annotations

import json
import math
import re
import time
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from truename.auth.in_thread import in_thread
from truename.auth.inbound.authentication import METADATA
from truename.auth.network.addresses import AddressRefused, host_of
from truename.auth.network.fetch import FetchError, Within
from truename.auth.oauth import S256, IssuerClient, TokenRefused, endpoint_in
from truename.auth.outbound.logins import Logins, UserTokens
from truename.auth.outbound.tokens import LoginNeeded, NoCredential
from truename.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from truename.auth.network.fetch import Fetch, FetchedDocument
    from truename.auth.oauth import TokenResponse
    from truename.auth.vault import Vault
    from truename.config.credentials import Login

__all__ = [
    "ClientRegistration",
    "DiscoveredIssuerTokens",
    "LoginRegistrations",
    "LoginSite",
    "covers",
    "discover",
    "find_login_site",
    "login_metadata",
    "parse_challenges",
]

_MOST: Final = 10
_MOST_SCOPES: Final = 50
_LONGEST: Final = 2_048
_LONGEST_CHALLENGE: Final = 8_192
# A request without side effects or session; a server refuses it if the token is missing.
_PING: Final = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
_ACCEPT: Final = {"accept": "application/json, text/event-stream"}
# A parameter of a challenge (RFC 9110 section 11.2); a quoted string is matched as a whole, whatever it contains.
_PARAMETER: Final = re.compile(r"""([!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))""")
_SCOPE: Final = re.compile(r"[!#-\[\]-~]{1,256}")


@dataclass(frozen=True, kw_only=True)
class DiscoveredIssuer:
    """The protected resource metadata of a server: its authorization servers in order, its resource and its scopes."""

    issuers: tuple[str, ...]
    resource: str
    scopes: tuple[str, ...] = ()


async def discover(address: str, fetch: Fetch) -> DiscoveredIssuer:
    """Ask a server for its authorization servers. Raises `FetchError`.

    Reads the metadata that its 401 response names (RFC 9728 section 5.1), else the well-known metadata of its URL or of
    its host. ``fetch`` must not reach nearer zones than the server's (`Within`).
    """
    said = parse_challenges((await fetch(address, document=_PING, headers=_ACCEPT)).challenges)
    named = said.get("resource_metadata")
    for url in _places(address) if named is None else (named,):
        if not _is_usable(url, address):
            break
        answer = await fetch(url)
        if answer.status == 200:
            return _read(answer, address, said.get("scope", ""))
    message = "the server names no authorization server (RFC 9728)"
    raise FetchError(message)


def parse_challenges(challenges: Iterable[str]) -> Mapping[str, str]:
    r"""Parse the parameters of challenges; the first of each name counts.

    >>> parse_challenges(['Bearer error="see scope=all", scope="a b"', "Basic realm=x"])
    {'error': 'see scope=all', 'scope': 'a b', 'realm': 'x'}
    """
    found: dict[str, str] = {}
    for challenge in challenges:
        for name, quoted, plain in _PARAMETER.findall(challenge[:_LONGEST_CHALLENGE]):
            found.setdefault(name.lower(), re.sub(r"\\(.)", r"\1", quoted) or plain)
    return found


def covers(resource: str, address: str) -> bool:
    """Return whether a resource identifier covers a URL: the URL itself, or a prefix of its path.

    >>> covers("https://a.example", "https://a.example/mcp"), covers("https://a.example/m", "https://a.example/mcp")
    (True, False)
    """
    if resource == address:
        return True
    try:
        here, there = urlsplit(address), urlsplit(resource)
        origins = [(one.scheme, one.hostname, one.port or _PORTS.get(one.scheme)) for one in (here, there)]
    except ValueError:
        return False
    is_plain = not there.query and not there.fragment and "@" not in there.netloc
    path = there.path.rstrip("/")
    return origins[0] == origins[1] and is_plain and (here.path == path or here.path.startswith(f"{path}/"))


_PORTS: Final[Mapping[str, int]] = {"https": 443, "http": 80}


def _places(address: str) -> tuple[str, ...]:
    parts = urlsplit(address)
    root, path = f"{parts.scheme}://{parts.netloc}{METADATA}", parts.path.rstrip("/")
    return (f"{root}{path}", root) if path else (root,)


def _is_usable(url: object, address: str) -> bool:
    """Return whether a server may name this URL: HTTPS, or HTTP if its own URL, which you configured, is HTTP."""
    ways = {"https", "http"} if address.startswith("http://") else {"https"}
    try:
        return _is_plain(url) and host_of(str(url))[0] in ways
    except AddressRefused:
        return False


def _is_plain(text: object) -> bool:
    return isinstance(text, str) and len(text) <= _LONGEST and text.isascii() and text.isprintable()


def _read(answer: FetchedDocument, address: str, asked: str) -> DiscoveredIssuer:
    said = answer.document()
    resource = said.get("resource")
    if not isinstance(resource, str) or not _is_plain(resource) or not covers(resource, address):
        # Otherwise one server could obtain tokens for another (RFC 9728 section 3.3).
        message = "the server's metadata describes another resource"
        raise FetchError(message)
    issuers = tuple(one for one in _listed(said, "authorization_servers") if _is_issuer(one, address))[:_MOST]
    if not issuers:
        message = "the server names no usable authorization server"
        raise FetchError(message)
    scopes = asked.split() or _listed(said, "scopes_supported")
    fit = tuple(one for one in scopes if isinstance(one, str) and _SCOPE.fullmatch(one))
    return DiscoveredIssuer(issuers=issuers, resource=resource, scopes=fit[:_MOST_SCOPES])


def _listed(said: Mapping[str, object], name: str) -> list[Any]:
    found = said.get(name)
    return found if isinstance(found, list) else []


def _is_issuer(url: object, address: str) -> bool:
    # An issuer has neither query nor fragment (RFC 8414 section 2).
    return _is_usable(url, address) and not set("?#@\\ ") & set(str(url))


_ISSUER: Final = "truename:issuer"
_CLIENT: Final = "truename:client"
_WAY: Final = "truename:way"


@dataclass(frozen=True, kw_only=True)
class ClientRegistration:
    """The registration of the gateway at an authorization server, valid until ``until`` (seconds since 1970)."""

    client_id: str
    client_secret: str = field(default="", repr=False)
    until: float = math.inf


class LoginRegistrations:
    """The issuers, registrations and logins of one server, whose entry is ``said``. All methods raise `StoreError`."""

    def __init__(self, said: Login, address: str, vault: Vault) -> None:
        self.said = said
        self.address = address
        self._vault = vault
        # A changed entry has its own registrations.
        self._way = json.dumps([_WAY, said.issuer, said.client_id, address])
        self._pin = json.dumps([_ISSUER, address])

    def within(self, fetch: Fetch) -> Fetch:
        """Return the network for the issuer: one that the server named may not be in a nearer zone."""
        return fetch if self.said.issuer else Within(fetch, self.address)

    # Issuer

    def pinned(self) -> DiscoveredIssuer | None:
        """Return the issuer that the server named at the first login, which stays fixed."""
        kept = self._get(self._pin, "")
        if kept is None:
            return None
        return DiscoveredIssuer(issuers=(kept["issuer"],), resource=kept["resource"], scopes=tuple(kept["scopes"]))

    def _pin_to(self, whole: Login) -> None:
        kept = {"issuer": whole.issuer, "resource": whole.resource_of(self.address), "scopes": whole.scopes}
        self._put(self._pin, "", kept)

    # Client

    def client(self, issuer: str, redirect: str) -> ClientRegistration | None:
        """Return the gateway's registration at an issuer for this redirect URI."""
        kept = self._get(_at(issuer), redirect)
        if kept is None:
            return None
        until = math.inf if kept["until"] is None else kept["until"]
        return ClientRegistration(client_id=kept["client_id"], client_secret=kept["client_secret"], until=until)

    def redirects(self, issuer: str) -> list[str]:
        """Return the redirect URIs with which the gateway is registered at an issuer."""
        return [redirect for place, redirect, _ in self._vault.entries() if place == _at(issuer)]

    def keep_client(self, issuer: str, redirect: str, one: ClientRegistration) -> None:
        """Store a registration, replacing an earlier one."""
        until = None if one.until == math.inf else one.until
        kept = {"client_id": one.client_id, "client_secret": one.client_secret, "until": until}
        self._put(_at(issuer), redirect, kept)

    def forget_client(self, whole: Login) -> None:
        """Delete a registration that the issuer no longer knows."""
        for redirect in self.redirects(whole.issuer):
            known = self.client(whole.issuer, redirect)
            if known is not None and known.client_id == whole.client_id:
                self._vault.remove(_at(whole.issuer), redirect)

    # Logins of people

    def of(self, principal: str) -> Login | None:
        """Return the completed login settings of a person; None if they must log in first."""
        if self.said.is_whole:
            return self.said
        kept = self._get(self._way, principal)
        if kept is None:
            return None
        if not self.said.issuer:
            pinned = self.pinned()
            # A login at an issuer that is no longer pinned must be repeated.
            if pinned is None or pinned.issuers != (kept["issuer"],):
                return None
        return replace(
            self.said,
            issuer=kept["issuer"],
            client_id=kept["client_id"],
            client_secret=kept["client_secret"],
            resource=kept["resource"],
            scopes=tuple(kept["scopes"]),
        )

    def asks(self, principal: str) -> bool:
        """Return whether `of` has to ask the database."""
        if self.said.is_whole:
            return False
        return self._vault.asks(self._way, principal) or (not self.said.issuer and self._vault.asks(self._pin, ""))

    def logins(self, whole: Login) -> Logins:
        """Return the logins that were made with these settings."""
        return Logins(whole, self.address, self._vault)

    def keep(self, principal: str, whole: Login, had: TokenResponse) -> None:
        """Store a person's login: their tokens, and the settings that obtained them."""
        self.logins(whole).keep(principal, had)
        if self.said.is_whole:
            return
        if not self.said.issuer:
            self._pin_to(whole)
        kept = {name: getattr(whole, name) for name in ("issuer", "client_id", "client_secret", "scopes")}
        self._put(self._way, principal, {**kept, "resource": whole.resource_of(self.address)})

    def forget(self, principal: str) -> bool:
        """Delete a person's login; return whether it existed."""
        whole = self.of(principal)
        was_known = whole is not None and self.logins(whole).forget(principal)
        if not self.said.is_whole:
            self._vault.remove(self._way, principal)
        return was_known

    def principals(self) -> list[tuple[str, str, int]]:
        """Return each person who is logged in, with the issuer and the time of their current tokens."""
        if self.said.is_whole:
            return [(who, self.said.issuer, at) for who, at in self.logins(self.said).principals()]
        known = [who for place, who, _ in self._vault.entries() if place == self._way]
        ways = [(who, whole) for who in known if (whole := self.of(who)) is not None]
        since = {who: dict(self.logins(whole).principals()) for who, whole in ways}
        return [(who, whole.issuer, since[who][who]) for who, whole in ways if who in since[who]]

    def _get(self, place: str, name: str) -> dict[str, Any] | None:
        raw = self._vault.recent(place, name)
        return None if raw is None else json.loads(raw)

    def _put(self, place: str, name: str, kept: Mapping[str, object]) -> None:
        self._vault.put(place, name, json.dumps({"schema": 1, **kept}).encode())


def _at(issuer: str) -> str:
    return json.dumps([_CLIENT, issuer])


class DiscoveredIssuerTokens:
    """The tokens of one person; settings and tokens are read anew at each request."""

    def __init__(
        self, kept: LoginRegistrations, principal: str, *, fetch: Fetch, clock: Callable[[], float] = time.time
    ) -> None:
        self._kept = kept
        self._principal = principal
        self._fetch = kept.within(fetch)
        self._clock = clock
        self._now: tuple[Login, UserTokens] | None = None

    async def token(self) -> str:
        """Return an access token. Raises `LoginNeeded` and `NoCredential`."""
        whole, tokens = await self._tokens()
        try:
            return await tokens.token()
        except NoCredential as error:
            cause = error.__cause__
            is_gone = isinstance(cause, TokenRefused) and cause.error == "invalid_client"
            if not is_gone or whole.client_id == self._kept.said.client_id:
                raise
            # The gateway registers again at the next login.
            await in_thread(partial(self._forget, whole))
            message = f"the authorization server no longer knows the gateway; {self._principal} must log in again"
            raise LoginNeeded(message) from error

    def refused(self, token: str) -> None:
        """Renew the token at the next request, since the server refused it."""
        if self._now is not None:
            self._now[1].refused(token)

    def _forget(self, whole: Login) -> None:
        self._kept.forget_client(whole)
        self._kept.forget(self._principal)

    async def _tokens(self) -> tuple[Login, UserTokens]:
        try:
            if self._kept.asks(self._principal):
                whole = await in_thread(partial(self._kept.of, self._principal))
            else:
                whole = self._kept.of(self._principal)
        except (StoreError, ValueError, KeyError, TypeError) as error:
            message = str(error) if isinstance(error, StoreError) else "the stored login is not readable"
            raise NoCredential(message) from error
        if whole is None:
            message = f"{self._principal} is not logged in at the server"
            raise LoginNeeded(message)
        if self._now is None or self._now[0] != whole:
            logins, address = self._kept.logins(whole), self._kept.address
            tokens = UserTokens(whole, address, self._principal, logins=logins, fetch=self._fetch, clock=self._clock)
            self._now = whole, tokens
        return self._now


@dataclass(frozen=True, kw_only=True)
class LoginSite:
    """The issuer at which to log in for a server; ``fetch`` is limited to the zones that it may name."""

    said: Login
    kept: LoginRegistrations
    issuer_client: IssuerClient
    fetch: Fetch
    clock: Callable[[], float]


async def find_login_site(
    kept: LoginRegistrations, fetch: Fetch, *, may_move: bool = False, clock: Callable[[], float] = time.time
) -> LoginSite:
    """Find the issuer at which to log in. Raises `FetchError` and `StoreError`.

    Of several issuers that a server names, the first usable one is chosen and stays fixed: if the server names another
    one after the first login, nobody is sent there, unless the caller sets ``may_move``.
    """
    said = kept.said
    if said.issuer:
        return LoginSite(
            said=said, kept=kept, issuer_client=IssuerClient(said.issuer, fetch, clock), fetch=fetch, clock=clock
        )
    within = kept.within(fetch)
    pinned = await in_thread(kept.pinned)
    found = await _found(kept.address, within, pinned, may_move=may_move)
    problem = ""
    for issuer in found.issuers:
        issuer_client = IssuerClient(issuer, within, clock)
        try:
            await login_metadata(issuer_client)
        except FetchError as fault:
            problem = problem or str(fault)
            continue
        resource = found.resource if said.resource is None else said.resource
        whole = replace(said, issuer=issuer, resource=resource, scopes=said.scopes or found.scopes)
        return LoginSite(said=whole, kept=kept, issuer_client=issuer_client, fetch=within, clock=clock)
    raise FetchError(problem)


async def _found(address: str, fetch: Fetch, pinned: DiscoveredIssuer | None, *, may_move: bool) -> DiscoveredIssuer:
    try:
        found = await discover(address, fetch)
    except FetchError:
        # Without a response the pinned issuer stays valid.
        if pinned is None:
            raise
        return pinned
    if pinned is None or (may_move and not set(pinned.issuers) & set(found.issuers)):
        return found
    if set(pinned.issuers) & set(found.issuers):
        return replace(found, issuers=pinned.issuers)
    message = (
        f"the server now names the issuer {found.issuers[0]}, and named {pinned.issuers[0]} at the first login; "
        "if you trust the new one, run `truename login --new-issuer`"
    )
    raise FetchError(message)


async def login_metadata(issuer_client: IssuerClient) -> dict[str, object]:
    """Return the metadata of an issuer that supports logins with PKCE. Raises `FetchError`."""
    metadata = await issuer_client.metadata()
    methods = metadata.get("code_challenge_methods_supported")
    if not isinstance(methods, list) or S256 not in methods:
        message = f"{issuer_client.issuer} does not support PKCE ({S256}), without which codes can be stolen"
        raise FetchError(message)
    for name in ("authorization_endpoint", "token_endpoint"):
        endpoint_in(metadata, name, issuer_client.issuer)
    return metadata

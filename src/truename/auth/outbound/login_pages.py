"""Serve the pages on which a person logs in at a server that their call needs."""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
import secrets
import time
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import anyio
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from truename.auth.html_pages import page
from truename.auth.inbound.authentication import AccessEvent, ignore_access
from truename.auth.network.fetch import FetchError
from truename.auth.outbound.authorization import LoginRequest, client_document, redirect_uri_for, start_login
from truename.auth.outbound.discovery import LoginRegistrations, find_login_site
from truename.auth.owned_caches import OwnedTTLCache, SecretTTLCache
from truename.auth.vault import open_vault
from truename.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping

    from starlette.types import ASGIApp, Receive, Scope, Send

    from truename.auth.authorization_server.provider import BrowserIdentification
    from truename.auth.inbound.authentication import OnAccess
    from truename.auth.network.web import Web
    from truename.auth.oauth import TokenResponse
    from truename.auth.vault import Vault
    from truename.config import Config
    from truename.config.credentials import Login
    from truename.policy.principal import Principal

__all__ = ["LoginAttempt", "LoginPages", "PendingLogins"]

ROOT: Final = "/login/"
CALLBACK: Final = "/login/callback"
_SECONDS: Final = 600.0
_LOOK_EVERY: Final = 0.5
_MOST_BEGUN: Final = 20
_ANOTHERS: Final = "the response comes from another authorization server"
_TOO_OFTEN: Final = "this login was started too often; call again in ten minutes"
_LOGIN_DESK_GONE: Final = (
    "this login is unknown: it has expired, was completed before, or was started in another browser"
)


@dataclass(eq=False, kw_only=True)
class LoginAttempt:
    """A login that a person is asked to make at a server. The ``link`` is secret and opens its page; ``id`` is not."""

    server: str
    principal: Principal
    kept: LoginRegistrations
    before: TokenResponse | None
    link: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    id: str = field(default_factory=lambda: secrets.token_hex(16))
    over: anyio.Event = field(default_factory=anyio.Event)
    begun: int = 0
    # The sessions with an open elicitation of this login.
    questions: dict[Hashable, anyio.Event] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class _PendingLogin:
    """A person who was sent to the authorization server; ``browser`` is a digest of their browser's cookie."""

    attempt: LoginAttempt
    request: LoginRequest
    browser: str


class PendingLogins:
    """The logins that people are asked to make, from page to response. ``here`` is the gateway's URL.

    ``recognizer`` identifies the person at a browser, None without sign-in; ``is_near`` means that only this machine
    can reach the gateway; ``tell`` receives an event for each login.
    """

    def __init__(
        self,
        here: str,
        config: Config,
        *,
        recognizer: BrowserIdentification | None = None,
        is_near: bool = False,
        allowed: Iterable[str] = (),
        clock: Callable[[], float] = time.time,
        tell: OnAccess = ignore_access,
    ) -> None:
        self.here = here
        self._tell = tell
        self.recognizer = recognizer
        self._is_near = is_near
        self._config = config
        self._allowed = tuple(allowed)
        self._clock = clock
        self._web: Web | None = None
        self._vault: Vault | None = None
        self._open: OwnedTTLCache[LoginAttempt] = OwnedTTLCache(_SECONDS, clock)
        self._links: SecretTTLCache[LoginAttempt] = SecretTTLCache(_SECONDS, clock)
        self._authorizations: SecretTTLCache[_PendingLogin] = SecretTTLCache(_SECONDS, clock)

    def recognizes(self, principal: Principal) -> bool:
        """Return whether the person at a browser can be identified as this principal."""
        return self.recognizer is not None and principal.issuer == self.recognizer.vouches

    def attempt(self, server: str, said: Login, address: str, principal: Principal) -> LoginAttempt | None:
        """Return the open login of a person, or a new one; None if no page may be shown to them.

        Raises `StoreError` and `ConfigError`.
        """
        if not self._is_near and not self.recognizes(principal):
            return None
        if (known := self.open(said, address, principal)) is not None:
            return known
        self._vault = self._vault or open_vault(self._config)
        kept = LoginRegistrations(said, address, self._vault)
        found = LoginAttempt(server=server, principal=principal, kept=kept, before=_tokens(kept, principal))
        self._open.put((address, said, principal.key), found, whose=principal.key)
        self._links.put(found.link, found, whose=principal.key)
        return found

    def open(self, said: Login, address: str, principal: Principal) -> LoginAttempt | None:
        """Return the open login of a person, or None."""
        found = self._open.look((address, said, principal.key))
        return None if found is None or found.over.is_set() else found

    def url(self, attempt: LoginAttempt) -> str:
        """Return the URL of the login's page, which only its person may receive."""
        return f"{self.here}{ROOT}{attempt.link}"

    def at(self, link: str) -> LoginAttempt | None:
        """Return the open login of a link, or None."""
        found = self._links.look(link)
        return None if found is None or found.over.is_set() else found

    async def wait(self, attempt: LoginAttempt, seconds: float) -> bool:
        """Wait for a login, on this page or on the command line; return whether it was made."""
        with anyio.move_on_after(seconds):
            while not attempt.over.is_set() and not self._is_made(attempt):
                with anyio.move_on_after(_LOOK_EVERY):
                    await attempt.over.wait()
        return attempt.over.is_set()

    async def begin(self, attempt: LoginAttempt, browser: str) -> str:
        """Start a login; return the URL to which to send the browser. Raises `FetchError` and `StoreError`."""
        attempt.begun += 1
        if attempt.begun > _MOST_BEGUN:
            # Each start sends several requests to the authorization server.
            raise FetchError(_TOO_OFTEN)
        from truename.auth.network.web import Web  # noqa: PLC0415 - imports httpx2, which only logins need

        self._web = self._web or Web(self._allowed)
        site = await find_login_site(attempt.kept, self._web, clock=self._clock)
        back = redirect_uri_for(attempt.kept.said, site.said.issuer, self.here + CALLBACK)
        request = await start_login(site, back)
        pending = _PendingLogin(attempt=attempt, request=request, browser=_digest(browser))
        self._authorizations.put(request.state, pending, whose=attempt.principal.key)
        return request.url

    async def finish(self, answer: Mapping[str, str], browser: str, path: str) -> LoginAttempt:
        """Complete a login with the response of the authorization server. Raises `FetchError` and `StoreError`."""
        pending = self._authorizations.look(state := answer.get("state", ""))
        if pending is None or not hmac.compare_digest(pending.browser, _digest(browser)):
            raise FetchError(_LOGIN_DESK_GONE)
        if pending.request.redirect != self.here + path:
            raise FetchError(_ANOTHERS)
        self._authorizations.take(state)
        attempt, request = pending.attempt, pending.request
        tokens = await request.tokens(answer)
        # Two logins may have started before the first of them pinned the issuer.
        pinned = None if attempt.kept.said.issuer else attempt.kept.pinned()
        if pinned is not None and pinned.issuers != (request.said.issuer,):
            raise FetchError(_LOGIN_DESK_GONE)
        attempt.kept.keep(attempt.principal.key, request.said, tokens)
        self._tell(AccessEvent(what="logged_in", principal=attempt.principal.key, server=attempt.server))
        self._links.take(attempt.link)
        attempt.over.set()
        return attempt

    def _is_made(self, attempt: LoginAttempt) -> bool:
        try:
            found = _tokens(attempt.kept, attempt.principal)
        except StoreError:
            return False
        if found is not None and found != attempt.before:
            attempt.over.set()
        return attempt.over.is_set()

    async def close(self) -> None:
        """Close the vault, and the connections to authorization servers."""
        if self._vault is not None:
            self._vault.close()
        if self._web is not None:
            await self._web.close()


def _tokens(kept: LoginRegistrations, principal: Principal) -> TokenResponse | None:
    whole = kept.of(principal.key)
    return None if whole is None else kept.logins(whole).of(principal.key)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


log: Final = logging.getLogger("truename.auth")

CLIENT: Final = "/login/client.json"
_LINK: Final = re.compile(r"/login/([A-Za-z0-9_-]{43})")
_BACK: Final = re.compile(rf"{CALLBACK}(?:/[0-9a-f]{{16}})?")
_LONGEST_BODY: Final = 4 * 1024
_LONGEST_QUERY: Final = 16 * 1024
_FORM: Final = "application/x-www-form-urlencoded"
_NO_STORE: Final = {"cache-control": "no-store", "pragma": "no-cache", "referrer-policy": "no-referrer"}
_GONE: Final = (
    "This login is unknown: it has expired, was completed before, or was started in another browser. If your client "
    "still asks for it, repeat the call."
)
_ANOTHER: Final = (
    "You are not the person who was asked to log in. If somebody sent you this link, they wanted to act as you: tell "
    "your administrator."
)
# The redirect URI of logins on the command line, valid for any port (RFC 8252 section 7.3).
_LOOPBACK: Final = "http://127.0.0.1/callback"


class LoginPages:
    """The ASGI application of logins: a page to start on, the redirect URI, and the gateway's client metadata."""

    def __init__(self, logins: PendingLogins, name: str) -> None:
        self._logins = logins
        self._name = name
        self._is_secure = logins.here.startswith("https://")
        self._cookie = "__Host-truename-login" if self._is_secure else "truename-login"
        if logins.recognizer is not None:
            logins.recognizer.attend(self._cookie, self._recognized)

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths that this application serves: all below one."""
        return (f"{ROOT}*",)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to one request."""
        await self._bounded(scope, receive, send)

    @cached_property
    def _bounded(self) -> ASGIApp:
        from mcp.server.transport_security import RequestBodyLimitMiddleware  # noqa: PLC0415 - imports the SDK (0.6 s), which only logins need

        return RequestBodyLimitMiddleware(self._answer, _LONGEST_BODY)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            response = await self._answered(Request(scope, receive))
        except FetchError as fault:
            # The text contains no secrets, but may contain text of the authorization server.
            log.warning("A login at a server failed: %s", fault)
            response = _error(f"You are not logged in: {fault}.")
        except StoreError as error:
            log.error("A login at a server failed: %s", error)  # noqa: TRY400 - its text says what to do; no traceback
            response = _error("Logins cannot be stored. Try again later.", 503)
        await response(scope, receive, send)

    async def _answered(self, request: Request) -> Response:
        path, method = request.url.path, request.method
        found = _LINK.fullmatch(path)
        if len(request.scope["query_string"]) > _LONGEST_QUERY:
            return _error("The address is too long.", 414)
        if method == "GET" and _BACK.fullmatch(path):
            return await self._came_back(request)
        if (method, path) == ("GET", CLIENT) and self._is_secure:
            here = self._logins.here
            said = client_document(here + CLIENT, (here + CALLBACK, _LOOPBACK), self._name)
            return JSONResponse(said, headers={"cache-control": "public, max-age=300"})
        attempt = None if found is None else self._logins.at(found[1])
        if attempt is None:
            return _error(_GONE, 404)
        if method == "POST":
            return await self._agreed(request, attempt)
        return self._asking(request, attempt) if method == "GET" else Response(status_code=405)

    def _asking(self, request: Request, attempt: LoginAttempt) -> Response:
        """Show the server and the person. A GET starts nothing: programs that preview links send one too."""
        browser = request.cookies.get(self._cookie) or secrets.token_urlsafe(32)
        host = urlsplit(attempt.kept.address).netloc
        body = f"""<h1>Log in at {escape(attempt.server)}?</h1>
<dl><dt>Server address</dt><dd><strong>{escape(host)}</strong></dd>
<dt>Person</dt><dd>{escape(attempt.principal.name)}</dd>
<dt>Allowed to act for you there</dt><dd>{escape(self._name)}, in your own calls only</dd></dl>
<form method="post"><input type="hidden" name="csrf" value="{_csrf(browser, attempt)}">
<button name="answer" value="login">Log in</button></form>
<p class="small">Continue only if your own client just sent you here. Close this page if somebody else did.</p>"""
        answer = page("Log in?", body, 200)
        answer.set_cookie(self._cookie, browser, max_age=3600, httponly=True, secure=self._is_secure, samesite="lax")
        return answer

    async def _agreed(self, request: Request, attempt: LoginAttempt) -> Response:
        browser = request.cookies.get(self._cookie, "")
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        csrf: object = (await request.form()).get("csrf") if kind == _FORM else None
        if not browser or not isinstance(csrf, str):
            return _error(_GONE)
        if not hmac.compare_digest(csrf.encode(), _csrf(browser, attempt).encode()):
            return _error(_GONE, 403)
        recognizer = self._logins.recognizer
        if recognizer is None or not self._logins.recognizes(attempt.principal):
            return _to(await self._logins.begin(attempt, browser))
        return _to(await recognizer.address(browser, attempt.link))

    async def _recognized(self, link: str, browser: str, who: Principal) -> Response:
        attempt = self._logins.at(link)
        if attempt is None:
            return _error(_GONE, 404)
        if who.key != attempt.principal.key:
            log.warning("A login at a server was started by another person than the one who was asked")
            return _error(_ANOTHER, 403)
        try:
            return _to(await self._logins.begin(attempt, browser))
        except FetchError as fault:
            return _error(f"You are not logged in: {fault}.")

    async def _came_back(self, request: Request) -> Response:
        pairs = request.query_params.multi_items()
        said = dict(pairs)
        if len(said) < len(pairs):
            return _error(_GONE)
        attempt = await self._logins.finish(said, request.cookies.get(self._cookie, ""), request.url.path)
        text = f"You are logged in at {escape(attempt.server)}. This window can be closed."
        return page("Logged in", f"<h1>Logged in</h1><p>{text}</p>", 200)


def _csrf(browser: str, attempt: LoginAttempt) -> str:
    return hmac.digest(browser.encode(), attempt.link.encode(), "sha256").hex()


def _to(url: str) -> Response:
    # The form was sent with POST; the browser fetches the redirect with GET.
    return RedirectResponse(url, 303, headers=_NO_STORE)


def _error(text: str, status: int = 400) -> Response:
    return page("Not logged in", f"<h1>Not logged in</h1><p>{escape(text)}</p>", status)

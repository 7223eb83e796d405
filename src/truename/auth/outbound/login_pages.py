"""Serve the pages on which a person logs in at a server that their call needs."""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import re
import secrets
import threading
import time
from dataclasses import asdict, dataclass, field
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import anyio
from anyio import to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from truename.auth.html_pages import page
from truename.auth.inbound.authentication import AccessEvent, ignore_access
from truename.auth.network.fetch import FetchError
from truename.auth.oauth import IssuerClient
from truename.auth.outbound.authorization import LoginRequest, client_document, redirect_uri_for, start_login
from truename.auth.outbound.discovery import LoginRegistrations, LoginSite, find_login_site
from truename.auth.outbound.login_attempts import SECONDS, LoginAttempts
from truename.auth.owned_caches import SecretTTLCache
from truename.auth.vault import open_vault
from truename.config.credentials import Login
from truename.errors import ConfigError, StoreError
from truename.policy.principal import Principal

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping

    from starlette.types import ASGIApp, Receive, Scope, Send

    from truename.auth.authorization_server.provider import BrowserIdentification
    from truename.auth.inbound.authentication import OnAccess
    from truename.auth.network.web import Web
    from truename.auth.oauth import TokenResponse
    from truename.auth.vault import Vault
    from truename.config import Config

__all__ = ["LoginAttempt", "LoginPages", "PendingLogins"]

ROOT: Final = "/login/"
CALLBACK: Final = "/login/callback"
_LOOK_EVERY: Final = 0.5
_ANOTHERS: Final = "the response comes from another authorization server"
_TOO_OFTEN: Final = "this login was started too often; call again in ten minutes"
_LOGIN_DESK_GONE: Final = (
    "this login is unknown: it has expired, was completed before, or was started in another browser"
)


@dataclass(eq=False, kw_only=True)
class LoginAttempt:
    """A login that a person is asked to make at a server. The ``link`` is secret and opens its page; ``id`` is not.

    ``before`` is a digest of the tokens that the person had; "" for none.
    """

    server: str
    principal: Principal
    kept: LoginRegistrations
    before: str
    link: str = field(repr=False)
    id: str
    over: anyio.Event = field(default_factory=anyio.Event)
    # The sessions with an open elicitation of this login.
    questions: dict[Hashable, anyio.Event] = field(default_factory=dict)


class PendingLogins:
    """The logins that people are asked to make, from page to response. ``here`` is the gateway's URL.

    They are recorded in the state database, so that page and response may reach different gateways.
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
        self._opening = threading.Lock()
        self._vault: Vault | None = None
        self._attempts: LoginAttempts | None = None
        # Those that this process knows: who waits for one is told of its end.
        self._known: SecretTTLCache[LoginAttempt] = SecretTTLCache(SECONDS, clock)

    def recognizes(self, principal: Principal) -> bool:
        """Return whether the person at a browser can be identified as this principal."""
        return self.recognizer is not None and principal.issuer == self.recognizer.vouches

    def _store(self) -> LoginAttempts:
        with self._opening:
            self._vault = self._vault or open_vault(self._config)
            self._attempts = self._attempts or LoginAttempts(self._config.state_location(), self._clock)
            return self._attempts

    def _registrations(self, said: Login, address: str) -> LoginRegistrations:
        assert self._vault is not None  # noqa: S101 - it was opened with the store
        return LoginRegistrations(said, address, self._vault)

    async def attempt(self, server: str, said: Login, address: str, principal: Principal) -> LoginAttempt | None:
        """Return the open login of a person, or a new one; None if no page may be shown to them.

        Raises `StoreError` and `ConfigError`.
        """
        if not self._is_near and not self.recognizes(principal):
            return None

        def begin() -> Mapping[str, Any]:
            store = self._store()
            link = secrets.token_urlsafe(32)
            content = {
                "server": server,
                "address": address,
                "entry": asdict(said),
                "principal": [principal.name, principal.issuer],
                "before": _tokens(self._registrations(said, address), principal),
                "link": link,
                "id": secrets.token_hex(16),
            }
            return store.begin(_place(said, address, principal), principal.key, link, content)

        return self._attempt(await to_thread.run_sync(begin))

    def _attempt(self, content: Mapping[str, Any]) -> LoginAttempt:
        """Return the login with this content: the same one while this process knows it."""
        found = self._known.look(content["link"])
        if found is None:
            name, issuer = content["principal"]
            found = LoginAttempt(
                server=content["server"],
                principal=Principal(name=name, issuer=issuer),
                kept=self._registrations(_login(content["entry"]), content["address"]),
                before=content["before"],
                link=content["link"],
                id=content["id"],
            )
            self._known.put(found.link, found, whose=found.principal.key)
        return found

    async def open(self, said: Login, address: str, principal: Principal) -> LoginAttempt | None:
        """Return the open login of a person, or None. Raises `StoreError` and `ConfigError`."""
        return await self._found(lambda store: store.at_place(_place(said, address, principal)))

    async def at(self, link: str) -> LoginAttempt | None:
        """Return the open login of a link, or None. Raises `StoreError` and `ConfigError`."""
        return await self._found(lambda store: store.at(link))

    async def _found(self, find: Callable[[LoginAttempts], Mapping[str, Any] | None]) -> LoginAttempt | None:
        content = await to_thread.run_sync(lambda: find(self._store()))
        attempt = None if content is None else self._attempt(content)
        return None if attempt is None or attempt.over.is_set() else attempt

    def url(self, attempt: LoginAttempt) -> str:
        """Return the URL of the login's page, which only its person may receive."""
        return f"{self.here}{ROOT}{attempt.link}"

    async def wait(self, attempt: LoginAttempt, seconds: float) -> bool:
        """Wait for a login, on a page of any gateway or on the command line; return whether it was made."""
        with anyio.move_on_after(seconds):
            while not attempt.over.is_set() and not await self._is_made(attempt):
                with anyio.move_on_after(_LOOK_EVERY):
                    await attempt.over.wait()
        return attempt.over.is_set()

    async def begin(self, attempt: LoginAttempt, browser: str) -> str:
        """Start a login; return the URL to which to send the browser. Raises `FetchError` and `StoreError`."""
        if not await to_thread.run_sync(lambda: self._store().start(attempt.link)):
            # Each start sends several requests to the authorization server.
            raise FetchError(_TOO_OFTEN)
        net = self._network()
        site = await find_login_site(attempt.kept, net, clock=self._clock)
        back = redirect_uri_for(attempt.kept.said, site.said.issuer, self.here + CALLBACK)
        request = await start_login(site, back)
        content = {
            "attempt": attempt.link,
            "said": asdict(request.said),
            "redirect": request.redirect,
            "verifier": request.verifier,
            "browser": _digest(browser),
        }
        await to_thread.run_sync(lambda: self._store().send(attempt.link, request.state, content))
        return request.url

    def _network(self) -> Web:
        from truename.auth.network.web import Web  # noqa: PLC0415 - imports httpx2, which only logins need

        self._web = self._web or Web(self._allowed)
        return self._web

    async def finish(self, answer: Mapping[str, str], browser: str, path: str) -> LoginAttempt:
        """Complete a login with the response of the authorization server. Raises `FetchError` and `StoreError`."""
        state = answer.get("state", "")
        sent = await to_thread.run_sync(lambda: self._store().sent(state))
        if sent is None or not hmac.compare_digest(sent["browser"], _digest(browser)):
            raise FetchError(_LOGIN_DESK_GONE)
        if sent["redirect"] != self.here + path:
            raise FetchError(_ANOTHERS)
        attempt = await self.at(sent["attempt"])
        if attempt is None or not await to_thread.run_sync(lambda: self._store().take(state)):
            raise FetchError(_LOGIN_DESK_GONE)
        request = self._request(attempt, sent, state)
        tokens = await request.tokens(answer)
        await to_thread.run_sync(lambda: self._keep(attempt, request.said, tokens))
        self._tell(AccessEvent(what="logged_in", principal=attempt.principal.key, server=attempt.server))
        attempt.over.set()
        return attempt

    def _request(self, attempt: LoginAttempt, sent: Mapping[str, Any], state: str) -> LoginRequest:
        """Return the request that some gateway sent a browser with."""
        said, net = _login(sent["said"]), attempt.kept.within(self._network())
        client = IssuerClient(said.issuer, net, self._clock)
        site = LoginSite(said=said, kept=attempt.kept, issuer_client=client, fetch=net, clock=self._clock)
        redirect, verifier = sent["redirect"], sent["verifier"]
        return LoginRequest(site=site, said=said, url="", redirect=redirect, state=state, verifier=verifier)

    def _keep(self, attempt: LoginAttempt, said: Login, tokens: TokenResponse) -> None:
        # Two logins may have started before the first of them pinned the issuer.
        pinned = None if attempt.kept.said.issuer else attempt.kept.pinned()
        if pinned is not None and pinned.issuers != (said.issuer,):
            raise FetchError(_LOGIN_DESK_GONE)
        attempt.kept.keep(attempt.principal.key, said, tokens)
        self._store().end(attempt.link)

    async def _is_made(self, attempt: LoginAttempt) -> bool:
        try:
            found = await to_thread.run_sync(lambda: _tokens(attempt.kept, attempt.principal))
        except StoreError:
            return False
        if found not in {"", attempt.before}:
            attempt.over.set()
        return attempt.over.is_set()

    async def close(self) -> None:
        """Close the databases, and the connections to authorization servers."""
        if self._attempts is not None:
            self._attempts.close()
        if self._vault is not None:
            self._vault.close()
        if self._web is not None:
            await self._web.close()


def _tokens(kept: LoginRegistrations, principal: Principal) -> str:
    """Return a digest of a person's tokens; "" if they have none."""
    whole = kept.of(principal.key)
    found = None if whole is None else kept.logins(whole).of(principal.key)
    return "" if found is None else _digest(json.dumps([found.token, found.until, found.refresh]))


def _place(said: Login, address: str, principal: Principal) -> str:
    return json.dumps([address, asdict(said), principal.key], sort_keys=True)


def _login(fields: Mapping[str, Any]) -> Login:
    return Login(**{**fields, "scopes": tuple(fields["scopes"])})


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
        except ConfigError as error:
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
        attempt = None if found is None else await self._logins.at(found[1])
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
        return _to(await recognizer.address(self._cookie, browser, attempt.link))

    async def _recognized(self, link: str, browser: str, who: Principal) -> Response:
        attempt = await self._logins.at(link)
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

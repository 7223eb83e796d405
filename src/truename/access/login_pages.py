"""The pages on which somebody logs in at a server, because a call of theirs needs it."""

from __future__ import annotations

import hmac
import logging
import re
import secrets
from html import escape
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from mcp.server.transport_security import RequestBodyLimitMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from truename.access.fetching import FetchFault
from truename.access.login_desk import CALLBACK, ROOT
from truename.access.registering import client_document
from truename.access.sign_in.consent import page
from truename.errors import StoreError

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from truename.access.login_desk import Attempt, LoginDesk
    from truename.policy.principal import Principal

__all__ = ["CLIENT", "LoginPages"]

log: Final = logging.getLogger("truename.access")

CLIENT: Final = "/login/client.json"
_LINK: Final = re.compile(r"/login/([A-Za-z0-9_-]{43})")
_BACK: Final = re.compile(rf"{CALLBACK}(?:/[0-9a-f]{{16}})?")
_LONGEST_BODY: Final = 4 * 1024
_LONGEST_QUERY: Final = 16 * 1024
_FORM: Final = "application/x-www-form-urlencoded"
_NO_STORE: Final = {"cache-control": "no-store", "pragma": "no-cache", "referrer-policy": "no-referrer"}
_GONE: Final = (
    "This login is not known: it took too long, was finished before, or was begun in another browser. If your client "
    "still asks for it, have it call again."
)
_ANOTHER: Final = (
    "You are not who was asked to log in. If somebody sent you this address, they wanted to act as you: tell your "
    "administrator."
)
# Where the command line has people come back to, at any port (RFC 8252 section 7.3).
_LOOPBACK: Final = "http://127.0.0.1/callback"


class LoginPages:
    """The application: a page to begin on, the way back, and what the gateway says of itself as a client."""

    def __init__(self, desk: LoginDesk, name: str) -> None:
        self._desk = desk
        self._name = name
        self._is_secure = desk.here.startswith("https://")
        self._cookie = "__Host-truename-login" if self._is_secure else "truename-login"
        self._app = RequestBodyLimitMiddleware(self._answer, _LONGEST_BODY)
        if desk.recognizer is not None:
            desk.recognizer.attend(self._cookie, self._recognized)

    def has(self, path: str) -> bool:
        """Tell whether a path is one of these."""
        return path.startswith(ROOT)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await self._app(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            response = await self._answered(Request(scope, receive))
        except FetchFault as fault:
            # Its text has nothing secret in it, and may have words of the authorization server's.
            log.warning("a login at a server: %s", fault)
            response = _fault(f"You are not logged in: {fault}.")
        except StoreError as error:
            log.error("a login at a server: %s", error)  # noqa: TRY400 - the text says it all
            response = _fault("Logins can't be kept now. Try again later.", 503)
        await response(scope, receive, send)

    async def _answered(self, request: Request) -> Response:
        path, method = request.url.path, request.method
        found = _LINK.fullmatch(path)
        if len(request.scope["query_string"]) > _LONGEST_QUERY:
            return _fault("The address is too long.", 414)
        if method == "GET" and _BACK.fullmatch(path):
            return await self._came_back(request)
        if (method, path) == ("GET", CLIENT) and self._is_secure:
            return self._document()
        attempt = None if found is None else self._desk.at(found[1])
        if attempt is None:
            return _fault(_GONE, 404)
        if method == "POST":
            return await self._agreed(request, attempt)
        return self._asking(request, attempt) if method == "GET" else Response(status_code=405)

    def _document(self) -> Response:
        here = self._desk.here
        said = client_document(here + CLIENT, (here + CALLBACK, _LOOPBACK), self._name)
        return JSONResponse(said, headers={"cache-control": "public, max-age=300"})

    def _asking(self, request: Request, attempt: Attempt) -> Response:
        """Show where it leads and for whom. Nothing is begun by a look: programs that preview links look too."""
        browser = request.cookies.get(self._cookie) or secrets.token_urlsafe(32)
        host = urlsplit(attempt.kept.address).netloc
        body = f"""<h1>Log in at {escape(attempt.server)}?</h1>
<dl><dt>The server is at</dt><dd><strong>{escape(host)}</strong></dd>
<dt>Who logs in</dt><dd>{escape(attempt.principal.name)}</dd>
<dt>What may act for you there then</dt><dd>{escape(self._name)}, in your calls alone</dd></dl>
<form method="post"><input type="hidden" name="csrf" value="{_csrf(browser, attempt)}">
<button name="answer" value="login">Log in</button></form>
<p class="small">Go on only if your own client sent you here just now. Close this page if somebody else did.</p>"""
        answer = page("Log in?", body, 200)
        answer.set_cookie(self._cookie, browser, max_age=3600, httponly=True, secure=self._is_secure, samesite="lax")
        return answer

    async def _agreed(self, request: Request, attempt: Attempt) -> Response:
        browser = request.cookies.get(self._cookie, "")
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        csrf: Any = (await request.form()).get("csrf") if kind == _FORM else None
        if not browser or not isinstance(csrf, str):
            return _fault(_GONE)
        if not hmac.compare_digest(csrf.encode(), _csrf(browser, attempt).encode()):
            return _fault(_GONE, 403)
        recognizer = self._desk.recognizer
        if recognizer is None or not self._desk.recognizes(attempt.principal):
            return _to(await self._desk.begin(attempt, browser))
        return _to(await recognizer.address(browser, attempt.link))

    async def _recognized(self, link: str, browser: str, who: Principal) -> Response:
        attempt = self._desk.at(link)
        if attempt is None:
            return _fault(_GONE, 404)
        if who.key != attempt.principal.key:
            log.warning("a login at a server was begun by somebody else than who was asked to make it")
            return _fault(_ANOTHER, 403)
        try:
            return _to(await self._desk.begin(attempt, browser))
        except FetchFault as fault:
            return _fault(f"You are not logged in: {fault}.")

    async def _came_back(self, request: Request) -> Response:
        pairs = request.query_params.multi_items()
        said = dict(pairs)
        if len(said) < len(pairs):
            return _fault(_GONE)
        attempt = await self._desk.finish(said, request.cookies.get(self._cookie, ""), request.url.path)
        text = f"You are logged in at {escape(attempt.server)}. This window can be closed."
        return page("Logged in", f"<h1>Logged in</h1><p>{text}</p>", 200)


def _csrf(browser: str, attempt: Attempt) -> str:
    return hmac.digest(browser.encode(), attempt.link.encode(), "sha256").hex()


def _to(url: str) -> Response:
    # The form was posted; where it leads is fetched.
    return RedirectResponse(url, 303, headers=_NO_STORE)


def _fault(text: str, status: int = 400) -> Response:
    return page("Not logged in", f"<h1>Not logged in</h1><p>{escape(text)}</p>", status)

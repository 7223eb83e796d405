"""Log in to the console: with an access token, at the identity provider, or, without credentials, at once."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final

from starlette.responses import RedirectResponse, Response

from truename.auth.inbound.authentication import Authenticated
from truename.auth.network.fetch import FetchError
from truename.console.forms import own_form, same_origin_form
from truename.console.rendering import has_htmx, render
from truename.console.sessions import SessionTooLargeError, cookie_name
from truename.policy.principal import LOCAL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

    from truename.auth.authentication_setup import HttpAuthentication
    from truename.auth.sealed_values import SealedValues
    from truename.console.sessions import BrowserSessions
    from truename.gateway import Gateway
    from truename.policy.principal import Principal

__all__ = ["LOGIN_ROUTES", "ConsoleLogin"]

_LOGIN: Final = "/console/login"
_LOGOUT: Final = "/console/logout"
_START: Final = "/console/servers"
_SIGN_IN: Final = "/console/sign-in"
LOGIN_ROUTES: Final[Mapping[tuple[str, str], str]] = {
    ("GET", _LOGIN): "none",
    ("POST", _LOGIN): "same web origin",
    ("GET", _SIGN_IN): "none",
    ("POST", _LOGOUT): "form of the session",
}
"""The routes that need no session, and what guards them."""
_BROWSER: Final = "truename-console-browser"
_REFUSED: Final = "This token is not accepted: it is unknown, has expired, or was revoked."


class ConsoleLogin:
    """Where browsers begin and end their sessions. ``values`` has to be open."""

    def __init__(
        self, gateway: Gateway, front: HttpAuthentication, sessions: BrowserSessions, values: SealedValues
    ) -> None:
        self._gateway = gateway
        self._authenticators = front.authenticators
        self._sessions = sessions
        self._recognizer = front.recognizer
        self._is_secure = front.here.startswith("https://")
        self._browser = cookie_name(values, _BROWSER, is_secure=self._is_secure)
        if self._recognizer is not None:
            self._recognizer.attend(self._browser, self._came_back)
        handlers = (self.ask, self._with_token, self._at_provider, self._out)
        self._handlers = dict(zip(LOGIN_ROUTES, handlers, strict=True))

    @property
    def is_open(self) -> bool:
        """Whether no credentials are needed."""
        return self._authenticators.are_open

    async def answer(self, request: Request) -> Response | None:
        """Answer a request to log in or out; None for another one."""
        handler = self._handlers.get((request.method, request.url.path))
        return None if handler is None else await handler(request)

    async def ask(self, request: Request) -> Response:
        """Let somebody in whose browser has no session, or show them how to log in."""
        if not self.is_open:
            return self._form("")
        # Nobody needs credentials here. The cookie still tells our own forms from another page's.
        target = request.url.path if request.method == "GET" and request.url.path != _LOGIN else _START
        query = f"?{request.url.query}" if request.url.query and target != _START else ""
        response = RedirectResponse(target + query, 303)
        self._sessions.begin(response, LOCAL, self._seconds)
        return response

    @property
    def _seconds(self) -> float:
        return self._gateway.config.settings.console.session

    async def _with_token(self, request: Request) -> Response:
        token = (await same_origin_form(request)).get("token")
        admission = await self._authenticators.admit([f"Bearer {token}"] if isinstance(token, str) else [])
        if not isinstance(admission, Authenticated) or not isinstance(token, str):
            return self._form(_REFUSED, 403)
        response = RedirectResponse(_START, 303)
        try:
            self._sessions.begin_with_token(response, token.strip(), self._seconds)
        except SessionTooLargeError as error:
            return self._form(str(error), 400)
        return response

    async def _at_provider(self, request: Request) -> Response:
        if self._recognizer is None:
            return await self.ask(request)
        browser = secrets.token_urlsafe(32)
        try:
            address = await self._recognizer.address(self._browser, browser, _START)
        except FetchError as problem:
            return self._form(f"The identity provider cannot be reached: {problem}.", 502)
        response = RedirectResponse(address, 303)
        response.set_cookie(
            self._browser, browser, max_age=600, path="/", httponly=True, secure=self._is_secure, samesite="lax"
        )
        return response

    async def _came_back(self, target: str, _: str, principal: Principal) -> Response:
        if self._authenticators.is_barred(principal):
            return self._form("This account was deprovisioned here.", 403)
        response = RedirectResponse(target, 303)
        try:
            self._sessions.begin(response, principal, self._seconds)
        except SessionTooLargeError as error:
            return self._form(str(error), 400)
        return response

    async def _out(self, request: Request) -> Response:
        session = await self._sessions.find(request)
        if session is not None:
            await own_form(request, session)
        response = self._form("You are logged out.")
        self._sessions.end(response)
        return response

    def _form(self, text: str, status: int = 200) -> Response:
        values = {
            "title": "Log in",
            "server_name": self._gateway.config.settings.server_name,
            "navigation": (),
            "path": "",
            "session": None,
            "role": None,
            "has_htmx": has_htmx(),
            "needs_login": False,
            "text": text,
            "sign_in": None if self._recognizer is None else _SIGN_IN,
        }
        return render("login.html", values, status)

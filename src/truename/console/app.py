"""The web console: an ASGI application for all paths below ``/console``.

Each route says which role it asks for, and each change is a POST with a token that only our own pages have. The routes
are a table (`ROUTES`), so that a test can try each of them with each role.
"""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager, closing, suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from anyio import to_thread
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Match, Route

from truename.auth.sealed_values import SealedValues
from truename.config.console import ROLES
from truename.console.fair_semaphore import FairSemaphore
from truename.console.forms import own_form
from truename.console.login import LOGIN_ROUTES, ConsoleLogin
from truename.console.name_previews import NamePreviews
from truename.console.near_names import NearNames
from truename.console.page import Page, PageRequest, PageRoute
from truename.console.pages import access, approvals, budgets, calls, connect, names, reviews, servers, tools
from truename.console.recent_calls import RecentCalls
from truename.console.refusals import RefusedError
from truename.console.rendering import HEADERS, asset, has_htmx, render
from truename.console.secret_texts import SecretTexts
from truename.console.sessions import BrowserSession, BrowserSessions
from truename.console.tool_rows import ToolRows
from truename.errors import StoreError, TruenameError
from truename.gateway.http.routes import ALL_BELOW
from truename.gateway.http.routes import Route as GatewayRoute

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from starlette.types import Receive, Scope, Send

    from truename.auth.authentication_setup import HttpAuthentication
    from truename.config.console import Role
    from truename.gateway import Gateway

__all__ = ["OPEN_ROUTES", "ROUTES", "Console", "console_routes"]

log: Final = logging.getLogger("truename.console")

ROOT: Final = "/console"
_STATIC: Final = f"{ROOT}/static/"
_PAGES: Final = (
    ("Servers", servers),
    ("Tools", tools),
    ("Try a name", names),
    ("Approvals", approvals),
    ("Reviews", reviews),
    ("Calls", calls),
    ("Access", access),
    ("Budgets", budgets),
    ("Connect", connect),
)
ROUTES: Final[tuple[PageRoute, ...]] = tuple(route for _, page in _PAGES for route in page.ROUTES)
OPEN_ROUTES: Final[Mapping[tuple[str, str], str]] = {
    ("GET", ROOT): "none",
    ("GET", f"{_STATIC}{{name}}"): "none",
    **LOGIN_ROUTES,
}
"""The routes that are answered without a session, and what guards them; all others are `ROUTES`."""
# Threads of one process share its time: each more makes no page faster, and each call slower.
_MOST_COMPUTING: Final = 2
_PROBLEMS: Final = {403: "Not allowed", 404: "Not found", 405: "Not found", 429: "Too many", 503: "Not available now"}
# The first route of a module is its page.
_NAVIGATION: Final = tuple((f"{ROOT}{page.ROUTES[0].path}", title) for title, page in _PAGES)


@asynccontextmanager
async def console_routes(gateway: Gateway, front: HttpAuthentication) -> AsyncIterator[tuple[GatewayRoute, ...]]:
    """Give the routes of a gateway's console, for `truename.gateway.listening`. Raises `StoreError`, `ConfigError`."""
    with closing(SealedValues(gateway.config.state_location())) as values:
        await to_thread.run_sync(values.open)
        recent = RecentCalls()
        gateway.registry.call_records.listen(recent.note)
        console = Console(gateway, front, values, recent)
        yield tuple(
            GatewayRoute(path=path, methods=None, authentication="own", answer=console)
            for path in (ROOT, f"{ROOT}{ALL_BELOW}")
        )


class Console:
    """The ASGI application of the console. ``values`` has to be open; ``calls`` are the last calls."""

    def __init__(self, gateway: Gateway, front: HttpAuthentication, values: SealedValues, calls: RecentCalls) -> None:
        self._gateway = gateway
        self._calls = calls
        self._here = front.here
        self._names = NamePreviews(gateway)
        self._tools = ToolRows()
        self._near = NearNames()
        self._secrets = gateway.config, SecretTexts(gateway.config)
        self._mark = partial(values.mark, "console form")
        self._deciding = FairSemaphore(1)
        self._computing = FairSemaphore(_MOST_COMPUTING)
        self._sessions = BrowserSessions(values, front.authenticators, is_secure=front.here.startswith("https://"))
        self._login = ConsoleLogin(gateway, front, self._sessions, values)
        self._routes = [(Route(f"{ROOT}{one.path}", lambda _: None, methods=[one.method]), one) for one in ROUTES]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        # Who leaves before the form has come needs no answer.
        with suppress(ClientDisconnect):
            response = await self._answered(Request(scope, receive))
            for name, value in HEADERS.items():
                response.headers.setdefault(name, value)
            await response(scope, receive, send)

    async def _answered(self, request: Request) -> Response:
        session = role = None
        try:
            if (answer := await self._without_session(request)) is not None:
                return answer
            session = await self._sessions.find(request)
            if session is None:
                return await self._login.ask(request)
            role = self._gateway.config.settings.console.role_of(session.principal)
            return await self._page(request, session, role)
        except RefusedError as refusal:
            return self._problem(refusal.status, str(refusal), session, role)
        except StoreError as error:
            log.error("The console cannot use the state: %s", error)  # noqa: TRY400 - its text says what to do; no traceback
            return self._problem(503, str(error), session, role)
        except TruenameError as error:
            return self._problem(409, str(error), session, role)

    async def _without_session(self, request: Request) -> Response | None:
        """Answer what needs no session: files, the start, and logging in and out; None for all else."""
        path, is_read = request.url.path, request.method in {"GET", "HEAD"}
        if is_read and path in {ROOT, f"{ROOT}/"}:
            return RedirectResponse(_NAVIGATION[0][0], 303)
        if is_read and path.startswith(_STATIC):
            found = asset(path.removeprefix(_STATIC))
            if found is None:
                raise RefusedError(404, "There is no such file.")
            return found
        return await self._login.answer(request)

    async def _page(self, request: Request, session: BrowserSession, role: Role | None) -> Response:
        if role is None:
            text = f"{session.principal.key} has no role in this console. Add them to [console] in the configuration."
            raise RefusedError(403, text)
        route, path = self._route(request)
        if ROLES.index(role) < ROLES.index(route.role):
            raise RefusedError(403, f"This needs the role {route.role}; you have {role}.")
        asked = PageRequest(
            gateway=self._gateway,
            calls=self._calls,
            names=self._names,
            tools=self._tools,
            near=self._near,
            secrets=self._secret_texts(),
            deciding=self._deciding,
            computing=self._computing,
            here=self._here,
            mark=self._mark,
            session=session,
            role=role,
            query=request.query_params,
            path=path,
            form=await own_form(request, session) if route.method == "POST" else None,
        )
        answer = await route.handler(asked)
        if isinstance(answer, Response):
            return answer
        # What servers and callers say may take long to write, too.
        return await asked.computed(lambda: self._rendered(answer, session, role, request.url.path))

    def _secret_texts(self) -> SecretTexts:
        config = self._gateway.config
        if self._secrets[0] is not config:
            self._secrets = config, SecretTexts(config)
        return self._secrets[1]

    def _route(self, request: Request) -> tuple[PageRoute, dict[str, str]]:
        """Return the route of a request, and the parameters in its path. Raises `RefusedError`."""
        method = "GET" if request.method == "HEAD" else request.method
        others = False
        for pattern, route in self._routes:
            match, child = pattern.matches(request.scope)
            if match is Match.FULL and route.method == method:
                return route, child["path_params"]
            others |= match is not Match.NONE
        if others:
            raise RefusedError(405, "This page does not take such a request.")
        raise RefusedError(404, "There is no such page.")

    def _rendered(self, page: Page, session: BrowserSession | None, role: Role | None, path: str) -> Response:
        values = {
            "title": page.title,
            "server_name": self._gateway.config.settings.server_name,
            "navigation": _NAVIGATION if role is not None else (),
            "path": path,
            "session": session,
            "role": role,
            "may": {one: role is not None and ROLES.index(role) >= ROLES.index(one) for one in ROLES},
            "has_htmx": has_htmx(),
            "needs_login": not self._login.is_open,
        }
        return render(page.template, {**values, **page.values}, page.status)

    def _problem(
        self, status: int, text: str, session: BrowserSession | None = None, role: Role | None = None
    ) -> Response:
        title = _PROBLEMS.get(status, "Not done")
        page = Page(template="problem.html", title=title, values={"text": text}, status=status)
        return self._rendered(page, session, role, "")

"""Serve the endpoints of the authorization server, and build them from the settings."""

from __future__ import annotations

import hmac
import json
import logging
import secrets
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Final

from mcp.server.auth.handlers.authorize import AuthorizationHandler
from mcp.server.auth.handlers.register import RegistrationHandler
from mcp.server.auth.handlers.token import TokenHandler
from mcp.server.auth.middleware.client_auth import ClientAuthenticator
from mcp.server.auth.provider import construct_redirect_uri
from mcp.server.auth.settings import ClientRegistrationOptions
from mcp.server.transport_security import RequestBodyLimitMiddleware
from mcp.shared.auth import InvalidRedirectUriError
from pydantic import ValidationError
from starlette.formparsers import MultiPartException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from truename.auth.authorization_server.clients import RegisteredClients, digest_of_client
from truename.auth.authorization_server.codes import AuthorizationCodes
from truename.auth.authorization_server.html import consent_page, error_page
from truename.auth.authorization_server.pending import ConsentGiven
from truename.auth.authorization_server.provider import (
    AuthorizationStates,
    BrowserIdentification,
    IdentityProvider,
    NotAllowedIn,
)
from truename.auth.authorization_server.server import CONSENT, AuthorizationServer
from truename.auth.authorization_server.sessions import SignInSessions
from truename.auth.authorization_server.tokens import SignInAuthenticator, TokenIssuer, signing_key
from truename.auth.jwt import Invalid
from truename.auth.network.fetch import FetchError
from truename.auth.oauth import challenge_of
from truename.auth.sealed_values import SealedValues
from truename.auth.vault import open_vault
from truename.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from mcp.server.auth.provider import AuthorizationParams
    from starlette.datastructures import QueryParams
    from starlette.types import Receive, Scope, Send

    from truename.auth.authorization_server.provider import AuthorizationState
    from truename.auth.inbound.authentication import OnAccess
    from truename.auth.network.fetch import Fetch
    from truename.config import Config, SignIn

__all__ = ["sign_in"]

log: Final = logging.getLogger("truename.auth")

CALLBACK: Final = "/sign-in/callback"
METADATA: Final = "/.well-known/oauth-authorization-server"
REGISTER: Final = "/register"
_FORM: Final = "application/x-www-form-urlencoded"
_LONGEST_BODY: Final = 64 * 1024
_LONGEST_QUERY: Final = 16 * 1024
# The gateway's state carries them through the provider, and providers accept a short state only.
_LONGEST_ASKED: Final = 1_024
_KIND: Final = "sign-in"
_NO_STORE: Final = {"cache-control": "no-store", "pragma": "no-cache"}
_NOT_ACCEPTED: Final = "This authorization request is not valid. Check the client's registration and its parameters."
_GONE: Final = (
    "This sign-in is unknown: it has expired, was completed before, or was started in another browser. Start again in "
    "your client."
)


class AuthorizationEndpoints:
    """The ASGI application of sign-in: OAuth endpoints for clients, and pages for people."""

    def __init__(self, server: AuthorizationServer, name: str, recognizer: BrowserIdentification) -> None:
        self.recognizer = recognizer
        self._server = server
        self._name = name
        self._authorize = AuthorizationHandler(server)
        self._token = TokenHandler(server, ClientAuthenticator(server))
        self._register = RegistrationHandler(server, ClientRegistrationOptions(enabled=True))
        self._is_secure = server.issuer.startswith("https://")
        self._cookie = "__Host-truename-sign-in" if self._is_secure else "truename-sign-in"
        self._app = RequestBodyLimitMiddleware(self._answer, _LONGEST_BODY)
        self._routes: dict[tuple[str, str], Callable[[Request], Awaitable[Response]]] = {
            ("GET", METADATA): self._metadata,
            ("GET", "/authorize"): self._authorization,
            ("POST", "/token"): self._tokens,
            ("POST", REGISTER): self._registration,
            ("POST", "/revoke"): self._revocation,
            ("GET", CONSENT): self._ask,
            ("POST", CONSENT): self._agreed,
            ("GET", CALLBACK): self._came_back,
        }

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths that this application serves."""
        return tuple(dict.fromkeys(path for _, path in self._routes))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to one request."""
        await self._app(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        answer = self._routes.get((request.method, request.url.path))
        if answer is None:
            response: Response = Response(status_code=405)
        elif request.method == "POST" and not self._is_readable(request):
            response = _error("invalid_request", f"Send it as {_FORM}.")
        elif len(scope["query_string"]) > _LONGEST_QUERY:
            response = error_page("The address is too long.", 414)
        else:
            response = await self._guarded(answer, request)
        await response(scope, receive, send)

    @staticmethod
    def _is_readable(request: Request) -> bool:
        """Return whether the content type fits the route; a registration is read as JSON, whatever its content type."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        return request.url.path == REGISTER or kind == _FORM

    async def _guarded(self, answer: Callable[[Request], Awaitable[Response]], request: Request) -> Response:
        try:
            return await answer(request)
        except MultiPartException as fault:
            return _error("invalid_request", fault.message)
        except FetchError as fault:
            log.warning("A sign-in failed: %s", fault)
            problem = "The identity provider cannot be reached."
        except StoreError as error:
            log.error("A sign-in failed: %s", error)  # noqa: TRY400 - its text says what to do; no traceback
            problem = "Sign-ins cannot be stored."
        if request.method == "POST" and request.url.path != CONSENT:
            said = {"error": "temporarily_unavailable", "error_description": problem}
            return JSONResponse(said, 503, headers=_NO_STORE)
        return error_page(f"{problem} Try again later.", 503)

    # For clients

    async def _metadata(self, _: Request) -> Response:
        issuer = self._server.issuer
        return JSONResponse(
            {
                "issuer": issuer,
                "authorization_endpoint": f"{issuer}/authorize",
                "token_endpoint": f"{issuer}/token",
                "registration_endpoint": f"{issuer}/register",
                "revocation_endpoint": f"{issuer}/revoke",
                "response_types_supported": ["code"],
                "response_modes_supported": ["query"],
                "grant_types_supported": ["authorization_code", "refresh_token"],
                "token_endpoint_auth_methods_supported": ["none"],
                "revocation_endpoint_auth_methods_supported": ["none"],
                "code_challenge_methods_supported": ["S256"],
                "scopes_supported": list(self._server.settings.scopes),
                "authorization_response_iss_parameter_supported": True,
                "client_id_metadata_document_supported": True,
            },
            headers={"cache-control": "public, max-age=300"},
        )

    async def _authorization(self, request: Request) -> Response:
        said = request.query_params
        if _repeats(said.multi_items()):
            return error_page("A parameter is repeated.")
        # Without the parameter the method is "plain" (RFC 7636); such a downgrade is refused.
        if said.get("code_challenge_method") != "S256":
            return error_page("The client must use PKCE with code_challenge_method S256.")
        kept = said.get("redirect_uri"), said.get("state")
        if (size := len(json.dumps(kept, ensure_ascii=False).encode())) > _LONGEST_ASKED:
            problem = f"The client's redirect_uri and state have {size:,} bytes, more than {_LONGEST_ASKED:,}."
            return error_page(f"{problem} Use a client that sends shorter ones.")
        # The SDK parses the URL, and many texts parse to one URL: only the registered text is valid.
        if not await self._server.clients.takes(said.get("client_id"), said.get("redirect_uri")):
            return error_page(_NOT_ACCEPTED)
        answer = await self._authorize.handle(request)
        goes_on = answer.headers.get("location", "").startswith(f"{self._server.issuer}{CONSENT}?")
        # Anybody can register a client, so no redirect goes to one before the person consented.
        return answer if goes_on else error_page(_NOT_ACCEPTED)

    async def _tokens(self, request: Request) -> Response:
        form = await request.form()
        resources = [value for key, value in form.multi_items() if key == "resource"]
        if _repeats([(key, value) for key, value in form.multi_items() if key != "resource"]):
            return _error("invalid_request", "A parameter is repeated.")
        if not all(isinstance(value, str) and self._server.is_here(value) for value in resources):
            return _error("invalid_target", "This server does not serve that resource.")
        client_id, redirect_uri = form.get("client_id"), form.get("redirect_uri")
        # The SDK responds to an unknown client.
        if redirect_uri is not None and await self._server.clients.takes(client_id, redirect_uri) is False:
            return _error("invalid_request", "redirect_uri is not one that the client registered.")
        answer: Response = await self._token.handle(request)
        return answer

    async def _registration(self, request: Request) -> Response:
        with self._server.clients.registering(await request.body()):
            answer = await self._register.handle(request)
        answer.headers.update(_NO_STORE)
        return answer

    async def _revocation(self, request: Request) -> Response:
        form = await request.form()
        token, client_id = form.get("token"), form.get("client_id")
        if not isinstance(token, str) or not isinstance(client_id, str):
            return _error("invalid_request", "Send token and client_id.")
        await self._server.revoke(token, client_id)
        return Response(status_code=200, headers=_NO_STORE)

    # For people

    async def _ask(self, request: Request) -> Response:
        token = request.query_params.get("request", "")
        try:
            client, params = await self._server.asked(token)
        except (Invalid, InvalidRedirectUriError, ValidationError):
            return error_page(_GONE)
        browser = request.cookies.get(self._cookie) or secrets.token_urlsafe(32)
        page = consent_page(
            client,
            str(params.redirect_uri),
            params.scopes or [],
            gateway=self._name,
            token=token,
            csrf=_csrf(browser, token),
        )
        page.set_cookie(self._cookie, browser, max_age=3600, httponly=True, secure=self._is_secure, samesite="lax")
        return page

    async def _agreed(self, request: Request) -> Response:
        form, browser = await request.form(), request.cookies.get(self._cookie, "")
        token, csrf, answer = (form.get(name) for name in ("request", "csrf", "answer"))
        if not isinstance(token, str) or not isinstance(csrf, str) or not browser:
            return error_page(_GONE)
        if not hmac.compare_digest(csrf.encode(), _csrf(browser, token).encode()):
            return error_page(_GONE, 403)
        try:
            client, params = await self._server.asked(token)
        except (Invalid, InvalidRedirectUriError, ValidationError):
            return error_page(_GONE)
        if answer != "allow":
            return self._back(params, error="access_denied")
        agreed = ConsentGiven(digest_of_client(client.client_id), params)
        state, pending = self._server.authorizations.begin(_KIND, browser, agreed.packed())
        address = await self._server.provider.address(state, challenge_of(pending.verifier), pending.nonce)
        # The form was sent with POST; the browser fetches the redirect with GET.
        return RedirectResponse(address, 303, headers=_NO_STORE)

    async def _came_back(self, request: Request) -> Response:
        # All redirects from the provider arrive at this one URL, whatever they are for.
        if (answer := await self.recognizer.answer(request)) is not None:
            return answer
        said, browser = request.query_params, request.cookies.get(self._cookie, "")
        authorizations = self._server.authorizations
        pending = authorizations.back(_KIND, browser, said.get("state", ""))
        if pending is None:
            return error_page(_GONE, 403)
        if await authorizations.is_finished(pending) or _repeats(said.multi_items()):
            return error_page(_GONE)
        return await self._judged(pending, said)

    async def _judged(self, pending: AuthorizationState, said: QueryParams) -> Response:
        agreed = ConsentGiven.of(pending.said)
        try:
            await self._server.provider.check_sender(said.get("iss"))
            if "error" in said or "code" not in said:
                return self._back(agreed.params, error="access_denied")
            proof = await self._server.provider.proof(said["code"], pending.verifier, pending.nonce)
        except (NotAllowedIn, Invalid) as problem:
            self._server.refused(agreed, problem)
            return self._back(agreed.params, error="access_denied")
        # If two responses arrive at the same time, only the first one completes the sign-in.
        if not await self._server.authorizations.finish(pending, proof.principal.key):
            return error_page(_GONE)
        return self._back(agreed.params, code=await self._server.code_for(agreed, proof))

    def _back(self, params: AuthorizationParams, **said: str) -> Response:
        """Redirect the browser to the client's redirect URI, with ``iss`` so that the client can check the sender."""
        address = construct_redirect_uri(str(params.redirect_uri), **said, state=params.state, iss=self._server.issuer)
        return RedirectResponse(address, 303, headers={**_NO_STORE, "referrer-policy": "no-referrer"})


def _csrf(browser: str, token: str) -> str:
    return hmac.digest(browser.encode(), token.encode(), "sha256").hex()


def _repeats(pairs: Sequence[tuple[str, object]]) -> bool:
    names = [name for name, _ in pairs if name != "resource"]
    return len(set(names)) < len(names)


def _error(error: str, text: str) -> Response:
    return JSONResponse({"error": error, "error_description": text}, 400, headers=_NO_STORE)


@contextmanager
def sign_in(
    config: Config,
    settings: SignIn,
    *,
    issuer: str,
    resource: str,
    fetch: Fetch,
    clock: Callable[[], float],
    tell: OnAccess,
) -> Iterator[tuple[SignInAuthenticator, AuthorizationEndpoints]]:
    """Enable sign-in during the block. Raises `StoreError` and `ConfigError`."""
    with ExitStack() as stack:
        vault = stack.enter_context(open_vault(config))
        sessions = SignInSessions(config.state_location(), clock)
        stack.callback(sessions.close)
        issued = TokenIssuer(signing_key(vault), issuer, clock)
        values = stack.enter_context(closing(SealedValues(config.state_location(), clock=clock)))
        values.open()
        authorizations = AuthorizationStates(values)
        spent = settings.access_seconds
        codes = stack.enter_context(closing(AuthorizationCodes(config.state_location(), clock, spent_seconds=spent)))
        provider = IdentityProvider(settings, issuer + CALLBACK, fetch, clock)
        server = AuthorizationServer(
            settings,
            issuer=issuer,
            resource=resource,
            clients=RegisteredClients(
                issued,
                fetch,
                issuer=issuer,
                scopes=settings.scopes,
                schemes=settings.redirect_schemes,
                clock=clock,
            ),
            issued=issued,
            provider=provider,
            authorizations=authorizations,
            codes=codes,
            sessions=sessions,
            vault=vault,
            clock=clock,
            tell=tell,
        )
        pages = AuthorizationEndpoints(
            server, config.settings.server_name, BrowserIdentification(provider, settings.vouches, authorizations)
        )
        yield SignInAuthenticator(issued, sessions, issuer=issuer, resource=resource), pages

"""Identify people at the identity provider: the gateway is its OpenID Connect client."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from anyio import to_thread
from starlette.responses import Response

from truename.auth.authorization_server.html import error_page
from truename.auth.inbound.issuer_tokens import groups_in, principal_from_claims
from truename.auth.issuer_keys import IssuerKeys
from truename.auth.jwt import Invalid, UnknownKey, verify_token
from truename.auth.network.fetch import FetchError
from truename.auth.oauth import IssuerClient, basic, challenge_of
from truename.config import Issuer
from truename.policy.principal import Principal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.requests import Request

    from truename.auth.network.fetch import Fetch, FetchedDocument
    from truename.auth.sealed_values import OpenedValue, SealedValues
    from truename.config import SignIn

Then = Callable[[str, str, Principal], Awaitable[Response]]

__all__ = [
    "AuthorizationState",
    "AuthorizationStates",
    "BrowserIdentification",
    "IdentityProvider",
    "NotAllowedIn",
    "ProviderLogin",
]

_SECONDS: Final = 600.0


@dataclass(frozen=True, kw_only=True)
class AuthorizationState:
    """A pending redirect to the provider; ``said`` is the data to restore when the browser returns."""

    value: OpenedValue = field(repr=False)
    verifier: str = field(repr=False)
    nonce: str = field(repr=False)

    @property
    def said(self) -> Sequence[Any]:
        """The data to restore."""
        found: Sequence[Any] = self.value.content
        return found


class AuthorizationStates:
    """The pending redirects: each is sealed into its state parameter, so that it may return to any gateway.

    ``values`` has to be open.

    >>> from truename.auth.sealed_values import SealedValues
    >>> values = SealedValues(None, clock=lambda: 0.0)
    >>> values.open()
    >>> authorizations = AuthorizationStates(values)
    >>> state, _ = authorizations.begin("sign-in", "the browser's cookie", ["what to do then"])
    >>> back = authorizations.back("sign-in", "the browser's cookie", state)
    >>> back.said, authorizations.back("sign-in", "another's cookie", state)
    (['what to do then'], None)
    """

    def __init__(self, values: SealedValues) -> None:
        self._values = values

    def begin(self, kind: str, browser: str, said: Sequence[object]) -> tuple[str, AuthorizationState]:
        """Start an authorization: return its state parameter and its `AuthorizationState`. ``said`` is JSON."""
        state = self._values.seal(kind, [browser], said, lasts=_SECONDS)
        pending = self.back(kind, browser, state)
        assert pending is not None  # noqa: S101 - it was just sealed
        return state, pending

    def back(self, kind: str, browser: str, state: str) -> AuthorizationState | None:
        """Return the pending authorization of a state parameter; None if kind or browser differ, or it has expired."""
        value = self._values.opened(kind, [browser], state)
        if value is None:
            return None
        # The browser carries the state: neither is in it, and each follows from it.
        verifier, nonce = (self._values.derived(what, value) for what in ("verifier", "nonce"))
        return AuthorizationState(value=value, verifier=verifier, nonce=nonce)

    async def is_finished(self, pending: AuthorizationState) -> bool:
        """Return whether this authorization was already completed, at any gateway. Raises `StoreError`."""
        return await to_thread.run_sync(self._values.is_used, pending.value)

    async def finish(self, pending: AuthorizationState, who: str) -> bool:
        """Mark an authorization as completed by ``who``; return whether it was still open. Raises `StoreError`."""
        return await to_thread.run_sync(self._values.use, pending.value, who)


_ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519")

# People can often set this claim themselves, and it is often used as a name.
_EMAIL: Final = "email"


class NotAllowedIn(Exception):
    """The provider, or the gateway's ``allow`` list, refuses somebody."""


@dataclass(frozen=True)
class ProviderLogin:
    """The result of a sign-in at the provider: the principal, and a refresh token ("" if there is none)."""

    principal: Principal
    refresh_token: str = field(default="", repr=False)


class IdentityProvider:
    """A client of one identity provider. ``callback`` is the redirect URI of the gateway."""

    def __init__(self, settings: SignIn, callback: str, fetch: Fetch, clock: Callable[[], float]) -> None:
        self._settings = settings
        self._callback = callback
        self._fetch = fetch
        self._clock = clock
        self._issuer_client = None if settings.issuer is None else IssuerClient(settings.issuer, fetch, clock)
        self._keys = None if self._issuer_client is None else IssuerKeys(self._issuer_client, None, clock)

    async def address(self, state: str, challenge: str, nonce: str) -> str:
        """Return the URL at which a person signs in. Raises `FetchError`."""
        settings = self._settings
        asked = {
            "response_type": "code",
            "client_id": settings.client_id,
            "redirect_uri": self._callback,
            "scope": " ".join(settings.request),
            "state": state,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
            **({} if self._issuer_client is None else {"nonce": nonce}),
        }
        base = await self._endpoint("authorization_endpoint", settings.authorization_url)
        return f"{base}{'&' if '?' in base else '?'}{urlencode(asked)}"

    async def check_sender(self, iss: str | None) -> None:
        """Raise `NotAllowedIn` for a response of another issuer (RFC 9207), before its code is sent anywhere."""
        if self._issuer_client is None:
            return
        said = (await self._issuer_client.metadata()).get("authorization_response_iss_parameter_supported")
        if (iss is None and said is True) or (iss is not None and iss != self._issuer_client.issuer):
            message = "the response comes from another issuer"
            raise NotAllowedIn(message)

    async def proof(self, code: str, verifier: str, nonce: str) -> ProviderLogin:
        """Exchange a code for the identity of the person. Raises `FetchError`, `Invalid` and `NotAllowedIn`."""
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": self._callback}
        tokens = await self._tokens({**form, "code_verifier": verifier})
        return self._proof(tokens, await self._claims(tokens, nonce))

    async def again(self, refresh_token: str, before: Principal) -> ProviderLogin:
        """Ask the provider whether a sign-in is still valid. Raises `FetchError`, `Invalid` and `NotAllowedIn`."""
        tokens = await self._tokens({"grant_type": "refresh_token", "refresh_token": refresh_token})
        if "id_token" not in tokens and not await self._has_userinfo():
            # The provider confirms the sign-in without claims, so the earlier ones stay valid.
            return ProviderLogin(before, _text(tokens.get("refresh_token")) or refresh_token)
        found = self._proof(tokens, await self._claims(tokens, None), refresh_token)
        if found.principal.name != before.name:
            message = "the provider now identifies another person"
            raise NotAllowedIn(message)
        return found

    def _proof(
        self, tokens: Mapping[str, object], claims: Mapping[str, object], refresh_token: str = ""
    ) -> ProviderLogin:
        settings = self._settings
        self._check_allowed(claims)
        if settings.name_claim == _EMAIL and claims.get("email_verified") is not True:
            message = "the provider has not verified the e-mail address"
            raise NotAllowedIn(message)
        principal = principal_from_claims(
            {**claims, "client_id": None, "azp": None, "scope": None, "scp": None},
            issuer=settings.vouches,
            name_claim=settings.name_claim,
            groups_claim=settings.groups_claim,
        )
        return ProviderLogin(principal, _text(tokens.get("refresh_token")) or refresh_token)

    def _check_allowed(self, claims: Mapping[str, object]) -> None:
        if not any(_fits(rule, claims, self._settings.groups_claim) for rule in self._settings.allow):
            message = "the allow list of sign-in does not include them"
            raise NotAllowedIn(message)

    async def _tokens(self, form: Mapping[str, str]) -> Mapping[str, object]:
        settings = self._settings
        headers = {}
        if settings.client_secret:
            headers["authorization"] = basic(settings.client_id, settings.client_secret)
        else:
            form = {**form, "client_id": settings.client_id}
        answer = await self._ask("token_endpoint", settings.token_url, dict(form), headers)
        # Any other refusal is about the gateway itself (its secret, say), and does not end sessions.
        if 400 <= answer.status < 500 and answer.document().get("error") in {"invalid_grant", "access_denied"}:
            message = "the provider refuses the request"
            raise NotAllowedIn(message)
        if answer.status != 200:
            message = f"the provider responds with status {answer.status}"
            raise FetchError(message)
        found: Mapping[str, object] = answer.document()
        return found

    async def _claims(self, tokens: Mapping[str, object], nonce: str | None) -> Mapping[str, object]:
        """Return the claims of the person: those of the ID token, completed by userinfo."""
        if self._issuer_client is None:
            return await self._userinfo(tokens)
        said: Mapping[str, object] = {}
        if "id_token" in tokens:
            said = await self._identity(_text(tokens["id_token"]), nonce)
        elif nonce is not None:
            message = "the provider does not send an ID token"
            raise Invalid(message)
        if await self._has_userinfo() and not {"email", self._settings.groups_claim} <= said.keys():
            more = await self._userinfo(tokens)
            # Userinfo of another person must not be merged (OpenID Connect Core section 5.3.2).
            if said and more.get("sub") != said.get("sub"):
                message = "the provider's userinfo describes another person"
                raise Invalid(message)
            said = {**more, **said}
        return said

    async def _has_userinfo(self) -> bool:
        return self._issuer_client is None or "userinfo_endpoint" in await self._issuer_client.metadata()

    async def _userinfo(self, tokens: Mapping[str, object]) -> Mapping[str, object]:
        bearer = {"authorization": f"Bearer {_text(tokens.get('access_token'))}"}
        answer = await self._ask("userinfo_endpoint", self._settings.userinfo_url, None, bearer)
        if answer.status != 200:
            message = f"the provider responds with status {answer.status}"
            raise FetchError(message)
        found: Mapping[str, object] = answer.document()
        return found

    async def _identity(self, token: str, nonce: str | None) -> Mapping[str, object]:
        assert self._keys is not None  # noqa: S101 - there is an issuer
        settings, keys = self._settings, await self._keys.now()
        rules = Issuer(issuer=settings.vouches, algorithms=_ALGORITHMS)
        audience = (settings.client_id,)
        try:
            said = verify_token(token, keys, rules, audience, self._clock())
        except UnknownKey:
            said = verify_token(token, await self._keys.newer(keys), rules, audience, self._clock())
        if said.get("azp", settings.client_id) != settings.client_id:
            message = "the ID token was issued to another client"
            raise Invalid(message)
        if nonce is not None and not hmac.compare_digest(_text(said.get("nonce")).encode(), nonce.encode()):
            message = "the ID token belongs to another sign-in"
            raise Invalid(message)
        return said

    async def _endpoint(self, name: str, typed: str | None) -> str:
        if self._issuer_client is None:
            return typed or ""
        return await self._issuer_client.endpoint(name, typed)

    async def _ask(
        self, name: str, typed: str | None, form: dict[str, str] | None, headers: dict[str, str]
    ) -> FetchedDocument:
        if self._issuer_client is None:
            return await self._fetch(typed or "", form=form, headers=headers)
        return await self._issuer_client.ask(name, typed, form, headers)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _fits(rule: str, claims: Mapping[str, object], groups_claim: str) -> bool:
    kind, _, wanted = rule.partition(":")
    if kind == "*":
        return True
    if kind == "group":
        return wanted in groups_in(claims, groups_claim)
    if kind == "sub":
        return str(claims.get("sub", claims.get("id", ""))) == wanted
    # Only an address that the provider has verified counts.
    verified_email = claims.get("email_verified") is True
    return verified_email and fnmatchcase(_text(claims.get("email")).lower(), wanted.lower())


_KIND: Final = "recognition"
_GONE: Final = "This request is unknown: it has expired, was completed before, or was started in another browser."
_NOBODY: Final = "The identity provider did not identify you."


class BrowserIdentification:
    """The identification of a browser at the identity provider; ``vouches`` is the issuer of its principals."""

    def __init__(self, provider: IdentityProvider, vouches: str, authorizations: AuthorizationStates) -> None:
        self.vouches = vouches
        self._provider = provider
        self._authorizations = authorizations
        # Whoever sends browsers, by the name of its cookie.
        self._attendants: dict[str, Then] = {}

    def attend(self, cookie: str, then: Then) -> None:
        """Add one who sends browsers with a cookie of this name, and the callback for those that return.

        The callback receives the purpose, the cookie's value and the principal.
        """
        self._attendants[cookie] = then

    async def address(self, cookie: str, browser: str, what: str) -> str:
        """Return the URL to which to send a browser whose cookie has this value, for a purpose. Raises `FetchError`."""
        state, pending = self._authorizations.begin(_kind(cookie), browser, [what])
        return await self._provider.address(state, challenge_of(pending.verifier), pending.nonce)

    async def answer(self, request: Request) -> Response | None:
        """Respond to a browser that returns from the provider; None if another component had sent it there.

        Raises `FetchError`, and the errors of ``then``.
        """
        said, state = request.query_params, request.query_params.get("state", "")
        browsers = ((cookie, request.cookies.get(cookie, "")) for cookie in self._attendants)
        found = ((*one, self._authorizations.back(_kind(one[0]), one[1], state)) for one in browsers)
        cookie, browser, pending = next((one for one in found if one[2] is not None), ("", "", None))
        if pending is None:
            return None
        names = [name for name, _ in said.multi_items()]
        if await self._authorizations.is_finished(pending) or len(set(names)) < len(names):
            return error_page(_GONE)
        try:
            await self._provider.check_sender(said.get("iss"))
            if "error" in said or "code" not in said:
                return error_page(_NOBODY, 403)
            proof = await self._provider.proof(said["code"], pending.verifier, pending.nonce)
        except (NotAllowedIn, Invalid):
            return error_page(_NOBODY, 403)
        if not await self._authorizations.finish(pending, proof.principal.key):
            return error_page(_GONE)
        return await self._attendants[cookie](str(pending.said[0]), browser, proof.principal)


def _kind(cookie: str) -> str:
    return f"{_KIND} {cookie}"

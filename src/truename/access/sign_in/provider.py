"""The identity provider behind sign-in: the gateway is its client, and asks it who somebody is."""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from truename.access.claims import groups_in, principal_in
from truename.access.fetching import FetchFault
from truename.access.introspection import basic
from truename.access.keys import Keys, Speaker
from truename.access.signed import Invalid, UnknownKey, verified
from truename.config import Issuer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from truename.access.fetching import Fetch, Fetched
    from truename.config import SignIn
    from truename.policy.principal import Principal

__all__ = ["NotAllowedIn", "Proof", "Provider"]

_ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519")

# The one claim of a person that they can write into their account themselves, and that is often taken for a name.
_EMAIL: Final = "email"


class NotAllowedIn(Exception):
    """The provider, or the gateway's own list, does not let somebody in."""


@dataclass(frozen=True)
class Proof:
    """What the provider said: who it is, and the token by which it can be asked again, "" if there is none."""

    principal: Principal
    refresh_token: str = field(default="", repr=False)


class Provider:
    """One identity provider. ``callback`` is where it sends people back to."""

    def __init__(self, settings: SignIn, callback: str, fetch: Fetch, clock: Callable[[], float]) -> None:
        self._settings = settings
        self._callback = callback
        self._fetch = fetch
        self._clock = clock
        self._speaker = None if settings.issuer is None else Speaker(settings.issuer, fetch, clock)
        self._keys = None if self._speaker is None else Keys(self._speaker, None, clock)

    async def address(self, state: str, challenge: str, nonce: str) -> str:
        """Return where somebody signs in. Raises `FetchFault`."""
        settings = self._settings
        asked = {
            "response_type": "code",
            "client_id": settings.client_id,
            "redirect_uri": self._callback,
            "scope": " ".join(settings.request),
            "state": state,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
            **({} if self._speaker is None else {"nonce": nonce}),
        }
        base = await self._endpoint("authorization_endpoint", settings.authorization_url)
        return f"{base}{'&' if '?' in base else '?'}{urlencode(asked)}"

    async def check_sender(self, iss: str | None) -> None:
        """Raise `NotAllowedIn` for an answer that another issuer sent (RFC 9207): codes are shown to nobody else."""
        if self._speaker is None:
            return
        said = (await self._speaker.metadata()).get("authorization_response_iss_parameter_supported")
        if (iss is None and said is True) or (iss is not None and iss != self._speaker.issuer):
            message = "the answer is another issuer's"
            raise NotAllowedIn(message)

    async def proof(self, code: str, verifier: str, nonce: str) -> Proof:
        """Return who came back with this code. Raises `FetchFault`, `Invalid` and `NotAllowedIn`."""
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": self._callback}
        tokens = await self._tokens({**form, "code_verifier": verifier})
        return self._proof(tokens, await self._claims(tokens, nonce))

    async def again(self, refresh_token: str, before: Principal) -> Proof:
        """Ask whether somebody may still come in. Raises `FetchFault`, `Invalid` and `NotAllowedIn`."""
        tokens = await self._tokens({"grant_type": "refresh_token", "refresh_token": refresh_token})
        if "id_token" not in tokens and not await self._has_userinfo():
            # It says that they may, and nothing else: so what it said before stands.
            return Proof(before, _text(tokens.get("refresh_token")) or refresh_token)
        found = self._proof(tokens, await self._claims(tokens, None), refresh_token)
        if found.principal.name != before.name:
            message = "the provider now means somebody else"
            raise NotAllowedIn(message)
        return found

    def _proof(self, tokens: Mapping[str, Any], claims: Mapping[str, Any], refresh_token: str = "") -> Proof:
        settings = self._settings
        self._check_allowed(claims)
        if settings.name_claim == _EMAIL and claims.get("email_verified") is not True:
            message = "the provider does not call their address verified"
            raise NotAllowedIn(message)
        principal = principal_in(
            {**claims, "client_id": None, "azp": None, "scope": None, "scp": None},
            issuer=settings.vouches,
            name_claim=settings.name_claim,
            groups_claim=settings.groups_claim,
        )
        return Proof(principal, _text(tokens.get("refresh_token")) or refresh_token)

    def _check_allowed(self, claims: Mapping[str, Any]) -> None:
        if not any(_fits(rule, claims, self._settings.groups_claim) for rule in self._settings.allow):
            message = "they are none of those who may come in here"
            raise NotAllowedIn(message)

    async def _tokens(self, form: Mapping[str, str]) -> Mapping[str, Any]:
        settings = self._settings
        headers = {}
        if settings.client_secret:
            headers["authorization"] = basic(settings.client_id, settings.client_secret)
        else:
            form = {**form, "client_id": settings.client_id}
        answer = await self._ask("token_endpoint", settings.token_url, dict(form), headers)
        # Any other refusal is about the gateway (its secret, say), and ends nobody's session.
        if 400 <= answer.status < 500 and answer.document().get("error") in {"invalid_grant", "access_denied"}:
            message = "the provider refuses it"
            raise NotAllowedIn(message)
        if answer.status != 200:
            message = f"the provider answers with {answer.status}"
            raise FetchFault(message)
        found: Mapping[str, Any] = answer.document()
        return found

    async def _claims(self, tokens: Mapping[str, Any], nonce: str | None) -> Mapping[str, Any]:
        """Return what is said of who signed in: by the ID token, and of what that leaves out by userinfo."""
        if self._speaker is None:
            return await self._userinfo(tokens)
        said: Mapping[str, Any] = {}
        if "id_token" in tokens:
            said = await self._identity(_text(tokens["id_token"]), nonce)
        elif nonce is not None:
            message = "the provider sends no ID token"
            raise Invalid(message)
        if await self._has_userinfo() and not {"email", self._settings.groups_claim} <= said.keys():
            more = await self._userinfo(tokens)
            # Userinfo of somebody else would be put on top of who signed in (OpenID Connect Core 5.3.2).
            if said and more.get("sub") != said.get("sub"):
                message = "the provider's userinfo is somebody else's"
                raise Invalid(message)
            said = {**more, **said}
        return said

    async def _has_userinfo(self) -> bool:
        return self._speaker is None or "userinfo_endpoint" in await self._speaker.metadata()

    async def _userinfo(self, tokens: Mapping[str, Any]) -> Mapping[str, Any]:
        bearer = {"authorization": f"Bearer {_text(tokens.get('access_token'))}"}
        answer = await self._ask("userinfo_endpoint", self._settings.userinfo_url, None, bearer)
        if answer.status != 200:
            message = f"the provider answers with {answer.status}"
            raise FetchFault(message)
        found: Mapping[str, Any] = answer.document()
        return found

    async def _identity(self, token: str, nonce: str | None) -> Mapping[str, Any]:
        assert self._keys is not None  # noqa: S101 - there is an issuer
        settings, keys = self._settings, await self._keys.now()
        rules = Issuer(issuer=settings.vouches, algorithms=_ALGORITHMS)
        audience = (settings.client_id,)
        try:
            said = verified(token, keys, rules, audience, self._clock())
        except UnknownKey:
            said = verified(token, await self._keys.newer(keys), rules, audience, self._clock())
        if said.get("azp", settings.client_id) != settings.client_id:
            message = "the ID token was issued to another client"
            raise Invalid(message)
        if nonce is not None and not hmac.compare_digest(_text(said.get("nonce")).encode(), nonce.encode()):
            message = "the ID token is of another sign-in"
            raise Invalid(message)
        return said

    async def _endpoint(self, name: str, typed: str | None) -> str:
        if self._speaker is None:
            return typed or ""
        return await self._speaker.endpoint(name, typed)

    async def _ask(self, name: str, typed: str | None, form: dict[str, str] | None, headers: dict[str, str]) -> Fetched:
        if self._speaker is None:
            return await self._fetch(typed or "", form=form, headers=headers)
        answer: Fetched = await self._speaker.ask(name, typed, form, headers)
        return answer


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _fits(rule: str, claims: Mapping[str, Any], groups_claim: str) -> bool:
    kind, _, wanted = rule.partition(":")
    if kind == "*":
        return True
    if kind == "group":
        return wanted in groups_in(claims, groups_claim)
    if kind == "sub":
        return str(claims.get("sub", claims.get("id", ""))) == wanted
    # Anybody can say that an address is theirs; the provider has to say that it is.
    verified_email = claims.get("email_verified") is True
    return verified_email and fnmatchcase(_text(claims.get("email")).lower(), wanted.lower())

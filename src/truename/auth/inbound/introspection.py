"""Ask an issuer about tokens that only it can read (RFC 7662)."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from truename.auth.jwt import Invalid
from truename.auth.network.fetch import FetchError
from truename.auth.oauth import basic
from truename.cache import TTLCache

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from truename.auth.oauth import IssuerClient
    from truename.config import Issuer

__all__ = ["Introspection"]

MAX_RESPONSES: Final = 10_000
_BELIEVED: Final = 30.0


class Introspection:
    """The introspection of one issuer's tokens. Responses are cached under a digest of the token."""

    def __init__(self, issuer: Issuer, issuer_client: IssuerClient, clock: Callable[[], float]) -> None:
        self._issuer = issuer
        self._issuer_client = issuer_client
        self._clock = clock
        self._answers: TTLCache[bytes, Mapping[str, object]] = TTLCache(MAX_RESPONSES, _BELIEVED, clock)

    async def claims(self, token: str, audience: frozenset[str]) -> Mapping[str, Any]:
        """Return the claims of a valid token from the introspection response. Raises `Invalid` and `FetchError`."""
        key, now = hashlib.sha256(token.encode()).digest(), self._clock()
        found = self._answers.get(key)
        if found is None:
            found = await self._asked(token)
            # It was true when it was asked for.
            self._answers.put(key, found, until=now + _BELIEVED)
        _check(found, self._issuer, audience, now)
        return found

    async def _asked(self, token: str) -> Mapping[str, object]:
        issuer = self._issuer
        answer = await self._issuer_client.ask(
            "introspection_endpoint",
            issuer.introspection_url,
            {"token": token, "token_type_hint": "access_token"},
            {"authorization": basic(issuer.client_id, issuer.client_secret)},
        )
        if answer.status != 200:
            message = f"introspection at {issuer.issuer} fails (HTTP {answer.status})"
            raise FetchError(message)
        found: Mapping[str, object] = answer.document()
        return found


def _check(found: Mapping[str, object], issuer: Issuer, audience: frozenset[str], now: float) -> None:
    """Raise `Invalid` for a token that is not valid here, also for one without an audience (RFC 8707)."""
    if found.get("active") is not True:
        message = "its issuer reports it as inactive"
        raise Invalid(message)
    if found.get("iss", issuer.issuer) != issuer.issuer:
        message = "it was issued by another issuer"
        raise Invalid(message)
    said = found.get("aud")
    named = {one for one in (said if isinstance(said, list) else [said]) if isinstance(one, str)}
    if not named & audience:
        message = "it was issued for another resource"
        raise Invalid(message)
    for claim, is_past in (("exp", True), ("nbf", False)):
        at = found.get(claim)
        if at is None:
            continue
        if isinstance(at, bool) or not isinstance(at, int | float):
            message = "its times are not valid"
            raise Invalid(message)
        if now >= at + issuer.leeway if is_past else now < at - issuer.leeway:
            message = "it has expired" if is_past else "it is not valid yet"
            raise Invalid(message)

"""Asking an issuer whether a token is good (RFC 7662); its answer is believed for a short time."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote_plus

from truename.access.fetching import FetchFault
from truename.access.signed import Invalid

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from truename.access.keys import Speaker
    from truename.config import Issuer

__all__ = ["Introspection", "basic"]

_MOST: Final = 10_000
_BELIEVED: Final = 30.0


class Introspection:
    """One issuer that is asked. What a token is stays unknown here: answers are kept under its digest."""

    def __init__(self, issuer: Issuer, speaker: Speaker, clock: Callable[[], float]) -> None:
        self._issuer = issuer
        self._speaker = speaker
        self._clock = clock
        self._answers: OrderedDict[bytes, tuple[float, Mapping[str, Any]]] = OrderedDict()

    async def claims(self, token: str, audience: frozenset[str]) -> Mapping[str, Any]:
        """Return what the issuer says of a token that is good. Raises `Invalid` and `FetchFault`."""
        key, now = hashlib.sha256(token.encode()).digest(), self._clock()
        until, found = self._answers.get(key, (0.0, {}))
        if now >= until:
            found = await self._asked(token)
            self._answers[key] = now + _BELIEVED, found
            self._answers.move_to_end(key)
            while len(self._answers) > _MOST:
                self._answers.popitem(last=False)
        _check(found, self._issuer, audience, now)
        return found

    async def _asked(self, token: str) -> Mapping[str, Any]:
        issuer = self._issuer
        answer = await self._speaker.ask(
            "introspection_endpoint",
            issuer.introspection_url,
            {"token": token, "token_type_hint": "access_token"},
            {"authorization": basic(issuer.client_id, issuer.client_secret)},
        )
        if answer.status != 200:
            message = f"introspection at {issuer.issuer} is answered with {answer.status}"
            raise FetchFault(message)
        found: Mapping[str, Any] = answer.document()
        return found


def basic(client_id: str, client_secret: str) -> str:
    """Return the Authorization header of a client (RFC 6749 section 2.3.1: each part is encoded first).

    >>> basic("a:b", "c")
    'Basic YSUzQWI6Yw=='
    """
    pair = f"{quote_plus(client_id)}:{quote_plus(client_secret)}"
    return f"Basic {b64encode(pair.encode()).decode()}"


def _check(found: Mapping[str, Any], issuer: Issuer, audience: frozenset[str], now: float) -> None:
    """Raise `Invalid` for what is not good here: also where it is not said for whom a token is (RFC 8707)."""
    if found.get("active") is not True:
        message = "its issuer says that it is not good, or no longer"
        raise Invalid(message)
    if found.get("iss", issuer.issuer) != issuer.issuer:
        message = "it is another issuer's"
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
            message = "its times can't be read"
            raise Invalid(message)
        if now >= at + issuer.leeway if is_past else now < at - issuer.leeway:
            message = "it has expired" if is_past else "it is not good yet"
            raise Invalid(message)

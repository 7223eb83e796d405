"""Access tokens of authorization servers: the gateway as an OAuth 2.1 resource server."""

from __future__ import annotations

import hashlib
import logging
from collections import OrderedDict
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from truename.access.admission import Admission, Refusal
from truename.access.claims import other_kind, principal_in
from truename.access.fetching import FetchFault
from truename.access.introspection import Introspection
from truename.access.keys import Keys, Speaker
from truename.access.signed import Invalid, UnknownKey, is_signed, issuer_in, verified

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from truename.access.fetching import Fetch
    from truename.config import Issuer

__all__ = ["IssuerWay"]

log: Final = logging.getLogger("truename.access")

_MOST: Final = 10_000
_KEPT: Final = 60.0
# A stream that was opened with a token that may be revoked ends then, and its client comes again.
_ASKED_AGAIN: Final = 300.0
_UNREACHABLE: Final = Refusal(error="temporarily_unavailable", text="The token can't be checked now. Try again later.")


class IssuerWay:
    """One issuer's access tokens. ``resource`` is the gateway as the issuer knows it, if nothing else is configured.

    A token that was found good is believed for a minute without another look at its signature, while its issuer's
    keys stay the same.
    """

    def __init__(self, issuer: Issuer, resource: str, fetch: Fetch, clock: Callable[[], float]) -> None:
        speaker = Speaker(issuer.issuer, fetch, clock)
        self._issuer = issuer
        self._audience = frozenset(issuer.audience or (resource,))
        self._clock = clock
        self._keys = Keys(speaker, issuer.jwks_url, clock)
        self._introspection = Introspection(issuer, speaker, clock)
        self._good: OrderedDict[bytes, tuple[float, int, Admission]] = OrderedDict()

    def knows(self, token: str) -> bool:
        """Tell whether a token says that it is this issuer's; one that says nothing may be, if it can be asked."""
        if is_signed(token):
            return issuer_in(token) == self._issuer.issuer
        return self._issuer.introspection != "never"

    async def admit(self, token: str) -> Admission | Refusal:
        """Judge a token."""
        try:
            found = await self._admitted(token)
            # What is remembered of tokens has none of them in it.
            return replace(found, token=token) if isinstance(found, Admission) else found
        except Invalid as problem:
            return Refusal(error="invalid_token", text=f"The token is not accepted: {problem}.")
        except OverflowError:
            return Refusal(error="invalid_token", text="The token is not accepted: its times can't be read.")
        except FetchFault as fault:
            log.warning("tokens of %s can't be checked: %s", self._issuer.issuer, fault)
            return _UNREACHABLE

    async def _admitted(self, token: str) -> Admission | Refusal:
        if not is_signed(token) or self._issuer.introspection == "always":
            return self._judged(await self._asked(token), self._clock() + _ASKED_AGAIN)
        key, now = hashlib.sha256(token.encode()).digest(), self._clock()
        until, changes, known = self._good.get(key, (0.0, 0, None))
        if known is not None and now < until and changes == self._keys.changes:
            return known
        found = self._judged(await self._verified(token), float("inf"))
        if isinstance(found, Admission):
            self._remember(key, now, found)
        return found

    def _remember(self, key: bytes, now: float, admission: Admission) -> None:
        until = min(now + _KEPT, admission.until or now)
        self._good[key] = until, self._keys.changes, admission
        self._good.move_to_end(key)
        while len(self._good) > _MOST:
            self._good.popitem(last=False)

    async def _asked(self, token: str) -> Mapping[str, Any]:
        # What a signed token says of itself counts as well as what its issuer says now.
        signed = await self._verified(token) if is_signed(token) else {}
        return {**signed, **await self._introspection.claims(token, self._audience)}

    async def _verified(self, token: str) -> Mapping[str, Any]:
        keys = await self._keys.now()
        try:
            return verified(token, keys, self._issuer, self._audience, self._clock())
        except UnknownKey:
            newer = await self._keys.newer(keys)
            return verified(token, newer, self._issuer, self._audience, self._clock())

    def _judged(self, claims: Mapping[str, Any], until: float) -> Admission | Refusal:
        issuer = self._issuer
        if "cnf" in claims:
            message = "it is bound to a key of its owner's, which can't be checked here"
            raise Invalid(message)
        if (kind := other_kind(claims)) is not None:
            message = f"it is {kind}"
            raise Invalid(message)
        principal = principal_in(
            claims, issuer=issuer.issuer, name_claim=issuer.name_claim, groups_claim=issuer.groups_claim
        )
        if issuer.clients and principal.client not in issuer.clients:
            message = "its client may not come in"
            raise Invalid(message)
        if missing := [scope for scope in issuer.scopes if scope not in principal.scopes]:
            text = f"The token lacks the scope {missing[0]}."
            return Refusal(error="insufficient_scope", text=text, scopes=issuer.scopes)
        if claims.get("exp") is not None:
            until = min(until, float(claims["exp"]) + issuer.leeway)
        return Admission(principal=principal, until=until)

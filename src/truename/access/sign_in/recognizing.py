"""Who sits at a browser, as the identity provider says it: for pages that are for one person alone.

Nobody is signed in by this, and nothing is kept of it.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from truename.access.pkce import challenge_of
from truename.access.sign_in.consent import fault_page
from truename.access.sign_in.held import Held
from truename.access.sign_in.provider import NotAllowedIn
from truename.access.signed import Invalid

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.responses import Response

    from truename.access.sign_in.provider import Provider
    from truename.policy.principal import Principal

    Then = Callable[[Principal], Awaitable[Response]]

__all__ = ["Recognizer"]

_SECONDS: Final = 600.0
_GONE: Final = "This is not known: it took too long, was finished before, or was begun in another browser."
_NOBODY: Final = "The identity provider did not say who you are."


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """Somebody is at the provider; ``browser`` is a digest of their browser's ``cookie``."""

    cookie: str
    browser: str
    verifier: str = field(repr=False)
    nonce: str = field(repr=False)
    then: Then


class Recognizer:
    """Sends people to the identity provider of sign-in; ``vouches`` is the issuer of the principals that it finds."""

    def __init__(self, provider: Provider, vouches: str, clock: Callable[[], float]) -> None:
        self.vouches = vouches
        self._provider = provider
        self._asked: Held[_Asked] = Held(_SECONDS, clock)

    async def address(self, cookie: str, browser: str, then: Then) -> str:
        """Return where to send the browser with this cookie; ``then`` answers when it is back. Raises `FetchFault`."""
        state, verifier, nonce = (secrets.token_urlsafe(48) for _ in range(3))
        address = await self._provider.address(state, challenge_of(verifier), nonce)
        one = _Asked(cookie=cookie, browser=_digest(browser), verifier=verifier, nonce=nonce, then=then)
        self._asked.put(state, one)
        return address

    async def answer(self, request: Request) -> Response | None:
        """Answer somebody who came back from the provider; None for who was sent there by others.

        Raises `FetchFault`, and what ``then`` raises.
        """
        said = request.query_params
        one = self._asked.look(said.get("state", ""))
        if one is None:
            return None
        names = [name for name, _ in said.multi_items()]
        if len(set(names)) < len(names):
            return fault_page(_GONE)
        if not hmac.compare_digest(one.browser, _digest(request.cookies.get(one.cookie, ""))):
            return fault_page(_GONE, 403)
        self._asked.take(said["state"])
        try:
            await self._provider.check_sender(said.get("iss"))
            if "error" in said or "code" not in said:
                return fault_page(_NOBODY, 403)
            proof = await self._provider.proof(said["code"], one.verifier, one.nonce)
        except (NotAllowedIn, Invalid):
            return fault_page(_NOBODY, 403)
        return await one.then(proof.principal)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()

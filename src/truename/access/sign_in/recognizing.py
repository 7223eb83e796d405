"""Who sits at a browser, as the identity provider says it: for pages that are for one person alone.

Nobody is signed in by this, and nothing is kept of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from truename.access.pkce import challenge_of
from truename.access.sign_in.consent import fault_page
from truename.access.sign_in.provider import NotAllowedIn
from truename.access.signed import Invalid

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.responses import Response

    from truename.access.sign_in.provider import Provider
    from truename.access.sign_in.visits import Visits
    from truename.policy.principal import Principal

    Then = Callable[[str, str, Principal], Awaitable[Response]]

__all__ = ["Recognizer"]

_KIND: Final = "recognition"
_GONE: Final = "This is not known: it took too long, was finished before, or was begun in another browser."
_NOBODY: Final = "The identity provider did not say who you are."


class Recognizer:
    """Sends people to the identity provider of sign-in; ``vouches`` is the issuer of the principals that it finds."""

    def __init__(self, provider: Provider, vouches: str, visits: Visits) -> None:
        self.vouches = vouches
        self._provider = provider
        self._visits = visits
        self._cookie = ""
        self._then: Then | None = None

    def attend(self, cookie: str, then: Then) -> None:
        """Have ``then`` answer those who are back: what for, with which browser, who; ``cookie`` has the browser's."""
        self._cookie, self._then = cookie, then

    async def address(self, browser: str, what: str) -> str:
        """Return where to send the browser with this cookie, ``what`` for. Raises `FetchFault`."""
        state, visit = self._visits.begin(_KIND, browser, [what])
        return await self._provider.address(state, challenge_of(visit.verifier), visit.nonce)

    async def answer(self, request: Request) -> Response | None:
        """Answer somebody who came back from the provider; None for who was sent there by others.

        Raises `FetchFault`, and what ``then`` raises.
        """
        said, browser = request.query_params, request.cookies.get(self._cookie, "")
        visit = self._visits.back(_KIND, browser, said.get("state", ""))
        if visit is None or self._then is None:
            return None
        names = [name for name, _ in said.multi_items()]
        if self._visits.is_finished(visit) or len(set(names)) < len(names):
            return fault_page(_GONE)
        try:
            await self._provider.check_sender(said.get("iss"))
            if "error" in said or "code" not in said:
                return fault_page(_NOBODY, 403)
            proof = await self._provider.proof(said["code"], visit.verifier, visit.nonce)
        except (NotAllowedIn, Invalid):
            return fault_page(_NOBODY, 403)
        if not self._visits.finish(visit, proof.principal.key):
            return fault_page(_GONE)
        return await self._then(str(visit.said[0]), browser, proof.principal)

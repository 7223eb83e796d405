"""The way in for those who are signed in: the gateway's own access tokens."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from truename.access.admission import Admission, Refusal
from truename.access.signed import Invalid, is_signed, issuer_in
from truename.errors import StoreError

if TYPE_CHECKING:
    from truename.access.sign_in.issued import Issued
    from truename.access.sign_in.sessions import Sessions

__all__ = ["SignedIn"]

log: Final = logging.getLogger("truename.access")

_TRY_LATER: Final = Refusal(error="temporarily_unavailable", text="Sign-ins can't be checked now. Try again later.")
_OVER: Final = Refusal(error="invalid_token", text="The sign-in has ended, or was revoked. Sign in again.")


class SignedIn:
    """Access tokens that were issued here. Each is good as long as its session is, whatever it says of its end."""

    def __init__(self, issued: Issued, sessions: Sessions, *, issuer: str, resource: str) -> None:
        self._issued = issued
        self._sessions = sessions
        self._issuer = issuer
        self._resource = resource

    def knows(self, token: str) -> bool:
        """Tell whether a token says that it was issued here."""
        return is_signed(token) and issuer_in(token) == self._issuer

    async def admit(self, token: str) -> Admission | Refusal:
        """Judge an access token: it is good as long as its session is."""
        try:
            said = self._issued.read("at+jwt", self._resource, token)
            session = self._sessions.get(str(said["session"]))
        except Invalid as problem:
            return Refusal(error="invalid_token", text=f"The token is not accepted: {problem}.")
        except StoreError as error:
            log.error("sign-ins can't be checked: %s", error)  # noqa: TRY400 - the text says it all
            return _TRY_LATER
        if session is None:
            return _OVER
        scopes = frozenset(str(said["scope"]).split()) & session.scopes
        return Admission(
            principal=replace(session.principal, scopes=scopes),
            until=float(said["exp"]),
            stands=lambda: self._stands(session.id),
        )

    def _stands(self, id: str) -> bool:
        try:
            return self._sessions.get(id) is not None
        except StoreError:
            return False

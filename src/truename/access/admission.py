"""What came of somebody at the door: they were let in, or they were not, and why."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from truename.policy.principal import Principal

__all__ = ["LONGEST_TOKEN", "Admission", "Refusal", "Way", "bearer_of"]

LONGEST_TOKEN: Final = 16_384

Reason = Literal["", "invalid_request", "invalid_token", "insufficient_scope", "temporarily_unavailable"]
_STATUS: Final = {"invalid_request": 400, "insufficient_scope": 403, "temporarily_unavailable": 503}


def _for_ever() -> bool:
    return True


@dataclass(frozen=True, kw_only=True, eq=False)
class Admission:
    """Somebody was let in: ``until`` then (seconds since 1970), and as long as ``stands`` says that it holds.

    ``token`` is the access token that they showed, if an authorization server gave it, which may be exchanged for
    another one (RFC 8693): it is kept nowhere, and sent to nobody else.
    """

    principal: Principal
    until: float | None = None
    stands: Callable[[], bool] = field(default=_for_ever, repr=False)
    token: str = field(default="", repr=False)

    @property
    def is_lasting(self) -> bool:
        """Whether it can't end while the gateway runs."""
        return self.until is None and self.stands is _for_ever


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """Somebody was not let in. ``error`` is RFC 6750's word for it, "" where no credentials were sent.

    ``text`` says what to do, and nothing of the credentials; ``scopes`` are those that would do.
    """

    error: Reason = ""
    text: str = "Send a bearer token."
    scopes: tuple[str, ...] = ()

    @property
    def status(self) -> int:
        """The HTTP status that says so."""
        return _STATUS.get(self.error, 401)


class Way(Protocol):
    """One way to be let in."""

    def knows(self, token: str) -> bool:
        """Tell whether such a token is this way's to judge; what it looks like is all that may count."""
        ...

    async def admit(self, token: str) -> Admission | Refusal:
        """Judge a token."""
        ...


def bearer_of(values: list[str]) -> str | Refusal:
    """Return the token of a request's Authorization headers (RFC 6750 section 2.1), or why there is none.

    >>> bearer_of(["bearer abc"])
    'abc'
    >>> bearer_of(["Bearer a", "Bearer b"]).error, bearer_of([]).error
    ('invalid_request', '')
    """
    if not values:
        return Refusal()
    if len(values) > 1:
        return Refusal(error="invalid_request", text="Send one Authorization header.")
    scheme, _, token = values[0].partition(" ")
    token = token.strip(" ")
    if scheme.lower() != "bearer":
        return Refusal()
    if not token.isascii() or not token.isprintable() or " " in token or len(token) > LONGEST_TOKEN or not token:
        return Refusal(error="invalid_token", text="That is no bearer token.")
    return token

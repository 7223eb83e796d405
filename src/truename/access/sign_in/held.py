"""What lives for a moment during a sign-in: visits to the provider, and codes."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from mcp.server.auth.provider import AuthorizationCode, RefreshToken
from pydantic import Field

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp.server.auth.provider import AuthorizationParams

__all__ = ["Code", "Held", "Turn", "Visit"]

_MOST: Final = 10_000
T = TypeVar("T")


class Held(Generic[T]):
    """Values that are fetched once, within a time; of too many the oldest go. Their names are kept as digests."""

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self._seconds = seconds
        self._clock = clock
        self._kept: OrderedDict[bytes, tuple[float, T]] = OrderedDict()

    def put(self, name: str, value: T) -> None:
        """Keep a value."""
        self._kept[_digest(name)] = self._clock() + self._seconds, value
        while len(self._kept) > _MOST:
            self._kept.popitem(last=False)

    def look(self, name: str) -> T | None:
        """Return a value and leave it there."""
        until, found = self._kept.get(_digest(name), (0.0, None))
        return found if self._clock() < until else None

    def take(self, name: str) -> T | None:
        """Return a value, which nobody gets after this."""
        until, found = self._kept.pop(_digest(name), (0.0, None))
        return found if self._clock() < until else None


def _digest(name: str) -> bytes:
    return hashlib.sha256(name.encode()).digest()


@dataclass(frozen=True, kw_only=True)
class Visit:
    """Somebody who agreed, and is at the provider now; ``browser`` is a digest of their browser's cookie."""

    client_id: str
    client_name: str
    params: AuthorizationParams
    browser: str
    verifier: str = field(repr=False)
    nonce: str = field(repr=False)


class Code(AuthorizationCode):
    """A code, and what it is exchanged for."""

    session: Any = None
    refresh_token: str = Field(default="", repr=False)


class Turn(RefreshToken):
    """A refresh token, and the session whose it is."""

    session: Any = None

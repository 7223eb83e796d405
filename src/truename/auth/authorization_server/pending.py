"""Store the short-lived state of sign-ins: requests, consents and codes."""

from __future__ import annotations

import hashlib
from collections import Counter, OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from mcp.server.auth.provider import AuthorizationCode, AuthorizationParams, RefreshToken
from pydantic import AnyUrl, Field

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

__all__ = ["ConsentGiven", "IssuedCode", "IssuedRefreshToken", "OwnedTTLCache", "SecretTTLCache"]

MAX_PENDING: Final = 10_000
T = TypeVar("T")


class OwnedTTLCache(Generic[T]):
    """A cache with expiry and a shared limit: when it is full, the owner with the most entries loses the oldest.

    So nobody can evict the values of others, as in a plain `TTLCache`.

    >>> logins = OwnedTTLCache(600.0, lambda: 0.0)
    >>> logins.put("n1", "a login", whose="ann")
    >>> for number in range(20_000):
    ...     logins.put(number, "another", whose="eve")
    >>> logins.look("n1"), logins.look(0)
    ('a login', None)
    """

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self._seconds = seconds
        self._clock = clock
        self._kept: OrderedDict[Hashable, tuple[float, str, T]] = OrderedDict()
        self._counts: Counter[str] = Counter()

    def put(self, name: Hashable, value: T, *, whose: str) -> None:
        """Store a value under a name, replacing an earlier one."""
        self._drop(name)
        self._kept[name] = self._clock() + self._seconds, whose, value
        self._counts[whose] += 1
        while len(self._kept) > MAX_PENDING:
            self._drop(self._to_go())

    def look(self, name: Hashable) -> T | None:
        """Return a value without removing it; None if there is none."""
        until, _, found = self._kept.get(name, (0.0, "", None))
        return found if self._clock() < until else None

    def take(self, name: Hashable) -> T | None:
        """Remove a value and return it; None if there is none."""
        found = self.look(name)
        self._drop(name)
        return found

    def _to_go(self) -> Hashable:
        """Choose what to evict: an expired entry first, else the oldest of the owner with the most entries."""
        oldest = next(iter(self._kept))
        if self._clock() >= self._kept[oldest][0]:
            return oldest
        ((most, _),) = self._counts.most_common(1)
        return next(name for name, (_, whose, _) in self._kept.items() if whose == most)

    def _drop(self, name: Hashable) -> None:
        if (gone := self._kept.pop(name, None)) is not None:
            whose = gone[1]
            self._counts[whose] -= 1
            if not self._counts[whose]:
                del self._counts[whose]


class SecretTTLCache(Generic[T]):
    """An `OwnedTTLCache` whose keys are secrets: it stores only their digests."""

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self._kept: OwnedTTLCache[T] = OwnedTTLCache(seconds, clock)

    def put(self, name: str, value: T, *, whose: str) -> None:
        """Store a value under a secret name."""
        self._kept.put(_digest(name), value, whose=whose)

    def look(self, name: str) -> T | None:
        """Return a value without removing it; None if there is none."""
        return self._kept.look(_digest(name))

    def take(self, name: str) -> T | None:
        """Remove a value and return it; None if there is none."""
        return self._kept.take(_digest(name))


def _digest(name: str) -> bytes:
    return hashlib.sha256(name.encode()).digest()


@dataclass(frozen=True)
class ConsentGiven:
    """The request to which a person consented; ``client`` is a digest of the client's id."""

    client: str
    params: AuthorizationParams

    def packed(self) -> Sequence[object]:
        """Return the fields needed later as short JSON values."""
        params = self.params
        return [self.client, str(params.redirect_uri), params.state, params.code_challenge, params.scopes or []]

    @classmethod
    def of(cls, packed: Sequence[Any]) -> ConsentGiven:
        """Restore a consent from its packed form."""
        client, redirect_uri, state, challenge, scopes = packed
        params = AuthorizationParams(
            redirect_uri=AnyUrl(redirect_uri),
            redirect_uri_provided_explicitly=True,
            state=state,
            code_challenge=challenge,
            scopes=scopes,
        )
        return cls(client, params)


class IssuedCode(AuthorizationCode):
    """An authorization code, with the session that it starts."""

    session: Any = None
    refresh_token: str = Field(default="", repr=False)


class IssuedRefreshToken(RefreshToken):
    """A refresh token, with its session."""

    session: Any = None

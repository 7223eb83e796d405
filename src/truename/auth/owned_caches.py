"""Caches with expiry that many people share: who fills one loses their own entries, not those of others."""

from __future__ import annotations

import hashlib
from collections import Counter, OrderedDict
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

__all__ = ["OwnedTTLCache", "SecretTTLCache"]

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
        """Return the value, which stays stored; None if the name is unknown or expired."""
        until, _, found = self._kept.get(name, (0.0, "", None))
        return found if self._clock() < until else None

    def take(self, name: Hashable) -> T | None:
        """Remove the value, and return it; None if the name is unknown or expired."""
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
        """Return the value, which stays stored; None if the name is unknown or expired."""
        return self._kept.look(_digest(name))

    def take(self, name: str) -> T | None:
        """Remove the value, and return it; None if the name is unknown or expired."""
        return self._kept.take(_digest(name))


def _digest(name: str) -> bytes:
    return hashlib.sha256(name.encode()).digest()

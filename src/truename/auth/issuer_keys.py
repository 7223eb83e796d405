"""Keep the public keys of an issuer (RFC 7517): fetched at need, renewed while the old ones still hold."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import anyio

from truename.auth.jwt import KeySet, import_keys
from truename.auth.network.fetch import FetchError

if TYPE_CHECKING:
    from collections.abc import Callable

    from truename.auth.oauth import IssuerClient

__all__ = ["IssuerKeys"]

log: Final = logging.getLogger("truename.auth")

_FRESH: Final = 600.0
_GOOD: Final = 3_600.0
_PAUSE: Final = 10.0


class IssuerKeys:
    """The keys of one issuer; ``changes`` counts how often they were fetched."""

    def __init__(self, issuer_client: IssuerClient, typed: str | None, clock: Callable[[], float]) -> None:
        self._issuer_client = issuer_client
        self._typed = typed
        self._clock = clock
        self._known = KeySet()
        self._at = self._tried = float("-inf")
        self._lock = anyio.Lock()
        self.changes = 0

    async def now(self) -> KeySet:
        """Return the keys. Raises `FetchError` if there are no current ones."""
        is_good = self._clock() < self._at + _GOOD
        # While an issuer is slow, one request waits for it; the others use the known keys.
        if self._clock() >= self._at + _FRESH and not (is_good and self._lock.locked()):
            await self._renew(self._at)
        if self._clock() >= self._at + _GOOD:
            message = f"the keys of {self._issuer_client.issuer} cannot be fetched"
            raise FetchError(message)
        return self._known

    async def newer(self, known: KeySet) -> KeySet:
        """Fetch the keys again, unless that was just done, and return them. Raises `FetchError`."""
        if known is self._known:
            await self._renew(self._at)
        return self._known

    async def _renew(self, at: float) -> None:
        async with self._lock:
            # A task that waited for the lock finds them renewed.
            if self._at != at or self._clock() < self._tried + _PAUSE:
                return
            self._tried = self._clock()
            try:
                answer = await self._issuer_client.ask("jwks_uri", self._typed)
                if answer.status != 200:
                    message = f"the keys of {self._issuer_client.issuer} cannot be fetched (HTTP {answer.status})"
                    raise FetchError(message)
                found = import_keys(answer.document())
            except FetchError as fault:
                log.warning("Cannot renew the keys of %s: %s", self._issuer_client.issuer, fault)
                return
            self._known, self._at = found, self._clock()
            self.changes += 1

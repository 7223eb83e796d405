"""An issuer's keys: fetched at first need, kept for a while, and fetched anew when a token has a key that is not known.

Anybody can send tokens with keys that nobody has; so that this is not a way to have the gateway flood an issuer, it is
asked once in so many seconds at most. If it can't be reached, its last keys are good for an hour more.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

import anyio

from truename.access.fetching import FetchFault
from truename.access.metadata import endpoint_in, metadata_of
from truename.access.signed import KeySet, imported

if TYPE_CHECKING:
    from collections.abc import Callable

    from truename.access.fetching import Fetch

__all__ = ["Keys", "Speaker"]

log: Final = logging.getLogger("truename.access")

_FRESH: Final = 600.0
_GOOD: Final = 3_600.0
_PAUSE: Final = 10.0


class Speaker:
    """An issuer as it speaks for itself: its metadata, fetched at first need and kept for an hour."""

    def __init__(self, issuer: str, fetch: Fetch, clock: Callable[[], float]) -> None:
        self.issuer = issuer
        self._fetch = fetch
        self._clock = clock
        self._known: dict[str, Any] = {}
        self._until = 0.0
        self._lock = anyio.Lock()

    async def metadata(self) -> dict[str, Any]:
        """Return its metadata. Raises `FetchFault`."""
        async with self._lock:
            if self._clock() >= self._until:
                self._known = await metadata_of(self.issuer, self._fetch)
                self._until = self._clock() + _GOOD
            return self._known

    async def endpoint(self, name: str, typed: str | None) -> str:
        """Return a URL that the operator wrote down, or that of its metadata. Raises `FetchFault`."""
        return typed or endpoint_in(await self.metadata(), name, self.issuer)

    async def ask(
        self, name: str, typed: str | None, form: dict[str, str] | None = None, headers: dict[str, str] | None = None
    ) -> Any:
        """Fetch from one of its URLs, which may lead no nearer than the issuer itself is. Raises `FetchFault`."""
        url = await self.endpoint(name, typed)
        if typed is not None:
            return await self._fetch(url, form=form, headers=headers)
        return await self._fetch(url, named_by=await self._fetch.nearness(self.issuer), form=form, headers=headers)


class Keys:
    """The keys of one issuer; ``changes`` counts how often they became others."""

    def __init__(self, speaker: Speaker, typed: str | None, clock: Callable[[], float]) -> None:
        self._speaker = speaker
        self._typed = typed
        self._clock = clock
        self._known = KeySet()
        self._at = self._tried = float("-inf")
        self._lock = anyio.Lock()
        self.changes = 0

    async def now(self) -> KeySet:
        """Return the keys. Raises `FetchFault` if there are none that are good."""
        is_good = self._clock() < self._at + _GOOD
        # While an issuer is slow, one request waits for it, and the others go by what is known.
        if self._clock() >= self._at + _FRESH and not (is_good and self._lock.locked()):
            await self._renew(self._at)
        if self._clock() >= self._at + _GOOD:
            message = f"the keys of {self._speaker.issuer} can't be had"
            raise FetchFault(message)
        return self._known

    async def newer(self, known: KeySet) -> KeySet:
        """Return the keys after a look for new ones, unless that was just done. Raises `FetchFault`."""
        if known is self._known:
            await self._renew(self._at)
        return self._known

    async def _renew(self, at: float) -> None:
        async with self._lock:
            # Whoever waited for the lock finds them renewed.
            if self._at != at or self._clock() < self._tried + _PAUSE:
                return
            self._tried = self._clock()
            try:
                answer = await self._speaker.ask("jwks_uri", self._typed)
                if answer.status != 200:
                    message = f"the keys of {self._speaker.issuer} are answered with {answer.status}"
                    raise FetchFault(message)
                found = imported(answer.document())
            except FetchFault as fault:
                log.warning("keys of %s: %s", self._speaker.issuer, fault)
                return
            self._known, self._at = found, self._clock()
            self.changes += 1

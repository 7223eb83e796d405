"""How much room there is over all endpoints, and which share of it one principal may have."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from truename.policy.principal import LOCAL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from truename.config import Settings
    from truename.policy.principal import Principal

__all__ = ["Quota", "Share", "share_of", "whose"]


class Share(NamedTuple):
    """How much there is in all, how much of it one principal may have, and how much is for those who have nothing yet.

    Whatever one principal takes, there is some for the next; and whatever all others take, there is some for
    ``reserved`` principals who come first.
    """

    total: int
    each: int
    reserved: int

    def fits(self, held: int, taken: int, amount: int = 1, *, is_alone: bool = False) -> bool:
        """Tell whether somebody who holds this much may have more, where so much is taken by all.

        ``is_alone``: nobody says who they are, so there is nobody to share with.

        >>> share = Share(total=10, each=5, reserved=1)
        >>> share.fits(held=4, taken=8), share.fits(held=4, taken=9), share.fits(held=0, taken=9)
        (True, False, True)
        >>> share.fits(held=5, taken=5), share.fits(held=5, taken=5, is_alone=True)
        (False, True)
        """
        if not amount:
            return True
        if is_alone:
            return taken + amount <= self.total
        return held + amount <= self.each and taken + amount <= self.total - (self.reserved if held else 0)


def share_of(settings: Settings, total: int) -> Share:
    """Return the share that the settings give each principal of something."""
    each, reserved = (total * percent // 100 for percent in (settings.principal_share, settings.reserved_share))
    return Share(total, max(each, 1), reserved)


def whose(principal: Principal) -> str | None:
    """Return whose share somebody takes; None for everybody, where nobody says who they are."""
    return None if principal is LOCAL else principal.key


class Quota:
    """Places, or bytes, that are taken while a block lasts."""

    def __init__(self, share: Share) -> None:
        self._share = share
        self._held: Counter[str | None] = Counter()

    def resize(self, share: Share) -> None:
        """Have another share for what is taken from now on."""
        self._share = share

    @property
    def taken(self) -> int:
        """How much is taken."""
        return self._held.total()

    @contextmanager
    def place(self, who: str | None, amount: int = 1) -> Iterator[bool]:
        """Take a place for somebody (`whose`), or so many bytes, if there is room; gives whether there was."""
        found = self._share.fits(self._held[who], self.taken, amount, is_alone=who is None)
        self._held[who] += amount if found else 0
        try:
            yield found
        finally:
            self._held[who] -= amount if found else 0
            if not self._held[who]:
                del self._held[who]

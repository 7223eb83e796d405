"""How much room there is over all endpoints, and which share of it one principal may have."""

from __future__ import annotations

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
        self._held: dict[str | None, int] = {}
        self._taken = 0

    def resize(self, share: Share) -> None:
        """Have another share for what is taken from now on."""
        self._share = share

    @property
    def taken(self) -> int:
        """How much is taken."""
        return self._taken

    def take(self, who: str | None, amount: int = 1) -> bool:
        """Take a place for somebody (`whose`), or so many bytes, and return True; False where there is no room."""
        if not amount:
            return True
        held = self._held.get(who, 0)
        if not self._share.fits(held, self._taken, amount, is_alone=who is None):
            return False
        self._held[who] = held + amount
        self._taken += amount
        return True

    def give_back(self, who: str | None, amount: int = 1) -> None:
        """Give back what was taken."""
        if not amount:
            return
        self._taken -= amount
        left = self._held[who] - amount
        if left:
            self._held[who] = left
        else:
            del self._held[who]

    @contextmanager
    def place(self, who: str | None, amount: int = 1) -> Iterator[bool]:
        """Take a place while the block lasts; gives whether there was room."""
        found = self.take(who, amount)
        try:
            yield found
        finally:
            if found:
                self.give_back(who, amount)

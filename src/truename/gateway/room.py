"""How much room there is over all endpoints: each counts its own sessions, and there may be many endpoints."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Room"]


class Room:
    """Places that are taken while a block lasts."""

    def __init__(self, places: int) -> None:
        self.places = places
        self.taken = 0

    @contextmanager
    def place(self) -> Iterator[bool]:
        """Take a place, if there is one; gives whether there was."""
        found = self.taken < self.places
        self.taken += found
        try:
            yield found
        finally:
            self.taken -= found

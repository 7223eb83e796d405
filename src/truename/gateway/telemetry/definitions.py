"""What became of definitions: trusted, changed, accepted or rejected, by whomever and in whichever process."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from truename.trust import PinBook
    from truename.trust.book import Pinned

__all__ = ["Definitions"]

# Of what is trusted because it is there first: beyond this a number for each server.
_MOST: Final = 1_000


class Definitions:
    """Compares the book of pins with what it held at the last look. What it held at the first is no news."""

    def __init__(self, book: PinBook) -> None:
        self._book = book
        self._pins, self._seen = book.pins(), book.seen()

    def news(self) -> Iterator[dict[str, Any]]:
        """Yield what changed since the last look, as fields of a record."""
        pins, seen = self._book.pins(), self._book.seen()
        old_pins, old_seen = self._pins, self._seen
        if pins is not old_pins:
            self._pins = pins
            yield from _pinned([one for key, one in pins.items() if old_pins.get(key) != one])
            yield from (_fields("forgotten", one) for key, one in old_pins.items() if key not in pins)
        if seen is not old_seen:
            self._seen = seen
            changed = (one for key, one in seen.items() if getattr(old_seen.get(key), "word", "") != one.word)
            yield from (_fields(one.word, one) for one in changed)


def _pinned(found: list[Pinned]) -> Iterator[dict[str, Any]]:
    first = [one for one in found if not one.by]
    yield from (_fields("accepted", one) for one in found if one.by)
    if len(first) <= _MOST:
        yield from (_fields("pinned", one) for one in first)
    else:
        for server, count in Counter(one.server for one in first).items():
            yield {"what": "pinned", "server": server, "count": count}


def _fields(what: str, one: Pinned) -> dict[str, Any]:
    tool = None if one.id is None else str(one.id)
    return {"what": what, "tool": tool, "server": one.server, "upstream_name": one.name, "digest": one.digest} | (
        {"by": one.by} if one.by else {}
    )

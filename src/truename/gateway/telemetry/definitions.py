"""What the gateway did with definitions: trusted, held back, turned away. What commands decide they write down."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from truename.trust.approval_queue import about_definition
from truename.trust.pins import BY_LOCK

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from truename.trust import PinStore
    from truename.trust.pins import PinnedTool, SeenDefinition

    Pins = Mapping[str, PinnedTool]

__all__ = ["Definitions"]

# At one look: beyond this a number for each server and kind.
_MOST: Final = 1_000
# Whoever else said a word said it by a command.
_BY_ITSELF: Final = frozenset({"", BY_LOCK})


class Definitions:
    """Compares the book of pins with what it held at the last look. What it held at the first is no news."""

    def __init__(self, book: PinStore) -> None:
        self._book = book
        self._pins, self._seen = book.pins(), book.seen()

    def news(self) -> Iterator[dict[str, Any]]:
        """Yield what the gateway did since the last look, as fields of a record."""
        pins, seen = self._book.pins(), self._book.seen()
        old_pins, old_seen = self._pins, self._seen
        if pins is old_pins and seen is old_seen:
            return
        self._pins, self._seen = pins, seen
        new_pins = [one for key, one in pins.items() if old_pins.get(key) != one and one.by in _BY_ITSELF]
        new_seen = [one for key, one in seen.items() if _word(old_seen.get(key)) != one.word and one.by in _BY_ITSELF]
        yield from _told([(_became(one, old_pins), one) for one in new_pins])
        yield from _told([(_became(one, pins), one) for one in new_seen])


def _word(seen: SeenDefinition | None) -> str:
    return "" if seen is None else seen.word


def _became(one: PinnedTool, pins: Pins) -> str:
    """Return what became of a definition, of whose tool another one may have been trusted."""
    is_other = one.key in pins
    match getattr(one, "word", ""):
        case "waiting":
            return "quarantined" if is_other else "held"
        case "rejected":
            return "blocked"
        case _:
            return "accepted" if one.by else "changed" if is_other else "pinned"


def _told(found: list[tuple[str, PinnedTool]]) -> Iterator[dict[str, Any]]:
    if len(found) > _MOST:
        for (what, server), count in Counter((what, one.server) for what, one in found).items():
            yield {"what": what, "server": server, "count": count}
        return
    for what, one in found:
        yield {"what": what, **about_definition(one), "by": one.by}

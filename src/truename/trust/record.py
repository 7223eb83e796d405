"""What is on record of definitions, also under the id that a tool would have without a digest.

Which of two look-alikes carries a digest may change while the ledger is empty: a pin, or a no, must not be lost by it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from truename.catalog import Unfolded
    from truename.trust.book import Pinned, Seen
    from truename.trust.reviewed import Digests

__all__ = ["Record"]


class Record(NamedTuple):
    """Pins by key, what was seen besides by key and digest, and the digests of the lock."""

    pins: Mapping[str, Pinned]
    seen: Mapping[tuple[str, str], Seen]
    reviewed: Digests

    def pin(self, now: Pinned, plain: Sequence[Unfolded]) -> Pinned | None:
        """Return the pin of a tool: under its id, else that of the same tool of the same server under a plain id."""
        if (found := self.pins.get(now.key)) is not None or not plain:
            return found
        known = (self.pins.get(str(one)) for one in plain)
        return next((one for one in known if one is not None and _is_same(one, now)), None)

    def said_before(self, now: Pinned, plain: Sequence[Unfolded]) -> Seen | None:
        """Return what was said of just this definition: under its id, else a no to the same tool under a plain id."""
        if (found := self.seen.get((now.key, now.digest))) is not None or not plain:
            return found
        known = (self.seen.get((str(one), now.digest)) for one in plain)
        return next((one for one in known if one is not None and one.word == "rejected" and _is_same(one, now)), None)


def _is_same(one: Pinned, now: Pinned) -> bool:
    return (one.server, one.name) == (now.server, now.name)

"""What operators did with names in the ledger: where a name leads from now on is a decision, too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from truename.ledger import Ledger, Standing

    Withdrawn = Mapping[str, Standing]

__all__ = ["Withdrawals"]

# At one look: beyond this a number.
_MOST: Final = 1_000


class Withdrawals:
    """Compares what is withdrawn in a ledger with what was at the last look. What was at the first is no news."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._counts: dict[str, int] = {}
        self._known: dict[str, Withdrawn] = {}
        for _ in self.news():
            pass

    def news(self) -> Iterator[dict[str, Any]]:
        """Yield what was redirected, retired or broken off since the last look, as fields of a record."""
        for scope in self._ledger.scopes:
            space = self._ledger.scoped(scope)
            if self._counts.get(scope, 0) == space.withdrawals:
                continue
            before, now = self._known.get(scope, {}), dict(space.withdrawn)
            self._counts[scope], self._known[scope] = space.withdrawals, now
            changed = {name: one for name, one in now.items() if before.get(name) != one}
            if len(changed) > _MOST:
                yield {"what": "many", "scope": scope, "count": len(changed)}
                continue
            for name, one in changed.items():
                yield _told(name, one, scope)


def _told(name: str, standing: Standing, scope: str) -> dict[str, Any]:
    tool = standing.id and str(standing.id)
    return {
        "what": standing.status,
        "name": name,
        "tool": tool,
        "successor": None if standing.successor == tool else standing.successor,
        "until": standing.until,
        "scope": scope,
    }

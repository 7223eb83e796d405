"""The check before anything is recorded: no event may break a promise, or take more room than there is."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from truename.errors import LedgerError
from truename.identity import fold
from truename.ledger.events import Bind, Claim

if TYPE_CHECKING:
    from collections.abc import Sequence

    from truename.ledger.events import Event
    from truename.ledger.space import Space
    from truename.ledger.state import State

__all__ = ["check_events"]


def check_events(events: Sequence[Event], space: Space, state: State, max_claims: int) -> None:
    """Raise `LedgerError` for a name that is another tool's (``conflict``), ``withdrawn``, or too many (``full``)."""
    newcomers: dict[str, Claim] = {}
    for event in events:
        if isinstance(event, Claim) and _is_newcomer(event, newcomers, space):
            newcomers[fold(event.name)] = event
    added = Counter(claim.server for claim in newcomers.values())
    bound = Counter(event.server for event in events if isinstance(event, Bind))
    for counts, held in ((added, state.claims), (bound, state.bound)):
        for server, count in counts.items():
            if held[server] + count > max_claims:
                raise LedgerError(code="full", origin=server, count=max_claims)


def _is_newcomer(claim: Claim, newcomers: dict[str, Claim], space: Space) -> bool:
    """Tell whether nobody has the name yet."""
    name, id, key = claim.name, claim.id, fold(claim.name)
    holder = newcomers[key].id if key in newcomers else space.holder(key)
    if space.bars(name, id):
        raise LedgerError(code="withdrawn", name=name, claimant=id)
    if holder not in (None, id) and not space.is_heir(key, id):
        raise LedgerError(code="conflict", name=name, holder=holder, claimant=id)
    return holder is None

"""Check events before they are recorded: none breaks a promise, exceeds the room, or has a name that is not a text."""

from __future__ import annotations

from collections import Counter
from datetime import date
from typing import TYPE_CHECKING, Final

from truename.dialects import Reason
from truename.errors import InvalidName, InvalidToolId, LedgerError
from truename.identity import MAX_FOREIGN, ToolId, fold
from truename.ledger.events import Bind, Claim, Own

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from truename.ledger.events import Event
    from truename.ledger.state import LedgerState, NamingScope

__all__ = ["as_recorded", "check_events", "day_of", "newly_bound", "newly_owned", "tool_meant"]

# Of one server. Some list every file that they have, and what is remembered is remembered for good.
_MOST_URIS: Final = 2_000
_LONGEST_URI: Final = 2_048


def check_events(events: Sequence[Event], scope: NamingScope, state: LedgerState, max_claims: int) -> None:
    """Raise `LedgerError` for a name that is another tool's (``conflict``), ``withdrawn``, or too many (``full``)."""
    newcomers: dict[str, Claim] = {}
    for event in events:
        if isinstance(event, Claim) and _is_newcomer(event, key := fold(event.name), newcomers, scope):
            newcomers[key] = event
    claimed = Counter(claim.server for claim in newcomers.values())
    bound = Counter(event.server for event in events if isinstance(event, Bind))
    for counts, kind in ((claimed, "claims"), (bound, "bound")):
        for server, count in counts.items():
            if getattr(state.counts(server), kind) + count > max_claims:
                raise LedgerError(code="full", origin=server, count=max_claims)


def _is_newcomer(claim: Claim, key: str, newcomers: dict[str, Claim], scope: NamingScope) -> bool:
    """Return whether no tool has the name yet, whose fold is ``key``."""
    name, id = claim.name, claim.id
    holder = newcomers[key].id if key in newcomers else scope.holder(key)
    if scope.bars(name, id):
        raise LedgerError(code="withdrawn", name=name, claimant=id)
    if holder not in (None, id) and not scope.is_heir(key, id):
        raise LedgerError(code="conflict", name=name, holder=holder, claimant=id)
    return holder is None


def newly_bound(origins: Iterable[tuple[str, str, ToolId]], state: LedgerState) -> Iterator[Bind]:
    """Yield the identities to record. Raises `LedgerError` (``bound``) for one that belongs to another tool."""
    origins = tuple(origins)
    state.expect_identities(origins)
    for server, name, id in origins:
        origin = state.origin(id)
        if origin is None or (origin == (server, name) and state.binds(server, name, id)):
            yield Bind(server=server, name=name, id=id)
        elif origin != (server, name):
            raise LedgerError(code="bound", claimant=id, origin=origin[0], name=origin[1])


def newly_owned(uris: Iterable[tuple[str, str]], state: LedgerState) -> tuple[Own, ...]:
    """Return the pairs ``(uri, server)`` to record: those of new URIs, up to the limits.

    The first 2,000 URIs of a server are recorded, if they have at most 2,048 characters. Others are ignored.

    >>> from truename import Ledger
    >>> ledger = Ledger.memory()
    >>> ledger.own([("file:///a", "disk"), ("file:///a", "copy"), ("file:///b", "copy")])
    >>> dict(ledger.owners)
    {'file:///a': 'disk', 'file:///b': 'copy'}
    """
    uris = tuple(uris)
    state.owners.group().read_ahead(uri for uri, _ in uris if len(uri) <= _LONGEST_URI)
    found: dict[str, Own] = {}
    room: dict[str, int] = {}
    for uri, server in uris:
        left = room.setdefault(server, _MOST_URIS - state.counts(server).owned)
        if left > 0 and len(uri) <= _LONGEST_URI and uri not in found and state.owners.get(uri) is None:
            found[uri] = Own(uri=uri, server=server)
            room[server] = left - 1
    return tuple(found.values())


def as_recorded(name: str) -> str:
    """Return the form in which a name is recorded: the canonical id for an id in any spelling, else the text unchanged.

    Raises `InvalidName` for a name that is empty, too long or not printable.
    """
    if not name.strip() or len(name) > MAX_FOREIGN or not name.isprintable():
        reason = Reason("text", f"it is empty, longer than {MAX_FOREIGN:,} characters, or cannot be printed")
        raise InvalidName(name=name, dialect="a ledger", reasons=(reason,))
    try:
        return str(ToolId.parse(name))
    except InvalidToolId:
        return name


def day_of(until: str | date) -> str:
    """Return a day in the recorded form (ISO 8601), "" for none. Raises `LedgerError` (``invalid_day``).

    >>> from datetime import datetime
    >>> day_of(datetime(2027, 2, 1, 12, 30)), day_of("20270201")
    ('2027-02-01', '2027-02-01')
    """
    if not until:
        return ""
    try:
        found = until if isinstance(until, date) else date.fromisoformat(until)
    except ValueError as error:
        raise LedgerError(code="invalid_day", wanted=str(until)) from error
    return date(found.year, found.month, found.day).isoformat()


def tool_meant(new: str | ToolId, scope: NamingScope) -> ToolId | None:
    """Return the tool of a recorded name, an id or its text; None if it is neither."""
    if isinstance(new, ToolId):
        return new
    standing = scope.standing(new)
    if standing is not None and standing.id is not None:
        return standing.id
    try:
        return ToolId.parse(new)
    except InvalidToolId:
        return None

"""Follow an operator's redirects in the ledger from a tool to its former ids."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from truename.errors import InvalidToolId
from truename.identity import ToolId

if TYPE_CHECKING:
    from collections.abc import Iterator

    from truename.ledger import Ledger

__all__ = ["chain", "former_ids", "formerly"]

Former = Callable[[ToolId], tuple[ToolId, ...]]
_LONGEST_CHAIN: Final = 32
# More redirects in a row than this are a circle.
# By ledger: how many withdrawals there were, and what they say.
_known: Final[WeakKeyDictionary[Ledger, tuple[tuple[int, ...], Former]]] = WeakKeyDictionary()


def chain(id: ToolId, ledger: Ledger | None) -> Iterator[ToolId]:
    """Return a tool and those to which it was redirected, step by step; a redirected name carries nothing."""
    at: ToolId | None = id
    for _ in range(_LONGEST_CHAIN):
        if at is None:
            return
        yield at
        at = _redirected(str(at), ledger)


def formerly(id: ToolId, ledger: Ledger | None) -> tuple[ToolId, ...]:
    """Return the ids that an operator redirected to this one, in one step or in several."""
    return former_ids(ledger)(id)


def former_ids(ledger: Ledger | None) -> Former:
    """Return `formerly` for a ledger as it is now: its redirects are read when there are more of them than before."""
    if ledger is None:
        return _never
    seen = tuple([one.withdrawals for one in _scopes(ledger)])
    if not any(seen):
        return _never
    known = _known.get(ledger)
    if known is None or known[0] != seen:
        known = _known[ledger] = seen, _read_former_ids(ledger)
    return known[1]


def _never(_: ToolId) -> tuple[ToolId, ...]:
    return ()


def _read_former_ids(ledger: Ledger) -> Former:
    redirected: defaultdict[ToolId, list[ToolId]] = defaultdict(list)
    for name in {name for one in _scopes(ledger) for name in list(one.withdrawn) if "/" in name}:
        old, new = _id_of(name), _redirected(name, ledger)
        if old is not None and new is not None:
            redirected[new].append(old)
    if not redirected:
        return _never

    def former(id: ToolId) -> tuple[ToolId, ...]:
        found, reached = [id], 0
        while reached < len(found):
            found += [old for old in redirected.get(found[reached], ()) if old not in found]
            reached += 1
        return tuple(sorted(found[1:]))

    return former


def _scopes(ledger: Ledger | None) -> tuple[Ledger, ...]:
    """Return a ledger and the one of shared names: what an operator says of a tool holds wherever it is shown."""
    if ledger is None:
        return ()
    return (ledger, ledger.scoped("")) if ledger.scope else (ledger,)


def _redirected(name: str, ledger: Ledger | None) -> ToolId | None:
    standing = next((one.withdrawn[name] for one in _scopes(ledger) if name in one.withdrawn), None)
    # After a clean break the tool is the same one too, so what is denied of it stays denied.
    return None if standing is None or standing.status == "retired" else standing.id


def _id_of(name: str) -> ToolId | None:
    try:
        return ToolId.parse(name)
    except InvalidToolId:
        return None

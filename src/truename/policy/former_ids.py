"""Find the former ids of a tool by the operator's redirects in the ledger."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from truename.errors import InvalidToolId
from truename.identity import ToolId

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from truename.ledger import Ledger

__all__ = ["chain", "former_ids", "former_ids_anywhere", "formerly"]

Former = Callable[[ToolId], tuple[ToolId, ...]]
# A longer chain of redirects is taken for a cycle.
_LONGEST_CHAIN: Final = 32
# A cache by ledger: the number of withdrawals when it was filled, and the former ids.
_known: Final[WeakKeyDictionary[Ledger, tuple[tuple[int, ...], Former]]] = WeakKeyDictionary()
# The same for all scopes of a ledger: its revision, the numbers of withdrawals, and the former ids.
_known_anywhere: Final[WeakKeyDictionary[Ledger, tuple[int, tuple[int, ...], Former]]] = WeakKeyDictionary()


def chain(id: ToolId, ledger: Ledger | None) -> Iterator[ToolId]:
    """Yield a tool id and the ids to which it was redirected, in order; redirects of names do not count."""
    at: ToolId | None = id
    for _ in range(_LONGEST_CHAIN):
        if at is None:
            return
        yield at
        at = _redirected(str(at), ledger)


def formerly(id: ToolId, ledger: Ledger | None) -> tuple[ToolId, ...]:
    """Return the ids that an operator redirected to this one, directly or through others."""
    return former_ids(ledger)(id)


def former_ids(ledger: Ledger | None) -> Former:
    """Return the function `formerly` for a ledger; its redirects are read again only if there are new ones."""
    if ledger is None:
        return _never
    # Each call asks this; nearly always nothing was withdrawn.
    own, shared = ledger.withdrawals, ledger.scoped("").withdrawals if ledger.scope else 0
    if not own and not shared:
        return _never
    seen = own, shared
    known = _known.get(ledger)
    if known is None or known[0] != seen:
        known = _known[ledger] = seen, _read_former_ids(ledger)
    return known[1]


def former_ids_anywhere(ledger: Ledger) -> Former:
    """Return `formerly` by the redirects of all scopes of a ledger; the same function until there are new redirects."""
    known = _known_anywhere.get(ledger)
    if known is not None and known[0] == ledger.revision:
        return known[2]
    revision, scopes = ledger.revision, [ledger.scoped(scope) for scope in sorted({"", *ledger.scopes})]
    seen = tuple(scope.withdrawals for scope in scopes)
    found = known[2] if known is not None and known[1] == seen else _of_any([former_ids(scope) for scope in scopes])
    _known_anywhere[ledger] = revision, seen, found
    return found


def _of_any(several: Iterable[Former]) -> Former:
    """Return the union of such functions."""
    those = [former for former in several if former is not _never]

    def former(id: ToolId) -> tuple[ToolId, ...]:
        return tuple(sorted({old for each in those for old in each(id)}))

    return former if those else _never


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
    """Return a ledger and the shared one, since an operator's redirect applies wherever the tool is shown."""
    if ledger is None:
        return ()
    return (ledger, ledger.scoped("")) if ledger.scope else (ledger,)


def _redirected(name: str, ledger: Ledger | None) -> ToolId | None:
    standing = next((one.withdrawn[name] for one in _scopes(ledger) if name in one.withdrawn), None)
    # A clean break keeps the identity of the tool too, so a denial of the old id stays in force.
    return None if standing is None or standing.status == "retired" else standing.id


def _id_of(name: str) -> ToolId | None:
    try:
        return ToolId.parse(name)
    except InvalidToolId:
        return None

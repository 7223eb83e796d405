"""Servers with another identity than before: which ids lead where, what speaks against it, and what mentions them.

A configuration may say that a server is ``salesforce@2``. Where its tools have ids on record, these don't change by
themselves: names, rules and approvals go by them. `plan_identities` plans the change,
`enter_identities` makes it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from truename.catalog import identity_changes
from truename.errors import MigrationError, excerpt
from truename.ledger import Bind, Redirect
from truename.migration.plan import Remark

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from truename.catalog import IdentityChange, ServerIdentity
    from truename.identity import ToolId
    from truename.ledger import Ledger

__all__ = ["IdentityPlan", "enter_identities", "plan_identities"]


@dataclass(frozen=True, kw_only=True)
class IdentityPlan:
    """The changes of ids, in the order of the ledger, and why they can't be made."""

    changes: tuple[IdentityChange, ...]
    refusals: tuple[Remark, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether it can be made."""
        return not self.refusals


def plan_identities(ledger: Ledger, declared: Mapping[str, ServerIdentity]) -> IdentityPlan:
    """Return what a ledger has to change so that ids on record are those declared for these servers.

    An id is never passed on: one that was another tool's is refused, and so is one that two tools would get.

    >>> from truename import Ledger, ToolId
    >>> from truename.catalog import ServerIdentity
    >>> ledger = Ledger.memory()
    >>> ledger.remember(None, (), [("sf2", "get", ToolId.parse("sf2/get"))])
    >>> plan_identities(ledger, {"sf2": ServerIdentity(integration="salesforce", version=2)}).changes[0].declared
    ToolId('salesforce@2/get@1')
    """
    found = identity_changes(ledger.bindings(), declared)
    places = {id: number for number, id in enumerate(ledger.pinned(change.recorded for change in found))}
    changes = sorted(found, key=lambda change: places[change.recorded])
    return IdentityPlan(changes=tuple(changes), refusals=(*_taken(changes, ledger), *_merged(changes)))


def enter_identities(ledger: Ledger, plan: IdentityPlan, *, until: str = "") -> None:
    """Have the old ids lead to the new ones, with all their names; these are listed until a day, if one is given.

    A run that a full disk cut short is completed by the next one. Raises `MigrationError` for a plan with refusals, and
    `LedgerError`.

    >>> from truename import Ledger, ToolId
    >>> from truename.catalog import ServerIdentity
    >>> ledger, old = Ledger.memory(), ToolId.parse("sf2/get")
    >>> ledger.remember(None, (), [("sf2", "get", old)])
    >>> enter_identities(ledger, plan_identities(ledger, {"sf2": ServerIdentity(integration="salesforce")}))
    >>> ledger.bindings()["sf2", "get"], ledger.standing(str(old)).id
    (ToolId('salesforce@1/get@1'), ToolId('salesforce@1/get@1'))
    """
    if plan.refusals:
        raise MigrationError(problem=plan.refusals[0].fact, remedy=plan.refusals[0].remedy)
    redirects = [Redirect(name=str(one.recorded), id=one.declared, until=until) for one in plan.changes]
    binds = [Bind(server=one.server, name=one.name, id=one.declared) for one in plan.changes]
    with ledger.transaction():
        # The shared space last: what it has on record says that all of it is done.
        for scope in sorted({"", *ledger.scopes}, reverse=True):
            ledger.scoped(scope).record([*redirects, *([] if scope else binds)])


def _taken(changes: Sequence[IdentityChange], ledger: Ledger) -> Iterator[Remark]:
    for change in changes:
        origin = ledger.origin_of(change.declared)
        standing = ledger.standing(str(change.declared))
        if origin is not None and origin != (change.server, change.name):
            server, name = (excerpt(text) for text in origin)
            fact = f"{change.declared} is tool {name} of server {server} on record"
        elif origin is None and standing is not None:
            fact = f"{change.declared} was {standing.status} on {standing.since[:10] or 'an earlier day'}"
        else:
            continue
        yield Remark(
            kind="taken",
            names=(str(change.recorded), str(change.declared)),
            fact=f"{fact}, so {change.recorded} can't become it",
            remedy="An id is never passed on: declare another integration or version.",
        )


def _merged(changes: Sequence[IdentityChange]) -> Iterator[Remark]:
    wanted: defaultdict[ToolId, list[IdentityChange]] = defaultdict(list)
    for change in changes:
        wanted[change.declared].append(change)
    for id, several in wanted.items():
        if len(several) > 1:
            told = " and ".join(f"{change.recorded} (server {excerpt(change.server)})" for change in several)
            yield Remark(
                kind="merged",
                names=(*(str(change.recorded) for change in several), str(id)),
                fact=f"{told} would both become {id}",
                remedy="Give one of these servers another integration or version.",
            )

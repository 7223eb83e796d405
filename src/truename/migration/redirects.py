"""Record renames in the ledger: redirects of names and ids that stay listed for a time, or a clean break."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from truename.catalog import Catalog, identity_changes
from truename.errors import MigrationError, excerpt
from truename.identity import fold
from truename.ledger import Bind, Redirect
from truename.migration.plan import PlanRemark

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from truename.catalog import IdentityChange, ServerIdentity
    from truename.identity import ToolId
    from truename.ledger import Ledger

__all__ = ["IdentityPlan", "LedgerEntry", "plan_entries", "plan_identities", "record_entries", "record_identities"]


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """A pending ledger entry: ``old`` is a name or an id, ``new`` the tool it leads to, ``text`` the new name."""

    old: str
    new: ToolId
    text: str

    def record(self, ledger: Ledger, *, until: str, clean_break: bool, protocol: str) -> None:
        """Record the entry in one scope of a ledger, unless it is recorded already.

        It becomes a redirect that is listed until a day or, with ``clean_break``, a broken name.
        """
        standing = ledger.standing(self.old)
        wanted = ("broken", self.new, "") if clean_break else ("redirected", self.new, until)
        if standing is not None and (standing.status, standing.id, standing.until) == wanted:
            return
        if clean_break:
            # The new name may be another spelling of the old one, which the ledger still has for the old tool.
            ledger.break_name(self.old, self.text, id=self.new, protocol=protocol)
        else:
            ledger.redirect(self.old, self.new, until=until)


def plan_entries(renames: Mapping[str, str], ledger: Ledger) -> tuple[tuple[LedgerEntry, ...], tuple[str, ...]]:
    """Return the pending entries, and the old names that the ledger does not know."""
    found: list[LedgerEntry] = []
    unknown: list[str] = []
    for old, new in renames.items():
        # A server's own name takes precedence over a shown name, which may belong to another tool.
        own = [*_of_tools(old, new, ledger)] or [*_of_names(old, new, ledger)]
        found += own
        unknown += () if own else (old,)
    return tuple(found), tuple(unknown)


def record_entries(
    ledger: Ledger, wanted: Iterable[LedgerEntry], *, until: str = "", clean_break: bool, protocol: str = ""
) -> None:
    """Record the entries in every scope of the ledger, in one transaction.

    ``until`` is the last day on which the old names are listed. Recorded entries are skipped, so a second run completes
    one that a full disk interrupted. Raises `LedgerError` and `InvalidName`.
    """
    with ledger.transaction():
        for scope in ledger.scopes or (ledger.scope,):
            for entry in wanted:
                entry.record(ledger.scoped(scope), until=until, clean_break=clean_break, protocol=protocol)


def _of_tools(old: str, new: str, ledger: Ledger) -> Iterator[LedgerEntry]:
    """Yield entries for the tools that have this name on a server, and for the plain name if only one tool has it."""
    bindings = ledger.bindings()
    own = {server: id for (server, name), id in bindings.items() if name == old}
    for server, id in own.items():
        renamed = next(iter(Catalog.from_mcp([(server, [{"name": new}])], bound=bindings, owners=ledger.origins())))
        yield LedgerEntry(str(id), renamed, new)
        if {each for (_, name), each in bindings.items() if fold(name) == fold(old)} <= {id, renamed}:
            standing = ledger.standing_folded(fold(old))
            # A name that an earlier rename redirected belongs to this tool too.
            if standing is None or standing.id in {id, renamed, *ledger.successors(id)}:
                yield LedgerEntry(old, renamed, new)


def _of_names(old: str, new: str, ledger: Ledger) -> Iterator[LedgerEntry]:
    standing = ledger.standing(old)
    if standing is None or standing.status != "held" or standing.id is None:
        return
    target = ledger.standing(new)
    id = standing.id if target is None or target.id is None else target.id
    yield LedgerEntry(old, id, new)


@dataclass(frozen=True, kw_only=True)
class IdentityPlan:
    """The changes of ids, in the order of the ledger, and the reasons why they are refused."""

    changes: tuple[IdentityChange, ...]
    refusals: tuple[PlanRemark, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the changes can be made."""
        return not self.refusals


def plan_identities(ledger: Ledger, declared: Mapping[str, ServerIdentity]) -> IdentityPlan:
    """Plan the changes with which the ids in a ledger become those declared for these servers.

    An id is never reused: an id that another tool had is refused, and so is one that two tools would get.

    >>> from truename import Ledger, ToolId
    >>> from truename.catalog import ServerIdentity
    >>> ledger = Ledger.memory()
    >>> ledger.remember(None, (), [("sf2", "get", ToolId.parse("sf2/get"))])
    True
    >>> plan_identities(ledger, {"sf2": ServerIdentity(integration="salesforce", version=2)}).changes[0].declared
    ToolId('salesforce@2/get@1')
    """
    found = identity_changes(ledger.bindings(), declared)
    places = {id: number for number, id in enumerate(ledger.pinned(change.recorded for change in found))}
    changes = sorted(found, key=lambda change: places[change.recorded])
    return IdentityPlan(changes=tuple(changes), refusals=(*_taken(changes, ledger), *_merged(changes)))


def record_identities(ledger: Ledger, plan: IdentityPlan, *, until: str = "") -> None:
    """Redirect the old ids, with all their names, to the new ones; the old ones are listed until a day, if given.

    A second run completes one that a full disk interrupted. Raises `MigrationError` for a plan with refusals, and
    `LedgerError`.

    >>> from truename import Ledger, ToolId
    >>> from truename.catalog import ServerIdentity
    >>> ledger, old = Ledger.memory(), ToolId.parse("sf2/get")
    >>> ledger.remember(None, (), [("sf2", "get", old)])
    True
    >>> record_identities(ledger, plan_identities(ledger, {"sf2": ServerIdentity(integration="salesforce")}))
    >>> ledger.bindings()["sf2", "get"], ledger.standing(str(old)).id
    (ToolId('salesforce@1/get@1'), ToolId('salesforce@1/get@1'))
    """
    if plan.refusals:
        raise MigrationError(problem=plan.refusals[0].fact, remedy=plan.refusals[0].remedy)
    redirects = [Redirect(name=str(one.recorded), id=one.declared, until=until) for one in plan.changes]
    binds = [Bind(server=one.server, name=one.name, id=one.declared) for one in plan.changes]
    with ledger.transaction():
        # The shared scope comes last: once it is recorded, all of it is done.
        for scope in sorted({"", *ledger.scopes}, reverse=True):
            ledger.scoped(scope).record([*redirects, *([] if scope else binds)])


def _taken(changes: Sequence[IdentityChange], ledger: Ledger) -> Iterator[PlanRemark]:
    for change in changes:
        origin = ledger.origin_of(change.declared)
        standing = ledger.standing(str(change.declared))
        if origin is not None and origin != (change.server, change.name):
            server, name = (excerpt(text) for text in origin)
            fact = f"{change.declared} is recorded as tool {name} of server {server}"
        elif origin is None and standing is not None:
            fact = f"{change.declared} was {standing.status} on {standing.since[:10] or 'an earlier day'}"
        else:
            continue
        yield PlanRemark(
            kind="taken",
            names=(str(change.recorded), str(change.declared)),
            fact=f"{fact}, so {change.recorded} cannot become it",
            remedy="An id is never reused: declare another integration or version.",
        )


def _merged(changes: Sequence[IdentityChange]) -> Iterator[PlanRemark]:
    wanted: defaultdict[ToolId, list[IdentityChange]] = defaultdict(list)
    for change in changes:
        wanted[change.declared].append(change)
    for id, several in wanted.items():
        if len(several) > 1:
            told = " and ".join(f"{change.recorded} (server {excerpt(change.server)})" for change in several)
            yield PlanRemark(
                kind="merged",
                names=(*(str(change.recorded) for change in several), str(id)),
                fact=f"{told} would both become {id}",
                remedy="Give one of these servers another integration or version.",
            )

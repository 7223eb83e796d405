"""Plan a rename: the changes, the reasons against it, and the points that a person has to check."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from truename import dialects
from truename.errors import MigrationError, excerpt
from truename.identity import fold
from truename.migration.search_patterns import Lexicon, is_plain_word, new_name_problem, old_name_problem
from truename.naming.words import words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from truename.ledger import Ledger

__all__ = ["PlanRemark", "RenamePlan", "client_spellings", "is_control_plane", "plan"]

_UPGRADES: Final = frozenset({"update", "updater", "upgrade", "upgrader", "selfupdate", "rollback", "reinstall"})
_ITSELF: Final = frozenset({"self", "agent", "agents", "daemon", "worker", "runner", "runtime", "firmware", "fleet"})


def is_control_plane(name: str) -> bool:
    """Return whether a name says that the tool upgrades its own program.

    >>> [is_control_plane(name) for name in ("agent.update", "selfUpdate", "winget.update", "update_lead")]
    [True, True, False, False]
    """
    found = frozenset(words(name))
    return "selfupdate" in found or bool(found & _UPGRADES and found & _ITSELF)


def client_spellings(renames: Mapping[str, str], servers: Iterable[str]) -> dict[str, str]:
    """Return the names that clients show for the old names of these servers, with those for the new names.

    A spelling is omitted if its meaning is uncertain: two names share it, it is itself a name of the plan, or it does
    not contain the server's key. So is one that cannot be written as a name in a file (``mcp__#__list``).

    >>> client_spellings({"fs_ls": "fs_list"}, ["kenny"])["mcp__kenny__fs_ls"]
    'mcp__kenny__fs_list'
    """
    found: dict[str, set[str]] = {}
    for dialect, server, (old, new) in product(dialects.table(), servers, renames.items()):
        before, after = dialect.shown(server, old), dialect.shown(server, new)
        if before is not None and after is not None and fold(before) != fold(old):
            found.setdefault(before, set()).add(after)
    own = {*renames, *renames.values()}
    return {
        old: new
        for old, options in found.items()
        if len(options) == 1
        and old not in own
        and (new := next(iter(options))) != old
        and not old_name_problem(old)
        and not new_name_problem(new)
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRemark:
    """A remark about a plan: a ``kind`` for programs, the names concerned, a fact and a remedy."""

    kind: str
    names: tuple[str, ...]
    fact: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.fact}. {self.remedy}"


@dataclass(frozen=True, kw_only=True)
class RenamePlan:
    """The renames, old to new; the refusals; the warnings; the tools that perform upgrades.

    ``spellings`` maps the names that clients show for the old names to those for the new ones.
    """

    renames: Mapping[str, str]
    refusals: tuple[PlanRemark, ...] = ()
    warnings: tuple[PlanRemark, ...] = ()
    control_plane: tuple[str, ...] = ()
    spellings: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def ok(self) -> bool:
        """Whether the plan can be applied."""
        return not self.refusals

    def lexicon(self) -> Lexicon:
        """Compile the names to search in files. Raises `MigrationError` for a plan with refusals."""
        if self.refusals:
            first, more = self.refusals[0], len(self.refusals) - 1
            fact = f"{first.fact} (and {more} more)" if more else first.fact
            raise MigrationError(problem=fact, remedy=first.remedy)
        return Lexicon.of({**self.spellings, **self.renames})


def plan(
    renames: Mapping[str, str],
    *,
    known: Iterable[str] = (),
    servers: Iterable[str] = (),
    clients: Iterable[str] = (),
    ledger: Ledger | None = None,
    control_plane: Iterable[str] = (),
) -> RenamePlan:
    """Plan these renames. Nothing is changed, and a bad plan raises nothing: it has refusals.

    ``known`` are all existing names, ``servers`` the keys under which clients know the server, ``clients`` the dialects
    that must accept every new name. A name that the ledger withdrew cannot come back. ``control_plane`` are tools that
    perform the upgrade, besides those whose names say so. Raises `UnknownDialect`.

    >>> made = plan({"net.dns_flush": "net_dns_flush", "net_dns.flush": "net_dns_flush"})
    >>> [refusal.kind for refusal in made.refusals]
    ['merged']
    >>> plan({"agent.update": "agent_update"}).control_plane
    ('agent.update',)
    """
    case = _PlannedRenames(dict(renames), frozenset(known), tuple(clients), ledger)
    flagged = frozenset(control_plane)
    upgrading = tuple(name for name in renames if name in flagged or is_control_plane(name))
    refusals = tuple(remark for rule in _REFUSALS for remark in rule(case))
    lockstep = (
        PlanRemark(
            kind="control_plane",
            names=(name,),
            fact=f"{excerpt(name)} performs the upgrade: older peers do not know its new name",
            remedy="Upgrade all peers first by the old name, or keep the old name for this tool.",
        )
        for name in upgrading
    )
    writable = not any(old_name_problem(old) or new_name_problem(new) for old, new in renames.items())
    shown = client_spellings(case.renames, servers) if writable else {}
    return RenamePlan(
        renames=MappingProxyType(case.renames),
        refusals=refusals,
        warnings=(*(remark for rule in _WARNINGS for remark in rule(case)), *lockstep),
        control_plane=upgrading,
        spellings=MappingProxyType({old: new for old, new in shown.items() if old not in case.known}),
    )


@dataclass(frozen=True)
class _PlannedRenames:
    renames: dict[str, str]
    known: frozenset[str]
    clients: tuple[str, ...]
    ledger: Ledger | None

    @cached_property
    def olds(self) -> dict[str, list[str]]:
        return _by_fold(self.renames)

    @cached_property
    def others(self) -> dict[str, list[str]]:
        """The names that do not change."""
        return _by_fold(self.known - self.renames.keys())


def _by_fold(names: Iterable[str]) -> dict[str, list[str]]:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for name in sorted(names):
        found[fold(name)].append(name)
    return dict(found)


def _quoted(names: Iterable[str]) -> str:
    return " and ".join(excerpt(name) for name in names)


def _illegal(case: _PlannedRenames) -> Iterator[PlanRemark]:
    for old, new in case.renames.items():
        for name, fault in ((old, old_name_problem(old)), (new, new_name_problem(new))):
            if fault:
                fact = f"{excerpt(name)} cannot be written as a name in files: {fault}"
                yield PlanRemark(kind="illegal", names=(old, new), fact=fact, remedy="Choose another name.")
        for client in case.clients:
            reasons = dialects.get(client).check(new)
            if reasons:
                why = "; ".join(reason.text for reason in reasons)
                fact = f"{excerpt(new)} is not legal for {client}: {why}"
                yield PlanRemark(
                    kind="illegal", names=(old, new), fact=fact, remedy="Choose a name that this client accepts."
                )


def _unchanged(case: _PlannedRenames) -> Iterator[PlanRemark]:
    for old, new in case.renames.items():
        if old == new:
            fact = f"{excerpt(old)} would not change"
            yield PlanRemark(kind="unchanged", names=(old, new), fact=fact, remedy="Remove it from the plan.")


def _merged(case: _PlannedRenames) -> Iterator[PlanRemark]:
    targets: defaultdict[str, list[str]] = defaultdict(list)
    for old, new in case.renames.items():
        targets[fold(new)].append(old)
    for olds in targets.values():
        if len(olds) > 1:
            news = sorted({case.renames[old] for old in olds})
            alike = excerpt(news[0]) if len(news) == 1 else f"{_quoted(news)}, which clients treat as one name"
            fact = f"{_quoted(olds)} would become {alike}"
            yield PlanRemark(kind="merged", names=tuple(olds), fact=fact, remedy="Give each its own name.")


def _exists(case: _PlannedRenames) -> Iterator[PlanRemark]:
    for old, new in case.renames.items():
        # An old name that no longer exists was left by a partial rename.
        for other in case.others.get(fold(new), ()) if old in case.known else ():
            alike = (
                "already in use" if other == new else f"the same as {excerpt(other)} for some clients, which is in use"
            )
            fact = f"{excerpt(new)} is {alike}"
            yield PlanRemark(kind="exists", names=(old, new), fact=fact, remedy="Choose another name.")


def _chained(case: _PlannedRenames) -> Iterator[PlanRemark]:
    for old, new in case.renames.items():
        for later in case.olds.get(fold(new), ()):
            # `_merged` reports names with the same fold, unless one takes exactly the other's name.
            if later == old or (fold(later) == fold(old) and later != new):
                continue
            if fold(case.renames[later]) == fold(old):
                if old < later:
                    fact = f"{excerpt(old)} and {excerpt(later)} would swap their names"
                    remedy = "A name once shown never means another tool: choose new names for both."
                    yield PlanRemark(kind="swap", names=(old, later), fact=fact, remedy=remedy)
            else:
                fact = (
                    f"{excerpt(old)} would get the name {excerpt(later)}, which becomes {excerpt(case.renames[later])}"
                )
                remedy = "A caller of the one would reach the other: choose a name that was never used."
                yield PlanRemark(kind="chain", names=(old, later), fact=fact, remedy=remedy)


def _withdrawn(case: _PlannedRenames) -> Iterator[PlanRemark]:
    if case.ledger is None:
        return
    for old, new in case.renames.items():
        standing = case.ledger.standing(new)
        if standing is None and fold(old) != fold(new):
            standing = case.ledger.standing_folded(fold(new))
        if standing is not None and standing.status != "held":
            fact = f"{excerpt(new)} was withdrawn on {standing.since[:10] or 'an earlier day'} ({standing.status})"
            yield PlanRemark(
                kind="withdrawn",
                names=(old, new),
                fact=fact,
                remedy="A withdrawn name never comes back; choose another.",
            )


def _held(case: _PlannedRenames) -> Iterator[PlanRemark]:
    if case.ledger is None:
        return
    for old, new in case.renames.items():
        holder, before = case.ledger.holder(fold(new)), case.ledger.holder(fold(old))
        is_gone = case.known and old not in case.known
        if is_gone or case.ledger.is_withdrawn(fold(new)) or case.ledger.is_withdrawn(fold(old)):
            # A missing tool left its name to the same tool; a withdrawn name was already redirected to it.
            continue
        if holder is not None and before is not None and holder != before:
            fact = f"{excerpt(new)} is {holder} in the ledger, and {excerpt(old)} is {before}"
            remedy = "If they are the same tool before and after the change, pass the current tools: --among SOURCE."
            yield PlanRemark(kind="held", names=(old, new), fact=fact, remedy=remedy)


def _unknown(case: _PlannedRenames) -> Iterator[PlanRemark]:
    for old in case.renames:
        if case.known and old not in case.known:
            fact = f"No tool has the name {excerpt(old)}"
            yield PlanRemark(kind="unknown", names=(old,), fact=fact, remedy="Check the spelling.")


def _words(case: _PlannedRenames) -> Iterator[PlanRemark]:
    for old in case.renames:
        if is_plain_word(old):
            fact = f"{excerpt(old)} is a common word"
            remedy = "In quotes it may mean something else: review the changes before --apply."
            yield PlanRemark(kind="word", names=(old,), fact=fact, remedy=remedy)


_REFUSALS: Final[tuple[Callable[[_PlannedRenames], Iterator[PlanRemark]], ...]] = (
    _unchanged,
    _illegal,
    _merged,
    _exists,
    _chained,
    _withdrawn,
    _held,
)
_WARNINGS: Final[tuple[Callable[[_PlannedRenames], Iterator[PlanRemark]], ...]] = (_unknown, _words)

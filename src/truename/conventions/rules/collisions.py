"""Find names that collide, or that clients could confuse."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from truename import dialects
from truename.conventions.findings import Severity
from truename.conventions.rules.check import build_finding, check, listed, owner_of
from truename.errors import excerpt
from truename.identity import fold

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from truename.conventions.declarations import Declaration
    from truename.conventions.findings import Finding, Rule
    from truename.conventions.rules.check import LintContext
    from truename.dialects import Dialect

__all__ = ["CHECKS"]

Key = tuple[str, str]


@check("TN110", "duplicate_name", Severity.ERROR)
def duplicate_name(rule: Rule, context: LintContext) -> Iterator[Finding]:
    """Several tools have the same name.

    Why: Calls and recordings are looked up by name. Some clients refuse the whole request because of a duplicate; the
    others run one of the two, usually the last, without saying which.

    Example: `myapp_ios_scroll` in two files

    Instead: two names that say how the tools differ, or one tool
    """
    for group in _groups(context, lambda one: one.name):
        first, own = _anchored(group, context)
        for one in own:
            fact = f"{excerpt(one.name)} is declared by {owner_of(first)} and by {owner_of(one)}."
            yield build_finding(rule, one, fact, "Rename one of them, or remove one.", first)


@check("TN111", "folded_collision", Severity.ERROR)
def folded_collision(rule: Rule, context: LintContext) -> Iterator[Finding]:
    """Several names differ only in capitals or in separators.

    Why: Some clients lower-case names, treat `-` and `_` alike, or collapse double ones, so the two become one tool
    there; and a person who reads an approval or a log confuses them.

    Example: `scrollUp` and `scrollup`; `get-leads` and `get_leads`

    Instead: names that differ in a word
    """
    for group in _groups(context, lambda one: fold(one.name)):
        by_name = {one.name: one for one in reversed(group)}
        first, own = _anchored([one for one in group if by_name[one.name] is one], context)
        for one in own:
            fact = f"{excerpt(one.name)} differs only in spelling from {excerpt(first.name)} of {owner_of(first)}."
            yield build_finding(rule, one, fact, "Choose names that differ in a word.", first)


@check("TN112", "merged_by_client", Severity.ERROR)
def merged_by_client(rule: Rule, context: LintContext) -> Iterator[Finding]:
    """A client of the convention transforms different names to the same name.

    Why: Clients replace characters and shorten names. Which of the two tools a call then runs depends on their order,
    and the other one cannot be called at all.

    Example: `get_customer_billing_address_history_for_all_regions_of_europe_a` and `..._b`, cut at 63 characters

    Instead: names that differ near their beginning, and are short enough
    """
    for scope in context.scopes:
        merged: defaultdict[tuple[int, ...], list[str]] = defaultdict(list)
        by_key: defaultdict[Key, list[int]] = defaultdict(list)
        for number, one in enumerate(scope):
            by_key[one.server, one.name].append(number)
        for clients in _alike(context.convention.clients):
            for keys in _merged(clients[0], by_key):
                merged[tuple(sorted(by_key[key][0] for key in keys))] += [one.name for one in clients]
        for numbers, merging in merged.items():
            group = [scope[number] for number in numbers]
            first, own = _anchored(group, context)
            for one in own[:1]:
                names = listed([excerpt(other.name, 48) for other in group])
                yield build_finding(
                    rule, one, f"{names} become one name in {listed(merging)}.", "Rename one of them.", first
                )


CHECKS: Final = (duplicate_name, folded_collision, merged_by_client)


def _groups(context: LintContext, key: Callable[[Declaration], str]) -> Iterator[Sequence[Declaration]]:
    for scope in context.scopes:
        found: defaultdict[str, list[Declaration]] = defaultdict(list)
        for one in scope:
            found[key(one)].append(one)
        yield from (group for group in found.values() if len(group) > 1)


def _anchored(group: Sequence[Declaration], context: LintContext) -> tuple[Declaration, Sequence[Declaration]]:
    """Return the declaration to name as the existing one, if possible a peer, and the others that are not peers."""
    peers = [one for one in group if id(one) not in context.own]
    first = peers[0] if peers else group[0]
    return first, [one for one in group if one is not first and id(one) in context.own]


def _alike(names: Iterable[str]) -> Iterable[Sequence[Dialect]]:
    """Group clients with the same rules for names, so that each group is simulated once."""
    found: defaultdict[object, list[Dialect]] = defaultdict(list)
    for one in map(dialects.get, names):
        legal = (one.chars, one.first, one.last, one.words, one.max_length, one.reserved, one.unknown)
        found[one.mangling, legal].append(one)
    return found.values()


def _merged(client: Dialect, keys: Iterable[Key]) -> Iterator[Sequence[Key]]:
    """Yield groups of names that a client transforms to the same name and that have different folds."""
    servers: defaultdict[str, list[str]] = defaultdict(list)
    for server, name in keys:
        servers[server].append(name)
    seen = client.simulate_all(servers.items())
    for group in seen.merged.values():
        by_fold = {fold(name): (server, name) for server, name in reversed(group)}
        if len(by_fold) > 1:
            yield tuple(by_fold.values())

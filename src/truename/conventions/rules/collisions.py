"""Find names that collide, or that a client could confuse."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from truename import dialects
from truename.conventions.findings import Severity
from truename.conventions.rules.check import check, listed, of, owner_of
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
def duplicate_name(rule: Rule, material: LintContext) -> Iterator[Finding]:
    """Two tools are declared under one name.

    Why: The name is what a call and a recording are looked up by. Some clients refuse the whole request
    for it; the others run one of the two, most often the last, and nobody is told which.

    Example: `myapp_ios_scroll` in two files

    Instead: two names that say how the tools differ, or one tool
    """
    for group in _groups(material, lambda one: one.name):
        first, own = _anchored(group, material)
        for one in own:
            fact = f"{excerpt(one.name)} is declared by {owner_of(first)} and by {owner_of(one)}."
            yield of(rule, one, fact, "Rename one of them, or leave one out.", first)


@check("TN111", "folded_collision", Severity.ERROR)
def folded_collision(rule: Rule, material: LintContext) -> Iterator[Finding]:
    """Two names differ only in capitals or in separators.

    Why: Clients write names in lower case, take `-` and `_` for one, or join double ones, so the two become one tool
    there; and a person who reads an approval or a log can't tell them apart.

    Example: `scrollUp` and `scrollup`; `get-leads` and `get_leads`

    Instead: names that differ in a word
    """
    for group in _groups(material, lambda one: fold(one.name)):
        by_name = {one.name: one for one in reversed(group)}
        first, own = _anchored([one for one in group if by_name[one.name] is one], material)
        for one in own:
            fact = (
                f"{excerpt(one.name)} is the same as {excerpt(first.name)} of {owner_of(first)} but for its spelling."
            )
            yield of(rule, one, fact, "Choose names that differ in a word.", first)


@check("TN112", "merged_by_client", Severity.ERROR)
def merged_by_client(rule: Rule, material: LintContext) -> Iterator[Finding]:
    """Two different names become one after what a client of the convention does to them.

    Why: Clients replace characters, cut and shorten. Which of the two a call then runs depends on their order, and
    the other one can't be called at all.

    Example: `get_customer_billing_address_history_for_all_regions_of_europe_a` and `..._b`, cut at 63 characters

    Instead: names that differ near their beginning, and are short enough
    """
    for scope in material.scopes:
        merged: defaultdict[tuple[int, ...], list[str]] = defaultdict(list)
        by_key: defaultdict[Key, list[int]] = defaultdict(list)
        for number, one in enumerate(scope):
            by_key[one.server, one.name].append(number)
        for clients in _alike(material.convention.clients):
            for keys in _merged(clients[0], by_key):
                merged[tuple(sorted(by_key[key][0] for key in keys))] += [one.name for one in clients]
        for numbers, merging in merged.items():
            group = [scope[number] for number in numbers]
            first, own = _anchored(group, material)
            for one in own[:1]:
                names = listed([excerpt(other.name, 48) for other in group])
                yield of(rule, one, f"{names} become one name in {listed(merging)}.", "Rename one of them.", first)


CHECKS: Final = (duplicate_name, folded_collision, merged_by_client)


def _groups(material: LintContext, key: Callable[[Declaration], str]) -> Iterator[Sequence[Declaration]]:
    for scope in material.scopes:
        found: defaultdict[str, list[Declaration]] = defaultdict(list)
        for one in scope:
            found[key(one)].append(one)
        yield from (group for group in found.values() if len(group) > 1)


def _anchored(group: Sequence[Declaration], material: LintContext) -> tuple[Declaration, Sequence[Declaration]]:
    """Return the one that the others are told to clash with, a peer if there is one, and those of the others."""
    peers = [one for one in group if id(one) not in material.own]
    first = peers[0] if peers else group[0]
    return first, [one for one in group if one is not first and id(one) in material.own]


def _alike(names: Iterable[str]) -> Iterable[Sequence[Dialect]]:
    """Part clients by what they do to names: many do the same, and are asked once."""
    found: defaultdict[object, list[Dialect]] = defaultdict(list)
    for one in map(dialects.get, names):
        legal = (one.chars, one.first, one.last, one.words, one.max_length, one.reserved, one.unknown)
        found[one.mangling, legal].append(one)
    return found.values()


def _merged(client: Dialect, keys: Iterable[Key]) -> Iterator[Sequence[Key]]:
    """Return names that a client makes one, and that are not one to everybody."""
    servers: defaultdict[str, list[str]] = defaultdict(list)
    for server, name in keys:
        servers[server].append(name)
    seen = client.simulate_all(servers.items())
    for group in seen.merged.values():
        by_fold = {fold(name): (server, name) for server, name in reversed(group)}
        if len(by_fold) > 1:
            yield tuple(by_fold.values())

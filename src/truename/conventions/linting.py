"""Run every rule over everything that is declared together, under one convention."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from truename.catalog.globs import Globs
from truename.conventions.convention import Convention
from truename.conventions.rules import CHECKS, LintContext
from truename.errors import excerpt
from truename.identity import fold

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Set

    from truename.conventions.convention import Suppression
    from truename.conventions.declarations import Declaration
    from truename.conventions.findings import Finding, Rule
    from truename.conventions.rules import Check

__all__ = ["Linted", "Suppressed", "lint"]


def one_to_one(findings: Iterable[Finding], material: LintContext) -> Iterator[Finding]:
    """Yield the findings without the proposals that two tools would share, or that another tool has as its name.

    Names that clients take for one count as one. The scope is a server, or everything, as names have to be unique.
    """
    listed = list(findings)
    proposals = _Proposals(listed, material)
    for finding in listed:
        other = proposals.rival(finding) if finding.suggested else ""
        if not other:
            yield finding
            continue
        fact = f"{excerpt(finding.suggested)} would fit, and {other}"
        yield replace(finding, remedy=f"{fact}: choose names that differ in a word.", suggested="")


class _Proposals:
    """Who has a name, and for whom it is proposed; by scope and folded name."""

    def __init__(self, findings: Iterable[Finding], material: LintContext) -> None:
        self._is_one_scope = material.convention.unique == "everywhere"
        self._holders: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        self._wanted: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        self._declared: Counter[tuple[str, str]] = Counter()
        for one in material.everything:
            self._holders[self._key(one.server, fold(one.name))].add(one.name)
            self._declared[self._key(one.server, one.name)] += 1
        for finding in findings:
            if finding.suggested:
                self._wanted[self._key(finding.server, fold(finding.suggested))].add(finding.tools[0])

    def _key(self, server: str, name: str) -> tuple[str, str]:
        return "" if self._is_one_scope else server, name

    def rival(self, finding: Finding) -> str:
        """Return in words who else has the proposed name or would get it, "" if nobody."""
        name, key = finding.tools[0], self._key(finding.server, fold(finding.suggested))
        if self._declared[self._key(finding.server, name)] > 1:
            return "several tools have the name that it would replace"
        if others := self._wanted[key] - {name}:
            return f"{excerpt(min(others))} would get it too"
        others = self._holders[key] - {name}
        return f"{excerpt(min(others))} is there already" if others else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppressed:
    """A finding that is taken back: by an entry of the convention, or (None) by a comment at the place."""

    finding: Finding
    reason: str
    by: Suppression | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Linted:
    """What linting found: in order of file, line and code, whatever the order of what was given.

    ``unused`` are the convention's suppressions that took nothing back, ``unused_ignored`` declarations with the rule
    words of comments that took nothing back. A suppression without a reason takes nothing back, and is in neither;
    nor is one of a rule that is not among these.
    """

    findings: tuple[Finding, ...]
    suppressed: tuple[Suppressed, ...] = ()
    unused: tuple[Suppression, ...] = ()
    unused_ignored: tuple[tuple[Declaration, str], ...] = ()


def lint(
    declarations: Iterable[Declaration], convention: Convention | None = None, peers: Iterable[Declaration] = ()
) -> Linted:
    """Find all that is wrong with the names and texts of these tools, declared together.

    ``peers`` are tools beside which they will stand; nothing is found about those. Without a convention only what
    every server has to keep to is asked for. Nothing that a declaration holds makes this raise.

    >>> from truename.conventions import Declaration
    >>> found = lint([Declaration(name="get weather"), Declaration(name="get_weather")])
    >>> [finding.rule.name for finding in found.findings]
    ['illegal_name', 'folded_collision']
    """
    convention = Convention() if convention is None else convention
    given = tuple(sorted(declarations, key=_place))
    material = LintContext(given, convention, tuple(sorted(peers, key=_place)))
    graded = one_to_one((one for check in CHECKS.values() for one in _graded(check, material)), material)
    return _sifted(sorted(graded, key=_order), given, convention)


def _place(declaration: Declaration) -> tuple[object, ...]:
    at, said = declaration.location, declaration.metadata
    where = (at.file, at.line, at.column, at.key) if at else ("", 0, 0, "")
    said_so = (said.owner, said.app, tuple(said.platforms))
    return (*where, declaration.server, declaration.name, *said_so, declaration.description)


def _order(finding: Finding) -> tuple[object, ...]:
    at = finding.location
    where = (at.file, at.line) if at else ("", 0)
    return (
        *where,
        finding.rule.code,
        at.column if at else 0,
        finding.server,
        finding.tools,
        finding.client,
        finding.fact,
    )


def _graded(check: Check, material: LintContext) -> Iterator[Finding]:
    rule, convention = check.rule, material.convention
    severity = convention.severity(rule)
    if severity is None:
        return
    is_set = bool(convention.severities.keys() & {rule.code, rule.name})
    for finding in check.find(material):
        # A rule may judge one finding milder or harder than the others, unless the convention says how bad all are.
        yield replace(finding, rule=replace(finding.rule, severity=severity)) if is_set else finding


def _sifted(findings: Iterable[Finding], declarations: Iterable[Declaration], convention: Convention) -> Linted:
    sieve = _Sieve(declarations, convention)
    kept: list[Finding] = []
    back: list[Suppressed] = []
    for finding in findings:
        taken = sieve.takes_back(finding)
        if taken is None:
            kept.append(finding)
        else:
            back.append(taken)
    known = {word for check in CHECKS.values() for word in _words(check.rule)}
    return Linted(
        findings=tuple(kept),
        suppressed=tuple(back),
        unused=sieve.unused(known),
        unused_ignored=sieve.unused_ignored(known),
    )


class _Sieve:
    """What takes findings back, and which of it did."""

    def __init__(self, declarations: Iterable[Declaration], convention: Convention) -> None:
        self._by_place = {(one.location, one.server, one.name): one for one in declarations if one.ignored}
        self._entries: defaultdict[str, list[tuple[int, Suppression, Globs]]] = defaultdict(list)
        for number, entry in enumerate(convention.suppressions):
            if entry.reason.strip():
                self._entries[entry.rule].append((number, entry, Globs(entry.tools)))
        self._used: set[int] = set()
        self._heeded: set[tuple[int, str]] = set()

    def takes_back(self, finding: Finding) -> Suppressed | None:
        """Return the finding with what takes it back; a comment goes before an entry, and both count as used."""
        name = finding.tools[0] if finding.tools else ""
        words = _words(finding.rule)
        entries = [
            (number, entry)
            for word in words
            for number, entry, globs in self._entries.get(word, ())
            if globs.first(name)
        ]
        self._used.update(number for number, _ in entries)
        one = self._by_place.get((finding.location, finding.server, name))
        for word in words:
            if one is not None and one.ignored.get(word, "").strip():
                self._heeded.add((id(one), word))
                return Suppressed(finding=finding, reason=one.ignored[word])
        if not entries:
            return None
        return Suppressed(finding=finding, reason=entries[0][1].reason, by=entries[0][1])

    def unused(self, known: Set[str]) -> tuple[Suppression, ...]:
        """Return the entries that took nothing back, of the rules that exist."""
        entries = {number: entry for group in self._entries.values() for number, entry, _ in group}
        return tuple(one for number, one in sorted(entries.items()) if number not in self._used and one.rule in known)

    def unused_ignored(self, known: Set[str]) -> tuple[tuple[Declaration, str], ...]:
        """Return the comments that took nothing back, of the rules that exist."""
        return tuple(
            (one, word)
            for one in self._by_place.values()
            for word, reason in one.ignored.items()
            if (id(one), word) not in self._heeded and reason.strip() and word in known
        )


def _words(rule: Rule) -> tuple[str, str]:
    return rule.code, rule.name

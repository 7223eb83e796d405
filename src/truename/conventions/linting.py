"""Run all rules over a set of declarations under one convention."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from truename.catalog.globs import Globs
from truename.conventions.convention import Convention
from truename.errors import excerpt
from truename.identity import fold

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Set

    from truename.conventions.convention import Suppression
    from truename.conventions.declarations import Declaration
    from truename.conventions.findings import Finding, Rule
    from truename.conventions.rules import Check, LintContext

__all__ = ["Linted", "Suppressed", "lint"]


def one_to_one(findings: Iterable[Finding], context: LintContext) -> Iterator[Finding]:
    """Remove suggested names from findings if two tools would get the same name, or another tool already has it.

    Names with one fold count as the same. The scope is each server or everything, depending on the convention.
    """
    listed = list(findings)
    proposals = _Proposals(listed, context)
    for finding in listed:
        other = proposals.rival(finding) if finding.suggested else ""
        if not other:
            yield finding
            continue
        fact = f"{excerpt(finding.suggested)} would be correct, but {other}"
        yield replace(finding, remedy=f"{fact}: choose names that differ in a word.", suggested="")


class _Proposals:
    """An index of the holders of names, and of the tools for which a name is suggested, by scope and fold."""

    def __init__(self, findings: Iterable[Finding], context: LintContext) -> None:
        self._is_one_scope = context.convention.unique == "everywhere"
        self._holders: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        self._wanted: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        self._declared: Counter[tuple[str, str]] = Counter()
        for one in context.everything:
            self._holders[self._key(one.server, fold(one.name))].add(one.name)
            self._declared[self._key(one.server, one.name)] += 1
        for finding in findings:
            if finding.suggested:
                self._wanted[self._key(finding.server, fold(finding.suggested))].add(finding.tools[0])

    def _key(self, server: str, name: str) -> tuple[str, str]:
        return "" if self._is_one_scope else server, name

    def rival(self, finding: Finding) -> str:
        """Return a clause on another tool that has the suggested name or would get it; "" if there is none."""
        name, key = finding.tools[0], self._key(finding.server, fold(finding.suggested))
        if self._declared[self._key(finding.server, name)] > 1:
            return "several tools have the name to be replaced"
        if others := self._wanted[key] - {name}:
            return f"{excerpt(min(others))} would get the same name"
        others = self._holders[key] - {name}
        return f"{excerpt(min(others))} already exists" if others else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppressed:
    """A suppressed finding: by an entry of the convention, or by a comment in the source (``by`` is None)."""

    finding: Finding
    reason: str
    by: Suppression | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Linted:
    """The result of linting, in order of file, line and code.

    ``unused`` are entries of the convention that suppressed nothing; ``unused_ignored`` are declarations, each with the
    rule of a comment that suppressed nothing. Suppressions without a reason suppress nothing and are in neither list,
    and so are suppressions of rules that are not part of the conventions.
    """

    findings: tuple[Finding, ...]
    suppressed: tuple[Suppressed, ...] = ()
    unused: tuple[Suppression, ...] = ()
    unused_ignored: tuple[tuple[Declaration, str], ...] = ()


def lint(
    declarations: Iterable[Declaration], convention: Convention | None = None, peers: Iterable[Declaration] = ()
) -> Linted:
    """Check the names and texts of tools that are declared together, and return the findings.

    ``peers`` are other tools that clients will see together with these; there are no findings about them. Without a
    convention, only the rules for every server are checked. No content of a declaration makes this raise.

    >>> from truename.conventions import Declaration
    >>> found = lint([Declaration(name="get weather"), Declaration(name="get_weather")])
    >>> [finding.rule.name for finding in found.findings]
    ['illegal_name', 'folded_collision']
    """
    from truename.conventions.rules import CHECKS, LintContext  # noqa: PLC0415 - 45 ms, and a gateway may lint nothing

    convention = Convention() if convention is None else convention
    given = tuple(sorted(declarations, key=_place))
    context = LintContext(given, convention, tuple(sorted(peers, key=_place)))
    graded = one_to_one((one for check in CHECKS.values() for one in _graded(check, context)), context)
    known = {word for check in CHECKS.values() for word in _words(check.rule)}
    return _suppress(sorted(graded, key=_order), given, convention, known)


def _place(declaration: Declaration) -> tuple[object, ...]:
    at, metadata = declaration.location, declaration.metadata
    where = (at.file, at.line, at.column, at.key) if at else ("", 0, 0, "")
    described = (metadata.owner, metadata.app, tuple(metadata.platforms), declaration.description)
    return (*where, declaration.server, declaration.name, *described)


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


def _graded(check: Check, context: LintContext) -> Iterator[Finding]:
    rule, convention = check.rule, context.convention
    severity = convention.severity(rule)
    if severity is None:
        return
    is_set = bool(convention.severities.keys() & {rule.code, rule.name})
    for finding in check.find(context):
        # A rule may give single findings another severity, unless the convention sets one for all of them.
        yield replace(finding, rule=replace(finding.rule, severity=severity)) if is_set else finding


def _suppress(
    findings: Iterable[Finding], declarations: Iterable[Declaration], convention: Convention, known: Set[str]
) -> Linted:
    suppressions = _SuppressionIndex(declarations, convention)
    kept: list[Finding] = []
    suppressed: list[Suppressed] = []
    for finding in findings:
        match = suppressions.match(finding)
        if match is None:
            kept.append(finding)
        else:
            suppressed.append(match)
    return Linted(
        findings=tuple(kept),
        suppressed=tuple(suppressed),
        unused=suppressions.unused(known),
        unused_ignored=suppressions.unused_ignored(known),
    )


class _SuppressionIndex:
    """The suppressions of a convention and of comments, with a record of which ones were used."""

    def __init__(self, declarations: Iterable[Declaration], convention: Convention) -> None:
        self._by_place = {(one.location, one.server, one.name): one for one in declarations if one.ignored}
        self._entries: defaultdict[str, list[tuple[int, Suppression, Globs]]] = defaultdict(list)
        for number, entry in enumerate(convention.suppressions):
            if entry.reason.strip():
                self._entries[entry.rule].append((number, entry, Globs(entry.tools)))
        self._used: set[int] = set()
        self._used_comments: set[tuple[int, str]] = set()

    def match(self, finding: Finding) -> Suppressed | None:
        """Return the suppressed finding or None; a comment overrides entries, and all of them count as used."""
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
                self._used_comments.add((id(one), word))
                return Suppressed(finding=finding, reason=one.ignored[word])
        if not entries:
            return None
        return Suppressed(finding=finding, reason=entries[0][1].reason, by=entries[0][1])

    def unused(self, known: Set[str]) -> tuple[Suppression, ...]:
        """Return the entries for known rules that suppressed nothing."""
        entries = {number: entry for group in self._entries.values() for number, entry, _ in group}
        return tuple(one for number, one in sorted(entries.items()) if number not in self._used and one.rule in known)

    def unused_ignored(self, known: Set[str]) -> tuple[tuple[Declaration, str], ...]:
        """Return the comments for known rules that suppressed nothing."""
        return tuple(
            (one, word)
            for one in self._by_place.values()
            for word, reason in one.ignored.items()
            if (id(one), word) not in self._used_comments and reason.strip() and word in known
        )


def _words(rule: Rule) -> tuple[str, str]:
    return rule.code, rule.name

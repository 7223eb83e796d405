"""The report: what was found, weighed by a convention, comments and a baseline. It decides; nothing is printed here."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from truename.lint.baseline import entry_of, is_acceptable, judged, stale
from truename.lint.configured import Configured
from truename.lint.fingerprints import fingerprinted
from truename.lint.registry import no_such_rule, rule_named
from truename.lint.upkeep import UPKEEP
from truename.policy import Finding, Location, Severity, lint

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from truename.lint.baseline import Baseline, Entry
    from truename.lint.comments import InlineSuppression
    from truename.lint.declared import Declared
    from truename.policy import Declaration, Linted

__all__ = ["Hidden", "Report", "Weighed", "weigh"]

Hidden = Literal["", "comment", "convention", "baseline"]

# What can't be read was not checked: that is told whatever anybody says.
_ALWAYS: Final = frozenset({"unreadable_source", "unknown_rule"})
# Rules that look at several tools: one file alone can't show that a suppression of theirs is needless.
_TOGETHER: Final = frozenset(
    {
        "duplicate_name", "folded_collision", "merged_by_client", "clashing_app", "needless_platform_split",
        "shadowed_tool", "near_name", "dead_reference",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """A finding with its fingerprint; ``hidden`` says what takes it back ("" if nothing does), and ``reason`` why."""

    finding: Finding
    fingerprint: str
    hidden: Hidden = ""
    reason: str = ""

    @property
    def can_be_accepted(self) -> bool:
        """Whether a baseline may hold it."""
        return is_acceptable(self.finding)


@dataclass(frozen=True, kw_only=True)
class Report:
    """What is wrong with all that was declared together.

    ``shown`` are the findings that count, ``hidden`` those that somebody took back; ``unused`` are comments that take
    nothing back, ``stale`` entries of the baseline that stand for nothing any more.
    """

    shown: tuple[Weighed, ...]
    hidden: tuple[Weighed, ...] = ()
    unused: tuple[InlineSuppression, ...] = ()
    stale: tuple[Entry, ...] = ()
    tools: int = 0
    files: tuple[str, ...] = ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings that count."""
        return tuple(one.finding for one in self.shown)

    def count(self, severity: Severity) -> int:
        """How many findings of this severity count."""
        return sum(one.rule.severity is severity for one in self.findings)

    def without_mended(self) -> Report:
        """Return the report without the comments and entries that do nothing, once they are removed."""
        gone = {one.location for one in self.unused}
        shown = tuple(
            one
            for one in self.shown
            if not (one.finding.rule.name == "stale_baseline" or (one.finding.location in gone and _is_unused(one)))
        )
        return replace(self, shown=shown, unused=(), stale=())

    def entries(self, base: Path) -> tuple[Entry, ...]:
        """Return what a baseline would have to hold so that nothing counts that can be accepted."""
        accepted = [*self.shown, *(one for one in self.hidden if one.hidden == "baseline")]
        made = (entry_of(one.finding, one.fingerprint, base) for one in accepted)
        return tuple(one for one in made if one is not None)


def weigh(
    declared: Declared,
    configured: Configured | None = None,
    *,
    peers: Sequence[Declaration] = (),
    baseline: Baseline | None = None,
    rules: Iterable[str] = (),
    is_whole: bool = True,
) -> Report:
    """Lint what was declared, and take back what comments, the convention and the baseline accept.

    ``rules`` (codes) leaves only findings of these; ``is_whole`` False says that only a part of what belongs together
    was read, so that nothing is said of suppressions which the rest may need.

    >>> from truename.lint import Declared, weigh
    >>> from truename.policy import Declaration
    >>> [one.rule.name for one in weigh(Declared(declarations=(Declaration(name="get weather"),))).findings]
    ['illegal_name']
    """
    configured = configured or Configured()
    chosen = frozenset(rules)
    linted = lint(declared.declarations, configured.convention, peers)
    unused = tuple(_unused(declared, linted, chosen, is_whole=is_whole))
    own = [*declared.findings, *configured.findings, *(baseline.findings if baseline else ())]
    own += _about_comments(declared.suppressions, unused)
    own += _about_convention(configured, linted, is_whole=is_whole and not chosen)
    graded = [_placed(one, configured) for one in [*linted.findings, *_graded(own, configured)]]
    taken = [Weighed(finding=one.finding, fingerprint="", hidden="convention" if one.by else "comment",
                     reason=one.reason) for one in linted.suppressed]  # fmt: skip
    counted, commented = _by_comments(graded, declared.suppressions)
    everything = [*(Weighed(finding=one, fingerprint="") for one in counted), *commented, *taken]
    weighed = _marked([one for one in everything if _is_chosen(one.finding, chosen)], configured.base)
    return _against(weighed, declared, configured, baseline=baseline, unused=unused, chosen=chosen)


def _against(
    weighed: Sequence[Weighed],
    declared: Declared,
    configured: Configured,
    *,
    baseline: Baseline | None,
    unused: tuple[InlineSuppression, ...],
    chosen: frozenset[str],
) -> Report:
    entries = {one.fingerprint: one for one in baseline.entries} if baseline else {}
    judged_ = [_accepted(one, entries) for one in weighed]
    found = {one.fingerprint for one in weighed}
    relevant = [one for one in entries.values() if not chosen or one.rule.upper() in chosen]
    old = tuple(judged(relevant, found, declared.files, configured.base))
    told = _graded([stale(one, baseline.path) for one in old] if baseline else [], configured)
    added = [one for one in told if _is_chosen(one, chosen)] if baseline else []
    shown = [one for one in judged_ if not one.hidden] + _marked(
        [Weighed(finding=one, fingerprint="") for one in added], configured.base
    )
    return Report(
        shown=tuple(sorted(shown, key=_order)),
        hidden=tuple(sorted((one for one in judged_ if one.hidden), key=_order)),
        unused=unused,
        stale=old,
        tools=len(declared.declarations),
        files=declared.files,
    )


def _is_unused(one: Weighed) -> bool:
    return one.finding.rule.name == "unused_suppression"


def _accepted(one: Weighed, entries: dict[str, Entry]) -> Weighed:
    if one.hidden or one.fingerprint not in entries or one.finding.rule.name in _ALWAYS:
        return one
    return replace(one, hidden="baseline", reason="accepted in the baseline")


def _marked(weighed: Iterable[Weighed], base: Path) -> list[Weighed]:
    """Give each its fingerprint, in the order of the text, so that alike ones keep their ordinals."""
    order = sorted(weighed, key=_order)
    marks = fingerprinted([one.finding for one in order], base)
    return [replace(one, fingerprint=mark) for one, (_, mark) in zip(order, marks, strict=True)]


def _order(one: Weighed) -> tuple[str, int, int, str, str, tuple[str, ...], str]:
    finding = one.finding
    place = finding.location or Location(file="")
    return place.file, place.line, place.column, finding.rule.code, finding.server, finding.tools, finding.fact


def _is_chosen(finding: Finding, chosen: frozenset[str]) -> bool:
    return not chosen or finding.rule.code in chosen or finding.rule.name in _ALWAYS


def _graded(findings: Iterable[Finding], configured: Configured) -> Iterator[Finding]:
    """Give our own findings the severity that the convention says; one that is off is left out."""
    for one in findings:
        severity = one.rule.severity if one.rule.name in _ALWAYS else configured.convention.severity(one.rule)
        if severity is not None:
            yield one if severity is one.rule.severity else replace(one, rule=replace(one.rule, severity=severity))


def _placed(finding: Finding, configured: Configured) -> Finding:
    """Point at the line of the convention's file where a finding is about the convention itself."""
    location = finding.location
    if location is None or location.line or not configured.is_in(location.file):
        return finding
    return replace(finding, location=configured.place(location.key))


def _by_comments(
    findings: Iterable[Finding], suppressions: Sequence[InlineSuppression]
) -> tuple[list[Finding], list[Weighed]]:
    """Part off what comments take back of our own findings; those of the rules were parted off already."""
    wanted = {(place, _code(one.rule)): one.reason for one in suppressions for place in one.names if one.reason}
    counted: list[Finding] = []
    taken: list[Weighed] = []
    for one in findings:
        reason = wanted.get((one.location, one.rule.code)) if one.location and one.rule.name not in _ALWAYS else None
        if reason is None:
            counted.append(one)
        else:
            taken.append(Weighed(finding=one, fingerprint="", hidden="comment", reason=reason))
    return counted, taken


def _code(word: str) -> str:
    found = rule_named(word)
    return word if found is None else found.code


def _unused(
    declared: Declared, linted: Linted, chosen: frozenset[str], *, is_whole: bool
) -> Iterator[InlineSuppression]:
    idle = {(one.location, word) for one, word in linted.unused_ignored}
    named: defaultdict[tuple[Location | None, str], bool] = defaultdict(bool)
    for finding in declared.findings:
        named[finding.location, finding.rule.code] = True
    for one in declared.suppressions:
        rule = rule_named(one.rule)
        if rule is None or not one.reason or (chosen and rule.code not in chosen):
            continue
        if not is_whole and rule.name in _TOGETHER:
            continue
        if all((place, one.rule) in idle or rule.name in UPKEEP for place in one.names) and not any(
            named[place, rule.code] for place in one.names
        ):
            yield one


def _about_comments(
    suppressions: Sequence[InlineSuppression], unused: Sequence[InlineSuppression]
) -> Iterator[Finding]:
    for one in suppressions:
        if rule_named(one.rule) is None:
            yield no_such_rule(one.rule, one.location)
        elif not one.reason:
            yield _unexplained(
                f"The comment takes {one.rule} back and gives no reason, so it has no effect.", one.location
            )
    for one in unused:
        what = f"Nothing is found here that {one.rule} would say" if one.names else "It stands at no tool's name"
        yield Finding(
            rule=UPKEEP["unused_suppression"],
            fact=f"{what}, so the comment has no effect.",
            remedy="Remove it: `truename lint --fix` does.",
            location=one.location,
        )


def _about_convention(configured: Configured, linted: Linted, *, is_whole: bool) -> Iterator[Finding]:
    convention = configured.convention
    for key, word in convention.named_rules:
        if rule_named(word) is None:
            yield no_such_rule(word, configured.place(key))
    for number, one in enumerate(convention.suppressions):
        place = configured.place(f"convention.suppressions[{number}]")
        if not one.reason:
            yield _unexplained(f"The suppression of {one.rule} gives no reason, so it has no effect.", place)
        elif is_whole and one in linted.unused and rule_named(one.rule) is not None:
            yield Finding(
                rule=UPKEEP["unused_suppression"],
                fact=f"Nothing is found that the suppression of {one.rule} would take back.",
                remedy="Remove it.",
                location=place,
            )


def _unexplained(fact: str, location: Location) -> Finding:
    return Finding(
        rule=UPKEEP["unexplained_suppression"],
        fact=fact,
        remedy="Write why, for those who review it and for those who would remove it.",
        location=location,
    )

"""The report: what was found, weighed by a convention, comments and a baseline. It decides; nothing is printed here."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from truename.conventions import Finding, Location, Severity, lint
from truename.lint.baseline import entry_of, is_acceptable, judged, stale
from truename.lint.configured import Configured
from truename.lint.fingerprints import fingerprinted
from truename.lint.metadata import unreadable, with_metadata
from truename.lint.suppressing import ALWAYS, about_comments, about_convention, taken_back, unused_comments

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from truename.conventions import Declaration, Suppressed
    from truename.lint.baseline import Baseline, Entry
    from truename.lint.comments import InlineSuppression
    from truename.lint.declared import Declared

__all__ = ["Hidden", "Report", "Weighed", "weigh"]

Hidden = Literal["", "comment", "convention", "baseline"]


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
    >>> from truename.conventions import Declaration
    >>> [one.rule.name for one in weigh(Declared(declarations=(Declaration(name="get weather"),))).findings]
    ['illegal_name']
    """
    configured = configured or Configured()
    chosen = frozenset(rules)
    declared = _judged(declared, configured)
    linted = lint(declared.declarations, configured.convention, with_metadata(peers, configured.metadata))
    unused = tuple(unused_comments(declared, linted, chosen, is_whole=is_whole))
    own = [*declared.findings, *configured.findings, *(baseline.findings if baseline else ())]
    own += about_comments(declared.suppressions, unused)
    counted, back, used = taken_back(own, declared.suppressions, configured.convention.suppressions)
    counted += about_convention(configured, linted, used, is_whole=is_whole and not chosen)
    shown = [*linted.findings, *_graded(counted, configured)]
    everything = [
        *(Weighed(finding=_placed(one, configured), fingerprint="") for one in shown),
        *(Weighed(finding=one, fingerprint="", hidden=by, reason=reason) for one, by, reason in back),
        *(_suppressed(one) for one in linted.suppressed),
    ]
    weighed = _marked([one for one in everything if _is_chosen(one.finding, chosen)], configured.base)
    return _against(weighed, declared, configured, baseline=baseline, unused=unused, chosen=chosen)


def _judged(declared: Declared, configured: Configured) -> Declared:
    """Return what was declared with the metadata that counts, and with findings for what of it can't be read."""
    return replace(
        declared,
        declarations=tuple(with_metadata(declared.declarations, configured.metadata)),
        findings=(*declared.findings, *unreadable(declared.declarations, configured.metadata)),
    )


def _suppressed(one: Suppressed) -> Weighed:
    by: Hidden = "convention" if one.by else "comment"
    return Weighed(finding=one.finding, fingerprint="", hidden=by, reason=one.reason)


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
    if one.hidden or one.fingerprint not in entries or one.finding.rule.name in ALWAYS:
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
    return not chosen or finding.rule.code in chosen or finding.rule.name in ALWAYS


def _graded(findings: Iterable[Finding], configured: Configured) -> Iterator[Finding]:
    """Give our own findings the severity that the convention says; one that is off is left out."""
    for one in findings:
        severity = one.rule.severity if one.rule.name in ALWAYS else configured.convention.severity(one.rule)
        if severity is not None:
            yield one if severity is one.rule.severity else replace(one, rule=replace(one.rule, severity=severity))


def _placed(finding: Finding, configured: Configured) -> Finding:
    """Point at the line of the convention's file where a finding is about the convention itself."""
    location = finding.location
    if location is None or location.line or not configured.is_in(location.file):
        return finding
    return replace(finding, location=configured.place(location.key))

"""Weigh findings by a convention, suppressions and a baseline, and combine them into one report."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from truename.catalog import Origin, Tool
from truename.catalog.globs import Globs
from truename.conventions import Finding, Location, Severity, lint
from truename.conventions.metadata import LIMITS
from truename.errors import excerpt
from truename.identity import ToolId
from truename.identity.components import component, dotted_component
from truename.lint.baseline import entry_of, find_stale_entries, is_acceptable, stale_entry_finding, with_fingerprints
from truename.lint.rules import UPKEEP, find_rule, unknown_rule_finding
from truename.lint.settings import LintConfiguration
from truename.policy import Exposure

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from truename.conventions import Declaration, Linted, Suppression
    from truename.lint.baseline import Baseline, BaselineEntry
    from truename.lint.declared import DeclaredTools
    from truename.lint.python_source import InlineSuppression
    from truename.migration import FileRewrite

__all__ = ["LintReport", "WeighedFindings", "weigh"]

_SPOKEN: Final = ("_meta", "annotations")
_NOWHERE: Final = "x"
_MOST: Final = 400


def with_metadata(
    declarations: Iterable[Declaration], entries: Mapping[str, Mapping[str, object]]
) -> list[Declaration]:
    """Return the declarations with the operator's metadata, as a gateway would read it.

    The server of a tool in a source is unknown, so only entries for every server apply to it: ``*/ios_*``, ``*``.
    """
    judge = _Suppressions(entries)
    return [
        replace(one, metadata=judge.exposure(one).metadata_of(_tool(one))) if entries else one for one in declarations
    ]


def invalid_metadata_findings(
    declarations: Iterable[Declaration], entries: Mapping[str, Mapping[str, object]]
) -> Iterator[Finding]:
    """Yield a finding for each tool with invalid metadata; the operator's value for a field takes precedence."""
    judge = _Suppressions(entries)
    for one in declarations:
        errors = judge.exposure(one).errors(_tool(one)) if not one.definition.keys().isdisjoint(_SPOKEN) else {}
        if errors:
            yield _finding(one, errors)


class _Suppressions:
    """The operator's metadata entries: all of them, and those for every server."""

    def __init__(self, entries: Mapping[str, Mapping[str, object]]) -> None:
        self._all = Exposure(metadata=entries)
        everywhere = {glob: said for glob, said in entries.items() if not glob.partition("/")[0].strip("*@")}
        self._everywhere = Exposure(metadata=everywhere)

    def exposure(self, one: Declaration) -> Exposure:
        return self._all if one.server else self._everywhere


def _tool(one: Declaration) -> Tool:
    suite, name, _ = dotted_component(one.name)
    said = one.identity
    integration = said.integration or component(one.server or _NOWHERE).name
    id = ToolId(integration, said.version or 1, suite, name, said.version_of(one.name))
    return Tool(id, Origin(one.server, one.name, one.server), one.definition)


def _finding(one: Declaration, errors: Mapping[str, str]) -> Finding:
    is_hidden = not errors.keys().isdisjoint(LIMITS)
    fields: defaultdict[str, list[str]] = defaultdict(list)
    for field, problem in errors.items():
        fields[problem].append(field)
    told = "; ".join(f"{', '.join(several)}: {problem}" for problem, several in fields.items())
    rule = UPKEEP["unreadable_metadata"]
    return Finding(
        rule=rule if is_hidden else replace(rule, severity=Severity.WARNING),
        fact=f"{excerpt(one.name)} has invalid metadata{', so it is hidden from everybody' if is_hidden else ''} "
        f"({told if len(told) <= _MOST else f'{told[:_MOST]}...'}).",
        remedy="Correct its definition, or set its metadata in [metadata] of the settings.",
        location=one.location,
        server=one.server,
        tools=(one.name,),
    )


# A suppressed finding, its suppression, and the reason.
Back = tuple[Finding, Literal["comment", "convention"], str]

# An unreadable part was not checked, which cannot be suppressed.
ALWAYS: Final = frozenset({"unreadable_source", "unknown_rule"})
_ALL: Final = "*"
# Rules that compare several tools: a single file cannot show that their suppressions are unused.
_TOGETHER: Final = frozenset(
    {
        "duplicate_name", "folded_collision", "merged_by_client", "clashing_app", "needless_platform_split",
        "shadowed_tool", "near_name", "dead_reference",
    }
)  # fmt: skip


def split_suppressed(
    findings: Iterable[Finding], comments: Sequence[InlineSuppression], entries: Sequence[Suppression]
) -> tuple[list[Finding], list[Back], frozenset[Suppression]]:
    """Split the linter's own findings into those that count and those that comments or the convention suppress.

    Also returns the convention's entries that suppressed one. Findings of other rules were split before. An entry for
    all names (``*``) also applies to findings without a tool.
    """
    at_place = {(place, _code(one.rule)): one.reason for one in comments for place in one.names if one.reason}
    by_rule: defaultdict[str, list[tuple[Suppression, Globs]]] = defaultdict(list)
    for entry in entries:
        if entry.reason:
            by_rule[_code(entry.rule)].append((entry, Globs(entry.tools)))
    counted: list[Finding] = []
    taken: list[Back] = []
    used: set[Suppression] = set()
    for one in findings:
        reason = at_place.get((one.location, one.rule.code)) if one.location else None
        by = next(
            (
                entry
                for entry, globs in by_rule[one.rule.code]
                if _ALL in entry.tools or any(globs.first(tool) for tool in one.tools[:1])
            ),
            None,
        )
        if one.rule.name in ALWAYS or (reason is None and by is None):
            counted.append(one)
        elif reason is not None:
            taken.append((one, "comment", reason))
        elif by is not None:
            taken.append((one, "convention", by.reason))
            used.add(by)
    return counted, taken, frozenset(used)


def _code(word: str) -> str:
    found = find_rule(word)
    return word if found is None else found.code


def unused_comments(
    declared: DeclaredTools, linted: Linted, chosen: frozenset[str], *, is_whole: bool
) -> Iterator[InlineSuppression]:
    """Yield the comments that suppress nothing, as far as the linted files can tell."""
    idle = {(one.location, word) for one, word in linted.unused_ignored}
    named: defaultdict[tuple[Location | None, str], bool] = defaultdict(bool)
    for finding in declared.findings:
        named[finding.location, finding.rule.code] = True
    for one in declared.suppressions:
        rule = find_rule(one.rule)
        if rule is None or not one.reason or (chosen and rule.code not in chosen):
            continue
        if not is_whole and rule.name in _TOGETHER:
            continue
        if all((place, one.rule) in idle or rule.name in UPKEEP for place in one.names) and not any(
            named[place, rule.code] for place in one.names
        ):
            yield one


def comment_findings(
    suppressions: Sequence[InlineSuppression], unused: Sequence[InlineSuppression]
) -> Iterator[Finding]:
    """Yield the findings about comments: unknown rule, no reason, no effect."""
    for one in suppressions:
        if find_rule(one.rule) is None:
            yield unknown_rule_finding(one.rule, one.location)
        elif not one.reason:
            yield _unexplained(
                f"The comment suppresses {one.rule} without a reason, so it has no effect.", one.location
            )
    for one in unused:
        what = f"{one.rule} finds nothing here" if one.names else "It is not on a line of a tool's name"
        yield Finding(
            rule=UPKEEP["unused_suppression"],
            fact=f"{what}, so the comment has no effect.",
            remedy="Remove it, or run `truename lint --fix`.",
            location=one.location,
        )


def convention_findings(
    configured: LintConfiguration, linted: Linted, used: frozenset[Suppression], *, is_whole: bool
) -> Iterator[Finding]:
    """Yield the findings about the convention's own suppressions and severities."""
    idle = frozenset(linted.unused) - used if is_whole else frozenset()
    for key, word in configured.convention.named_rules:
        if find_rule(word) is None:
            yield unknown_rule_finding(word, configured.place(key))
    for number, one in enumerate(configured.convention.suppressions):
        key = f"convention.suppressions[{number}]"
        if not one.reason:
            fact = f"The suppression of {one.rule} gives no reason, so it has no effect."
            yield _unexplained(fact, configured.place(key))
        elif one in idle and find_rule(one.rule) is not None:
            yield Finding(
                rule=UPKEEP["unused_suppression"],
                fact=f"The suppression of {one.rule} matches no finding.",
                remedy="Remove it.",
                location=configured.place(key),
            )


def _unexplained(fact: str, location: Location) -> Finding:
    return Finding(
        rule=UPKEEP["unexplained_suppression"],
        fact=fact,
        remedy="State the reason, for reviewers and for later maintenance.",
        location=location,
    )


Hidden = Literal["", "comment", "convention", "baseline"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WeighedFindings:
    """A finding with its fingerprint; ``hidden`` names its suppression ("" for none), and ``reason`` the reason."""

    finding: Finding
    fingerprint: str
    hidden: Hidden = ""
    reason: str = ""

    @property
    def can_be_accepted(self) -> bool:
        """Whether a baseline may accept it."""
        return is_acceptable(self.finding)


@dataclass(frozen=True, kw_only=True)
class LintReport:
    """The result of linting all declarations together.

    ``shown`` are the findings that count, ``hidden`` the suppressed ones; ``unused`` are comments that suppress
    nothing, ``stale`` baseline entries that match nothing. ``names`` counts the names of tools in skills and other
    files of clients.
    """

    shown: tuple[WeighedFindings, ...]
    hidden: tuple[WeighedFindings, ...] = ()
    unused: tuple[InlineSuppression, ...] = ()
    stale: tuple[BaselineEntry, ...] = ()
    tools: int = 0
    names: int = 0
    files: tuple[str, ...] = ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings that count."""
        return tuple(one.finding for one in self.shown)

    def count(self, severity: Severity) -> int:
        """Return the number of findings of this severity that count."""
        return sum(one.rule.severity is severity for one in self.findings)

    def without_fixed(self, corrections: Sequence[FileRewrite] = ()) -> LintReport:
        """Return the report without what was fixed: unused comments, stale entries, and corrected names."""
        gone = {one.location for one in self.unused}
        corrected = {(str(one.path), edit.line, edit.column) for one in corrections for edit in one.edits}
        shown = []
        for one in self.shown:
            rule, place = one.finding.rule.name, one.finding.location
            at = None if place is None else (place.file, place.line, place.column)
            if (
                rule != "stale_baseline"
                and not (rule == "unused_suppression" and place in gone)
                and at not in corrected
            ):
                shown.append(one)
        return replace(self, shown=tuple(shown), unused=(), stale=())

    def entries(self, base: Path) -> tuple[BaselineEntry, ...]:
        """Return the entries of a baseline that accepts all findings, as far as they can be accepted."""
        accepted = [*self.shown, *(one for one in self.hidden if one.hidden == "baseline")]
        made = (entry_of(one.finding, one.fingerprint, base) for one in accepted)
        return tuple(one for one in made if one is not None)


def weigh(
    declared: DeclaredTools,
    configured: LintConfiguration | None = None,
    *,
    peers: Sequence[Declaration] = (),
    baseline: Baseline | None = None,
    rules: Iterable[str] = (),
    is_whole: bool = True,
) -> LintReport:
    """Lint the declarations, and apply suppressions by comments, the convention and the baseline.

    ``rules`` (codes) restricts the findings to these rules; with ``is_whole`` False only a part of the sources was
    read, so suppressions that the rest may need are not reported as unused.

    >>> from truename.lint import DeclaredTools, weigh
    >>> from truename.conventions import Declaration
    >>> [one.rule.name for one in weigh(DeclaredTools(declarations=(Declaration(name="get weather"),))).findings]
    ['illegal_name']
    """
    configured = configured or LintConfiguration()
    chosen = frozenset(rules)
    declared = replace(
        declared,
        declarations=tuple(with_metadata(declared.declarations, configured.metadata)),
        findings=(*declared.findings, *invalid_metadata_findings(declared.declarations, configured.metadata)),
    )
    linted = lint(declared.declarations, configured.convention, with_metadata(peers, configured.metadata))
    unused = tuple(unused_comments(declared, linted, chosen, is_whole=is_whole))
    own = [*declared.findings, *configured.findings, *(baseline.findings if baseline else ())]
    own += comment_findings(declared.suppressions, unused)
    counted, back, used = split_suppressed(own, declared.suppressions, configured.convention.suppressions)
    counted += convention_findings(configured, linted, used, is_whole=is_whole and not chosen)
    shown = [*linted.findings, *_graded(counted, configured)]
    everything = [
        *(WeighedFindings(finding=_placed(one, configured), fingerprint="") for one in shown),
        *(WeighedFindings(finding=one, fingerprint="", hidden=by, reason=reason) for one, by, reason in back),
        *(
            WeighedFindings(
                finding=one.finding,
                fingerprint="",
                hidden="convention" if one.by else "comment",
                reason=one.reason,
            )
            for one in linted.suppressed
        ),
    ]
    weighed = _marked([one for one in everything if _is_chosen(one.finding, chosen)], configured.base)
    return _against(weighed, declared, configured, baseline=baseline, unused=unused, chosen=chosen)


def _against(
    weighed: Sequence[WeighedFindings],
    declared: DeclaredTools,
    configured: LintConfiguration,
    *,
    baseline: Baseline | None,
    unused: tuple[InlineSuppression, ...],
    chosen: frozenset[str],
) -> LintReport:
    entries = {one.fingerprint: one for one in baseline.entries} if baseline else {}
    judged_ = [
        one
        if one.hidden or one.fingerprint not in entries or one.finding.rule.name in ALWAYS
        else replace(one, hidden="baseline", reason="accepted in the baseline")
        for one in weighed
    ]
    found = {one.fingerprint for one in weighed}
    relevant = [one for one in entries.values() if not chosen or one.rule.upper() in chosen]
    old = tuple(find_stale_entries(relevant, found, declared.files, configured.base))
    told = _graded([stale_entry_finding(one, baseline.path) for one in old] if baseline else [], configured)
    added = [one for one in told if _is_chosen(one, chosen)] if baseline else []
    shown = [one for one in judged_ if not one.hidden] + _marked(
        [WeighedFindings(finding=one, fingerprint="") for one in added], configured.base
    )
    return LintReport(
        shown=tuple(sorted(shown, key=_order)),
        hidden=tuple(sorted((one for one in judged_ if one.hidden), key=_order)),
        unused=unused,
        stale=old,
        tools=len(declared.declarations),
        names=declared.names,
        files=declared.files,
    )


def _marked(weighed: Iterable[WeighedFindings], base: Path) -> list[WeighedFindings]:
    """Add fingerprints in the order of the text, so that equal findings keep their ordinals."""
    order = sorted(weighed, key=_order)
    marks = with_fingerprints([one.finding for one in order], base)
    return [replace(one, fingerprint=mark) for one, (_, mark) in zip(order, marks, strict=True)]


def _order(one: WeighedFindings) -> tuple[str, int, int, str, str, tuple[str, ...], str]:
    finding = one.finding
    place = finding.location or Location(file="")
    return place.file, place.line, place.column, finding.rule.code, finding.server, finding.tools, finding.fact


def _is_chosen(finding: Finding, chosen: frozenset[str]) -> bool:
    return not chosen or finding.rule.code in chosen or finding.rule.name in ALWAYS


def _graded(findings: Iterable[Finding], configured: LintConfiguration) -> Iterator[Finding]:
    """Apply the convention's severities to the linter's own findings; omit those that are off."""
    for one in findings:
        severity = one.rule.severity if one.rule.name in ALWAYS else configured.convention.severity(one.rule)
        if severity is not None:
            yield one if severity is one.rule.severity else replace(one, rule=replace(one.rule, severity=severity))


def _placed(finding: Finding, configured: LintConfiguration) -> Finding:
    """Add the line in the convention's file to a finding about the convention itself."""
    location = finding.location
    if location is None or location.line or not configured.is_in(location.file):
        return finding
    return replace(finding, location=configured.place(location.key))

"""The report of a linting, as people read it and as one JSON document."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from rich.text import Text

from truename.cli.rendering import output, show, styled
from truename.conventions import Severity
from truename.lint.excerpts import excerpt_of, place_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from truename.conventions import Finding
    from truename.lint.fixes import Fix
    from truename.lint.report import LintReport, WeighedFindings

__all__ = ["SCHEMA", "document", "show_findings", "show_linted"]

SCHEMA: Final = "truename.lint/1"
_MOST: Final = 100
_WIDEST: Final = 160
_STYLES: Final = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}
_RANK: Final = {severity: number for number, severity in enumerate(Severity)}
_ELSE: Final = "`truename lint SOURCE` reads a dump of tools/list, a configuration or a server's address, too."
# So many tools that pass for another server's are a collection of servers, and no attack.
_ALIKE: Final = "shadowed_tool"
_CROWD: Final = 20
_HIDDEN: Final = {"comment": "by a comment", "convention": "by the convention", "baseline": "in the baseline"}


def show_linted(report: LintReport, fixes: Sequence[Fix], *, everything: bool, command: str = "") -> None:
    """Print every finding with its line, or the worst hundred of more, a summary, and the command that comes next."""
    findings = report.findings
    left = 0 if everything else max(0, len(findings) - _MOST)
    if left:
        # The worst are kept, and told in the order of the files all the same.
        kept = set(sorted(range(len(findings)), key=lambda i: _RANK[findings[i].rule.severity])[:_MOST])
        findings = tuple(one for number, one in enumerate(findings) if number in kept)
    show_findings(findings)
    if left:
        rest = Counter(one.rule.name for one in report.findings) - Counter(one.rule.name for one in findings)
        told = ", ".join(f"{number:,} {name}" for name, number in rest.most_common(6))
        show(styled(f"and {left:,} more: {told}{', ...' if len(rest) > 6 else ''} (--all)", "dim"))
        show("")
    for fix in fixes:
        show(styled(f"{fix.path}: {'; '.join(fix.done)}", "green"))
    show(styled(_summary(report), "bold"))
    if sum(one.rule.name == _ALIKE for one in report.findings) > _CROWD:
        show("Servers that are read together are taken to run together: lint alternatives one after the other.")
    if command:
        show("To change the first of these names wherever it stands:")
        show("  ", styled(command, "green"))


def show_findings(findings: Sequence[Finding]) -> None:
    """Print findings: the place, the rule, the fact, the source's line, and what to do."""
    width = min(output().width, _WIDEST)
    for one in findings:
        severity = styled(one.rule.severity.value, _STYLES[one.rule.severity])
        rule = styled(f"{one.rule.code} {one.rule.name}", "dim")
        show(styled(place_of(one), "bold"), "  ", severity, "  ", rule)
        show("  ", styled(one.fact))
        _show_excerpt(one, width)
        show("  ", styled(one.remedy, "green"))
        show("")


def _show_excerpt(finding: Finding, width: int) -> None:
    found = excerpt_of(finding, width - 2)
    if found is not None:
        console = output()
        name = styled(found.name, "bold")
        line = Text.assemble(styled(f"  {found.number}", "dim"), found.before, name, found.after)
        mark = Text.assemble(styled(f"  {found.lead}", "dim"), styled(found.mark, "bold red"))
        for text in (line, mark)[: 2 if found.mark else 1]:
            console.print(text, no_wrap=True, overflow="ignore", crop=False)


def _summary(report: LintReport) -> str:
    counts = [_count(number, level.value) for level in Severity if (number := report.count(level))]
    hidden = Counter(one.hidden for one in report.hidden)
    taken = [f"{number:,} taken back {_HIDDEN[what]}" for what, number in hidden.items() if what]
    about = f"in {_count(report.tools, 'tool')} of {_count(len(report.files), 'source')}"
    if not report.tools and not counts:
        return f"No tools are declared in {_count(len(report.files), 'source')}. {_ELSE}"
    return "; ".join([f"{', '.join(counts) or 'Nothing is wrong'} {about}", *taken]) + "."


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def document(
    report: LintReport, *, failed: Sequence[str], baseline: Path | None, fixes: Sequence[Fix], convention: str
) -> dict[str, Any]:
    """Return everything that was found; keys are added in later versions, never changed."""
    return {
        "schema": SCHEMA,
        "convention": convention,
        "sources": list(report.files),
        "tools": report.tools,
        "findings": [_plain(one) for one in report.shown],
        "suppressed": [{**_plain(one), "suppressed_by": one.hidden, "reason": one.reason} for one in report.hidden],
        "baseline": None if baseline is None else str(baseline),
        "failed": list(failed),
        "fixed": [{"file": str(fix.path), "done": list(fix.done)} for fix in fixes],
        "summary": {level.value: report.count(level) for level in Severity},
    }


def _plain(weighed: WeighedFindings) -> dict[str, Any]:
    one = weighed.finding
    place = one.location
    told = None
    if place is not None:
        told = {"file": place.file, "line": place.line, "column": place.column, "key": place.key}
    return {
        "code": one.rule.code,
        "rule": one.rule.name,
        "severity": one.rule.severity.value,
        "fact": one.fact,
        "remedy": one.remedy,
        "suggested": one.suggested,
        "client": one.client,
        "confidence": one.confidence,
        "server": one.server,
        "tools": list(one.tools),
        "location": told,
        "fingerprint": weighed.fingerprint,
    }

"""Findings as GitHub's workflow commands, which its checks show beside the lines of a change.

Source: "Workflow commands for GitHub Actions", setting an error message; the escapes are those of its toolkit.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from truename.cli.rendering import printable
from truename.conventions import Severity

if TYPE_CHECKING:
    from collections.abc import Iterable

    from truename.conventions import Finding

__all__ = ["annotation", "print_annotations"]

_LEVELS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}
_TEXT: Final = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY: Final = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"})


def print_annotations(findings: Iterable[Finding]) -> None:
    """Print one command a finding on stdout."""
    for finding in findings:
        sys.stdout.write(f"{annotation(finding)}\n")


def annotation(finding: Finding) -> str:
    """Return the command; nothing that a name or a file holds can end it or add another.

    >>> from truename.lint import UPKEEP
    >>> from truename.conventions import Finding, Location
    >>> place = Location(file="a,b.py", line=3, column=5)
    >>> annotation(Finding(rule=UPKEEP["computed_name"], fact="100% so.", remedy="", location=place))
    '::notice file=a%2Cb.py,line=3,col=5,title=TN195 computed_name::100%25 so.'
    """
    place = finding.location
    told: dict[str, object] = {}
    if place is not None and place.file:
        told["file"] = place.file
    if place is not None and place.line:
        told |= {"line": place.line, "col": place.column or 1}
    told["title"] = f"{finding.rule.code} {finding.rule.name}"
    said = ",".join(f"{key}={printable(str(value)).translate(_PROPERTY)}" for key, value in told.items())
    text = printable(f"{finding.fact} {finding.remedy}".strip()).translate(_TEXT)
    return f"::{_LEVELS[finding.rule.severity]} {said}::{text}"

"""Findings as plain text, for programs that show texts of their own: one finding a paragraph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from truename.lint.excerpts import excerpt_of, spelled_out

if TYPE_CHECKING:
    from collections.abc import Iterable

    from truename.conventions import Finding

__all__ = ["place_of", "told"]

_LONGEST: Final = 200


def told(findings: Iterable[Finding], width: int = 100) -> str:
    """Return the findings with the lines that they are about; nothing in it but what can be printed."""
    return "\n\n".join(_told(one, width) for one in findings)


def place_of(finding: Finding) -> str:
    """Return where a finding is: file, line and column; a server's name where the line is not known."""
    # Labels are a server's own word.
    location, server = finding.location, finding.server[:_LONGEST]
    if location is None or not location.file:
        return (location.key if location else "") or server or "-"
    if location.line:
        return ":".join(str(part) for part in (location.file, location.line, location.column) if part)
    return f"{location.file} ({server})" if server else location.file


def _told(finding: Finding, width: int) -> str:
    rule = finding.rule
    lines = [spelled_out(f"{place_of(finding)}  {rule.severity.value}  {rule.code} {rule.name}")]
    lines.append(f"  {spelled_out(finding.fact)}")
    excerpt = excerpt_of(finding, width - 2)
    if excerpt is not None:
        lines += [f"  {line}" for line in str(excerpt).split("\n")]
    lines.append(f"  {spelled_out(finding.remedy)}")
    return "\n".join(lines)

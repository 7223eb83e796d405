"""Represent a finding: its rule, its place, the fact and the remedy."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Confidence", "Finding", "Location", "Rule", "Severity", "rules_by_name"]

Confidence = Literal["run", "read", ""]


class Severity(StrEnum):
    """The severity of a finding, with the values of SARIF: an error breaks something, a note is information."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """A place in a file; line and column count from 1, and 0 is unknown. ``key`` is its path, for people."""

    file: str
    line: int = 0
    column: int = 0
    key: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        return f"{place} ({self.key})" if self.key else place


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A lint rule: a stable ``code`` (TN001), a ``name`` for people, what it finds, and why that matters.

    ``example`` shows a finding, ``instead`` a correct form; "" if another page explains it.
    """

    code: str
    name: str
    severity: Severity
    what: str
    why: str
    example: str = ""
    instead: str = ""


def rules_by_name(rows: Iterable[tuple[str, str, Severity, str, str, str, str]]) -> Mapping[str, Rule]:
    """Return the rules of a table by name; each row has the fields of `Rule` in their order."""
    return MappingProxyType(
        {
            name: Rule(code=code, name=name, severity=severity, what=what, why=why, example=example, instead=instead)
            for code, name, severity, what, why, example, instead in rows
        }
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A finding of a rule: one sentence with the fact, and one with the remedy.

    ``client`` is the dialect concerned, ``confidence`` whether that client was run or its source read ("" if it is not
    about a client). ``server`` and ``tools`` are the server's own names. ``suggested`` is a better name for the first
    tool; "" if only a person can choose one.
    """

    rule: Rule
    fact: str
    remedy: str
    location: Location | None = None
    client: str = ""
    confidence: Confidence = ""
    server: str = ""
    tools: tuple[str, ...] = ()
    suggested: str = ""

    def __str__(self) -> str:
        return f"{self.fact} {self.remedy}"

"""Represent a finding: its rule, its place, the fact and the remedy."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

__all__ = ["Confidence", "Finding", "Location", "Rule", "Severity"]

Confidence = Literal["run", "read", ""]


class Severity(StrEnum):
    """How bad it is, in the words of SARIF: an error breaks something today, a note is good to know."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """A place in a file: line and column count from 1, nought is unknown; ``key`` is the path to it, for people."""

    file: str
    line: int = 0
    column: int = 0
    key: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        return f"{place} ({self.key})" if self.key else place


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What is looked for: a stable ``code`` (TN001), a ``name`` for people, what it means and why it matters.

    ``example`` shows what is found, ``instead`` what to write; "" where another page says it.
    """

    code: str
    name: str
    severity: Severity
    what: str
    why: str
    example: str = ""
    instead: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong: a sentence of fact, and a sentence of what to do.

    ``client`` is the dialect that it concerns, ``confidence`` whether that client was run or its source read ("" where
    no client's behaviour is meant). ``server`` and ``tools`` are names as their server gives them. ``suggested`` is the
    name that the first of the tools could have instead; "" where only a person can tell.
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

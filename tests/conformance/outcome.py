"""What became of a scenario, read from the checks that the suite writes down."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

__all__ = ["Check", "Outcome", "broken", "lost", "outcomes_below"]

_FAILED: Final = frozenset({"FAILURE"})
_FAILED_OR_WARNED: Final = frozenset({"FAILURE", "WARNING"})


@dataclass(frozen=True, slots=True)
class Check:
    """One of a scenario's checks: SUCCESS, FAILURE, WARNING, SKIPPED or INFO."""

    id: str
    status: str
    said: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """A scenario that was run; ``counts`` says whether its revision requires it."""

    scenario: str
    counts: bool
    checks: tuple[Check, ...]
    bad: frozenset[str] = _FAILED

    @property
    def failing(self) -> tuple[Check, ...]:
        """The checks that failed; of a scenario that never ran, one that says so."""
        if not self.checks:
            return (Check(self.scenario, "FAILURE", "The scenario was not run."),)
        return tuple(check for check in self.checks if check.status in self.bad)

    @property
    def warnings(self) -> tuple[Check, ...]:
        """What the suite would rather see otherwise."""
        return tuple(check for check in self.checks if check.status == "WARNING" and check not in self.failing)

    @property
    def passed(self) -> int:
        """How many checks succeeded."""
        return Counter(check.status for check in self.checks)["SUCCESS"]

    def refused(self, why: str) -> Outcome:
        """Return it with one failure more, which no check of the suite tells."""
        return replace(self, checks=(*self.checks, Check(self.scenario, "FAILURE", why)))


def outcomes_below(
    folder: Path, prefix: str, scenarios: Mapping[str, bool], *, warnings_fail: bool = False
) -> list[Outcome]:
    """Read what a run left in a folder: for each scenario wanted, also for those that left nothing."""
    found = {path.parent.name: path for path in folder.glob("*/checks.json")}
    return [
        Outcome(
            name,
            counts,
            _checks(path for place, path in found.items() if _is_of(place, prefix + name)),
            _FAILED_OR_WARNED if warnings_fail else _FAILED,
        )
        for name, counts in scenarios.items()
    ]


def lost(before: Iterable[Outcome], after: Iterable[Outcome]) -> list[tuple[str, Check]]:
    """Return what succeeded before and neither succeeds nor fails now: skipped, warned of, or not even looked at."""
    now = {outcome.scenario: outcome for outcome in after}
    return [
        (outcome.scenario, found)
        for outcome in before
        if not (then := now.get(outcome.scenario)) or not then.failing
        for check in outcome.checks
        if check.status == "SUCCESS" and (found := _lesser(check, then)) is not None
    ]


def broken(before: Iterable[Outcome], after: Iterable[Outcome]) -> list[tuple[str, Check]]:
    """Return the checks that fail now, of scenarios that failed in none before, and those that succeeded before."""
    then = {outcome.scenario: outcome for outcome in before}
    return [
        (outcome.scenario, check)
        for outcome in after
        for check in outcome.failing
        if not (known := then[outcome.scenario]).failing
        or any(other.id == check.id and other.status == "SUCCESS" for other in known.checks)
    ]


def _lesser(check: Check, then: Outcome | None) -> Check | None:
    same = [other for other in (then.checks if then else ()) if other.id == check.id]
    if not same:
        return Check(check.id, "MISSING", "The scenario did not come to this check.")
    return next((other for other in same if other.status != "SUCCESS"), None)


def _is_of(place: str, scenario: str) -> bool:
    # The suite appends a time: 2026-11-22T08-39-53-815Z.
    return len(place) == len(scenario) + 25 and place.startswith(f"{scenario.replace('/', '-')}-")


def _checks(files: Iterable[Path]) -> tuple[Check, ...]:
    read: list[dict[str, Any]] = [one for file in files for one in json.loads(file.read_text(encoding="utf-8"))]
    return tuple(Check(one["id"], one["status"], one.get("errorMessage") or one["description"]) for one in read)

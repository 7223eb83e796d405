"""What suppressions do: which findings they take back, and what is wrong with those that do nothing."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, Literal

from truename.catalog.globs import Globs
from truename.conventions import Finding, Location
from truename.lint.registry import no_such_rule, rule_named
from truename.lint.upkeep import UPKEEP

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from truename.conventions import Linted, Suppression
    from truename.lint.comments import InlineSuppression
    from truename.lint.configured import Configured
    from truename.lint.declared import Declared

__all__ = ["ALWAYS", "Back", "about_comments", "about_convention", "taken_back", "unused_comments"]

# A finding that was taken back, by what, and the reason.
Back = tuple[Finding, Literal["comment", "convention"], str]

# What can't be read was not checked: that is told whatever anybody says.
ALWAYS: Final = frozenset({"unreadable_source", "unknown_rule"})
_ALL: Final = "*"
# Rules that look at several tools: one file alone can't show that a suppression of theirs is needless.
_TOGETHER: Final = frozenset(
    {
        "duplicate_name", "folded_collision", "merged_by_client", "clashing_app", "needless_platform_split",
        "shadowed_tool", "near_name", "dead_reference",
    }
)  # fmt: skip


def taken_back(
    findings: Iterable[Finding], comments: Sequence[InlineSuppression], entries: Sequence[Suppression]
) -> tuple[list[Finding], list[Back], frozenset[Suppression]]:
    """Part off what comments and the convention take back of the linter's own findings, with the entries that did.

    Those of the other rules were parted off before. An entry for all names (``*``) is about findings without one, too.
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
        by = next((entry for entry, globs in by_rule[one.rule.code] if _is_about(entry, globs, one)), None)
        if one.rule.name in ALWAYS or (reason is None and by is None):
            counted.append(one)
        elif reason is not None:
            taken.append((one, "comment", reason))
        elif by is not None:
            taken.append((one, "convention", by.reason))
            used.add(by)
    return counted, taken, frozenset(used)


def _is_about(entry: Suppression, globs: Globs, finding: Finding) -> bool:
    return _ALL in entry.tools or any(globs.first(tool) for tool in finding.tools[:1])


def _code(word: str) -> str:
    found = rule_named(word)
    return word if found is None else found.code


def unused_comments(
    declared: Declared, linted: Linted, chosen: frozenset[str], *, is_whole: bool
) -> Iterator[InlineSuppression]:
    """Yield the comments that take nothing back, as far as what was read can tell."""
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


def about_comments(suppressions: Sequence[InlineSuppression], unused: Sequence[InlineSuppression]) -> Iterator[Finding]:
    """Yield what is wrong with comments: no such rule, no reason, no effect."""
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


def about_convention(
    configured: Configured, linted: Linted, used: frozenset[Suppression], *, is_whole: bool
) -> Iterator[Finding]:
    """Yield what is wrong with the convention's own suppressions and severities."""
    idle = frozenset(linted.unused) - used if is_whole else frozenset()
    for key, word in configured.convention.named_rules:
        if rule_named(word) is None:
            yield no_such_rule(word, configured.place(key))
    for number, one in enumerate(configured.convention.suppressions):
        key = f"convention.suppressions[{number}]"
        if not one.reason:
            fact = f"The suppression of {one.rule} gives no reason, so it has no effect."
            yield _unexplained(fact, configured.place(key))
        elif one in idle and rule_named(one.rule) is not None:
            yield Finding(
                rule=UPKEEP["unused_suppression"],
                fact=f"Nothing is found that the suppression of {one.rule} would take back.",
                remedy="Remove it.",
                location=configured.place(key),
            )


def _unexplained(fact: str, location: Location) -> Finding:
    return Finding(
        rule=UPKEEP["unexplained_suppression"],
        fact=fact,
        remedy="Write why, for those who review it and for those who would remove it.",
        location=location,
    )

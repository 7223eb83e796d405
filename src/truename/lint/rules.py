"""Register all lint rules by code and name, and define the rules about linting itself."""

from __future__ import annotations

from difflib import get_close_matches
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from truename.conventions import Finding, Rule, Severity
from truename.conventions.file_rules import FILE_RULES
from truename.conventions.findings import rules_by_name
from truename.conventions.rules import CHECKS
from truename.errors import excerpt

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.conventions import Location

__all__ = ["RULES", "UPKEEP", "find_rule", "suggest_rule", "unknown_rule_finding"]

_E, _W, _N = Severity.ERROR, Severity.WARNING, Severity.NOTE

# fmt: off
_TABLE: Final = (
    ("TN190", "stale_baseline", _W,
     "A baseline entry matches no finding.",
     "If the problem comes back, the entry hides it.",
     "an entry for fs.list, which was renamed fs_list since",
     "remove the entry, or run `truename lint --fix` or `truename lint --write-baseline`"),
    ("TN191", "unused_suppression", _W,
     "A suppression hides nothing.",
     "It hides the next finding of that rule without a review.",
     "# truename: ignore[TN104] for an old client, on a name that every client accepts",
     "remove it; for comments, run `truename lint --fix`"),
    ("TN192", "unexplained_suppression", _W,
     "A suppression gives no reason.",
     "Nobody can review it, or tell later whether it is still needed. Without a reason it hides nothing.",
     "# truename: ignore[TN104]",
     "# truename: ignore[TN104] only our own client lists it"),
    ("TN193", "unreadable_source", _E,
     "A source, or a part of it, is not readable.",
     "That part was not checked.",
     "a Python file with a syntax error; a dump that ends too early",
     "correct it at the named line, or exclude it with --exclude"),
    ("TN194", "unknown_rule", _E,
     "A suppression, a severity or a baseline names a rule that does not exist.",
     "It has no effect on the rule that it should hide or report.",
     "# truename: ignore[TN999] no such rule",
     "use a code or a name from the list of `truename explain`"),
    ("TN195", "computed_name", _N,
     "A tool's name is computed at run time, so the source does not contain it.",
     "The name is unknown, so no rule checks it.",
     'mcp.tool(name=f"{prefix}_search") with a prefix that is a parameter',
     "also lint a dump of the running server, or write the name as a string literal"),
    ("TN196", "unreadable_metadata", _E,
     "The metadata in a tool's definition is invalid or contradictory.",
     "The tool's audience is unknown, so the tool is hidden and refused. In other fields it is a warning.",
     '"_meta": {"dev.truename/platforms": "ios"}',
     '"_meta": {"dev.truename/platforms": ["ios"]}'),
)
# fmt: on

# By name. All can be suppressed, except those about unreadable sources and unknown rules.
UPKEEP: Final[Mapping[str, Rule]] = rules_by_name(_TABLE)


# By code, in the order of codes.
RULES: Final[Mapping[str, Rule]] = MappingProxyType(
    {
        one.code: one
        for one in sorted(
            (*(check.rule for check in CHECKS.values()), *FILE_RULES.values(), *UPKEEP.values()),
            key=lambda one: one.code,
        )
    }
)
_BY_NAME: Final = MappingProxyType({one.name: one for one in RULES.values()})
_LONGEST: Final = 64
# Any two codes have three of five characters in common.
_CLOSE: Final = 0.75


def find_rule(word: str) -> Rule | None:
    """Return the rule with this code, in any case, or this name."""
    return RULES.get(word.upper()) or _BY_NAME.get(word)


def suggest_rule(word: str, rules: Mapping[str, Rule] = RULES) -> str:
    """Return a sentence that suggests the closest rule."""
    known = {*rules, *(one.name for one in rules.values())}
    close = get_close_matches(word[:_LONGEST], known, 1, _CLOSE)
    hint = f"Did you mean {close[0]}? " if close else ""
    return f"{hint}`truename explain` lists the rules."


def unknown_rule_finding(word: str, location: Location) -> Finding:
    """Return the finding for the name of a rule that does not exist."""
    fact = f"There is no rule {excerpt(word, _LONGEST)}." if word else "No rule is named."
    remedy = suggest_rule(word) if word else "Write its code or name: # truename: ignore[TN104] the reason."
    return Finding(rule=UPKEEP["unknown_rule"], fact=fact, remedy=remedy, location=location)

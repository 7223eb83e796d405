"""Register all rules of linting by code and name, with the rules about linting itself."""

from __future__ import annotations

from difflib import get_close_matches
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from truename.conventions import Finding, Rule, Severity
from truename.conventions.rules import CHECKS
from truename.errors import excerpt

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.conventions import Location

__all__ = ["RULES", "UPKEEP", "no_such_rule", "rule_named", "suggestion"]

_E, _W, _N = Severity.ERROR, Severity.WARNING, Severity.NOTE

# fmt: off
_TABLE: Final = (
    ("TN190", "stale_baseline", _W,
     "An entry of the baseline stands for a finding that is no longer there.",
     "A name that was mended can be broken again, and the entry would hide it.",
     "an entry for fs.list, which was renamed fs_list since",
     "remove the entry: `truename lint --fix` does, and so does `truename lint --write-baseline`"),
    ("TN191", "unused_suppression", _W,
     "A suppression hides nothing.",
     "It outlives its reason, and hides the next finding of that rule without a review.",
     "# truename: ignore[TN104] of an old client, at a name that every client takes",
     "remove it: `truename lint --fix` does for comments"),
    ("TN192", "unexplained_suppression", _W,
     "A suppression gives no reason.",
     "Whoever reviews it, or wants to remove it later, can't tell what it is for. Without a reason it hides nothing.",
     "# truename: ignore[TN104]",
     "# truename: ignore[TN104] only our own client lists it"),
    ("TN193", "unreadable_source", _E,
     "A source, or a part of it, can't be read.",
     "That part was not checked.",
     "a Python file with a syntax error; a dump that ends too early",
     "mend it at the line that is named, or leave it out with --exclude"),
    ("TN194", "unknown_rule", _E,
     "A suppression, a severity or a baseline names a rule that does not exist.",
     "It has no effect: what it should hide is reported, and what it should report is hidden.",
     "# truename: ignore[TN999] no such rule",
     "`truename explain` lists the rules; both their codes and their names are understood"),
    ("TN195", "computed_name", _N,
     "A tool's name is made when the program runs, so it can't be read in the source.",
     "The name is unknown, so no rule checks it.",
     'mcp.tool(name=f"{prefix}_search") with a prefix that is a parameter',
     "lint a dump of the running server too, or write the name as a plain text"),
    ("TN196", "unreadable_metadata", _E,
     "What a definition says of its tool's metadata can't be read, or contradicts itself.",
     "The audience of the tool is unknown, so it is hidden and refused everywhere. It is a warning in other fields.",
     '"_meta": {"dev.truename/platforms": "ios"}',
     '"_meta": {"dev.truename/platforms": ["ios"]}'),
)
# fmt: on

# By name, as they are said in the code; they can be suppressed like all others but for what can't be read.
UPKEEP: Final[Mapping[str, Rule]] = MappingProxyType(
    {
        name: Rule(code=code, name=name, severity=severity, what=what, why=why, example=example, instead=instead)
        for code, name, severity, what, why, example, instead in _TABLE
    }
)


# By code, in the order of codes.
RULES: Final[Mapping[str, Rule]] = MappingProxyType(
    dict(sorted((one.code, one) for one in (*(check.rule for check in CHECKS.values()), *UPKEEP.values())))
)
_BY_NAME: Final = MappingProxyType({one.name: one for one in RULES.values()})
_LONGEST: Final = 64
# Any two codes have three characters of five in common.
_CLOSE: Final = 0.75


def rule_named(word: str) -> Rule | None:
    """Return the rule of this code, in any case, or of this name."""
    return RULES.get(word.upper()) or _BY_NAME.get(word)


def suggestion(word: str, rules: Mapping[str, Rule] = RULES) -> str:
    """Return a sentence about the rule that was perhaps meant."""
    known = {*rules, *(one.name for one in rules.values())}
    close = get_close_matches(word[:_LONGEST], known, 1, _CLOSE)
    hint = f"Did you mean {close[0]}? " if close else ""
    return f"{hint}`truename explain` lists the rules."


def no_such_rule(word: str, location: Location) -> Finding:
    """Return the finding that something names a rule which does not exist."""
    fact = f"There is no rule {excerpt(word, _LONGEST)}." if word else "No rule is named."
    remedy = suggestion(word) if word else "Write the code or the name of one: # truename: ignore[TN104] the reason."
    return Finding(rule=UPKEEP["unknown_rule"], fact=fact, remedy=remedy, location=location)

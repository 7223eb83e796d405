"""The rules that linting knows, by code and by name, and what to say of one that there is not."""

from __future__ import annotations

from difflib import get_close_matches
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from truename.conventions import Finding
from truename.conventions.rules import CHECKS
from truename.errors import excerpt
from truename.lint.upkeep import UPKEEP

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.conventions import Location, Rule

__all__ = ["RULES", "no_such_rule", "rule_named", "suggestion"]

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

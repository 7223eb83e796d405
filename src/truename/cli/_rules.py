"""Look up the rules of linting, of the doctor and of policies."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from truename.cli._errors import UsageError
from truename.clients.doctor import RULES as DOCTOR
from truename.errors import excerpt
from truename.lint.rules import RULES as LINT
from truename.lint.rules import suggest_rule
from truename.policy.policy import NAMES_NOTHING, UNGUARDED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from truename.conventions import Rule

__all__ = ["RULEBOOK", "found_by", "rule_asked", "rules_asked"]

_POLICY: Final = (NAMES_NOTHING, UNGUARDED)
# By code, in the order of codes.
RULEBOOK: Final[Mapping[str, Rule]] = MappingProxyType(
    dict(sorted((rule.code, rule) for rule in (*DOCTOR.values(), *_POLICY, *LINT.values())))
)
_BY_NAME: Final = MappingProxyType({rule.name: rule for rule in RULEBOOK.values()})


def rule_asked(word: str, among: Mapping[str, Rule] = RULEBOOK) -> Rule:
    """Return the rule of this code or name. Raises `UsageError` with the rule that was perhaps meant."""
    named = word.strip()
    rule = RULEBOOK.get(named.upper()) or _BY_NAME.get(named.lower().replace("-", "_"))
    if rule is None:
        raise UsageError(fact=f"no such rule: {excerpt(word, 64)}", advice=suggest_rule(named, among))
    if rule.code not in among:
        raise UsageError(
            fact=f"{rule.code} {rule.name} is no rule of `truename lint`", advice=f"{found_by(rule)} looks for it."
        )
    return rule


def rules_asked(words: Sequence[str]) -> tuple[str, ...]:
    """Return the codes of rules of linting. Raises `UsageError`."""
    return tuple(rule_asked(word, LINT).code for word in words)


def found_by(rule: Rule) -> str:
    """Return the command that looks for what breaks a rule."""
    if rule.code in LINT:
        return "`truename lint`"
    return "`truename doctor`" if rule.name in DOCTOR else "`truename.policy.policy`, in a test,"

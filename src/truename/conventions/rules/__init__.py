"""Collect the naming rules, one family a file; each rule's docstring is its page."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final

from truename.conventions.rules import (
    characters,
    collisions,
    integrations,
    legality,
    ownership,
    platforms,
    prompt_injection,
    references,
    self_promotion,
    shadowing,
    spelling,
)
from truename.conventions.rules.check import Check, LintContext

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CHECKS", "Check", "LintContext"]

_FAMILIES: Final[tuple[tuple[Check, ...], ...]] = (
    legality.CHECKS,
    collisions.CHECKS,
    spelling.CHECKS,
    integrations.CHECKS,
    ownership.CHECKS,
    platforms.CHECKS,
    characters.CHECKS,
    shadowing.CHECKS,
    self_promotion.CHECKS,
    prompt_injection.CHECKS,
    references.CHECKS,
)
# All rules by code, sorted.
CHECKS: Final[Mapping[str, Check]] = {
    one.rule.code: one for one in sorted(chain.from_iterable(_FAMILIES), key=lambda one: one.rule.code)
}

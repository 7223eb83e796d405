"""The rules of naming, one family a file. What a rule means stands in its docstring, which is also its page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from truename.policy.rules.check import Check
from truename.policy.rules.material import Material

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CHECKS", "Check", "Material"]

_FAMILIES: Final[tuple[tuple[Check, ...], ...]] = ()
# By code, in the order of codes.
CHECKS: Final[Mapping[str, Check]] = {one.rule.code: one for family in _FAMILIES for one in family}

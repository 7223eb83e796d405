"""The one answer that policy gives, whoever asks and whatever decided it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.policy.grants import Grant

__all__ = ["STRICTNESS", "Decision", "Outcome"]

Outcome = Literal["allow", "ask", "deny"]
STRICTNESS: Final[Mapping[Outcome, int]] = {"allow": 0, "ask": 1, "deny": 2}


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What may happen: run it, ask somebody first, or refuse.

    ``rule`` is the name of the rule that decided, ``reason`` a clause for people, ``grant`` the decision of a person
    that was found for the call, in force or suspended.
    """

    outcome: Outcome
    rule: str = ""
    reason: str = ""
    grant: Grant | None = None

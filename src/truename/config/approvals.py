"""The table ``[approvals]``: who decides on calls that the policy asks about, and how long a decision is valid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from truename.config.field_types import COUNT, SECONDS, SECONDS_OR_ZERO, choice
from truename.config.fields import setting

__all__ = ["Ask", "Asking"]

Ask = Literal["client", "operator", "both"]


@dataclass(frozen=True, kw_only=True)
class Asking:
    """Who decides on calls that the policy asks about, how long a call waits, and how long a decision is valid."""

    ask: Ask = setting(
        "client",
        choice(get_args(Ask)),
        "Who decides: the user of the calling client (the operator, if the client cannot ask), the operator alone, "
        "or both at once, and the first answer counts.",
        live=True,
    )
    wait: float = setting(
        0.0,
        SECONDS_OR_ZERO,
        "Time that a call waits for the operator before it is answered.",
        unit="seconds",
        live=True,
    )
    max_pending: int = setting(20, COUNT, "Calls of one caller that may await a decision.", unit="calls", live=True)
    expiry: float = setting(
        3_600.0,
        SECONDS,
        "Time after which a pending request, or an unused approval of one call, expires.",
        unit="seconds",
        live=True,
    )
    grant_expiry: float | None = setting(
        None, SECONDS, "Time after which every approval expires; without it none does.", unit="seconds", live=True
    )

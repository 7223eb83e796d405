"""Print how a gateway ended: how many calls were interrupted, and why."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from truename.cli._rendering import say, say_json

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Reason", "report_end"]

Reason: TypeAlias = Literal["time", "signal"]
_REASONS: Final[Mapping[Reason, str]] = {"time": "drain_timeout passed", "signal": "a second signal arrived"}


def report_end(left: int, reason: Reason, *, as_json: bool) -> int:
    """Print how many calls were interrupted, and return the exit status: 1 if there were any."""
    # After the terminal was closed, writing to it fails.
    with contextlib.suppress(OSError):
        if as_json:
            say_json({"ended": True, "broken_off": left})
        elif left:
            what = "1 call was" if left == 1 else f"{left:,} calls were"
            say(f"Ended. {what} interrupted, because {_REASONS[reason]}; it is unknown how far the servers got.")
        else:
            say("Ended. No call was interrupted.")
    return 1 if left else 0

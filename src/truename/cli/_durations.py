"""Parse durations that people type: 30m, 12h, 90d, 52w."""

from __future__ import annotations

from typing import Final

from truename.cli._errors import UsageError
from truename.errors import excerpt

__all__ = ["seconds_of"]

_UNITS: Final = {"m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_LONGEST: Final = 10 * 366 * 86_400
_MOST_DIGITS: Final = 6


def seconds_of(text: str) -> float:
    """Parse a duration. Raises `UsageError`."""
    number, unit = text[:-1], text[-1:]
    if not (number.isascii() and number.isdigit()) or unit not in _UNITS or len(number) > _MOST_DIGITS:
        raise UsageError(fact=f"{excerpt(text)} is not a duration", advice="Write it as 30m, 12h, 90d or 52w.")
    seconds = int(number) * _UNITS[unit]
    if not 0 < seconds <= _LONGEST:
        raise UsageError(fact=f"{text} is not a minute to ten years", advice="Write it as 30m, 12h, 90d or 52w.")
    return seconds

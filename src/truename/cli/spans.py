"""Spans of time as people type them: 30m, 12h, 90d, 52w."""

from truename.cli.failure import UsageFault
from truename.errors import excerpt

__all__ = ["seconds_of"]

_UNITS = {"m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_LONGEST = 10 * 366 * 86_400
_MOST_DIGITS = 6


def seconds_of(text: str) -> float:
    """Return the seconds of a span. Raises `UsageFault`."""
    number, unit = text[:-1], text[-1:]
    if not (number.isascii() and number.isdigit()) or unit not in _UNITS or len(number) > _MOST_DIGITS:
        raise UsageFault(fact=f"{excerpt(text)} is no span of time", advice="Write it as 30m, 12h, 90d or 52w.")
    seconds = int(number) * _UNITS[unit]
    if not 0 < seconds <= _LONGEST:
        raise UsageFault(fact=f"{text} is not a minute to ten years", advice="Write it as 30m, 12h, 90d or 52w.")
    return seconds

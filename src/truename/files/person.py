"""Who is at work: the name under which a person's decisions are written down, and where people are at home."""

from __future__ import annotations

import getpass
from pathlib import Path

__all__ = ["at_home", "whoami"]


def whoami() -> str:
    """Return the name of the user who runs this program; "" where the system knows none."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return ""


def at_home(text: str) -> Path:
    """Return a path whose ``~`` or ``~NAME`` is a home; of nobody whom the system knows it is a word, as in a shell.

    >>> at_home("~nobody-of-this-name/x").as_posix()
    '~nobody-of-this-name/x'
    """
    try:
        return Path(text).expanduser()
    except RuntimeError:
        return Path(text)

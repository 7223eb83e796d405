"""Who is at work: the name under which a person's decisions are written down."""

from __future__ import annotations

import getpass

__all__ = ["whoami"]


def whoami() -> str:
    """Return the name of the user who runs this program; "" where the system knows none."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return ""

"""Return the current user's name, for records of decisions, and their home directory."""

from __future__ import annotations

import getpass
import os
from pathlib import Path

__all__ = ["at_home", "whoami"]

try:
    import pwd
except ImportError:  # Windows has none
    pwd = None  # type: ignore[assignment]


def whoami() -> str:
    """Return the name of the user who runs this program; "" where the system knows none.

    It is the system's word where that has one: what stands in ``LOGNAME`` anybody can say.
    """
    try:
        return getpass.getuser() if pwd is None else pwd.getpwuid(os.geteuid()).pw_name
    except (OSError, KeyError, ImportError):
        return ""


def at_home(path: str | Path) -> Path:
    """Return a path whose ``~`` or ``~NAME`` is a home; of nobody whom the system knows it is a word, as in a shell.

    >>> at_home("~nobody-of-this-name/x").as_posix()
    '~nobody-of-this-name/x'
    """
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)

"""Find the name and the home directory of the current user."""

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
    """Return the name of the user who runs this program; "" if the system knows none.

    Where there is a user database, the name comes from it and not from ``LOGNAME``, which anybody can set.
    """
    try:
        return getpass.getuser() if pwd is None else pwd.getpwuid(os.geteuid()).pw_name
    except (OSError, KeyError, ImportError):
        return ""


def at_home(path: str | Path) -> Path:
    """Expand ``~`` or ``~NAME`` at the start of a path; an unknown user's ``~NAME`` stays, as in a shell.

    >>> at_home("~nobody-of-this-name/x").as_posix()
    '~nobody-of-this-name/x'
    """
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)

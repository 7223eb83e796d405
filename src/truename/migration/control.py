"""Control-plane tools: those that upgrade the program that offers them (seed 002: ``agent.update``).

Once such a tool has a new name, a peer that knows only the old one can't be told to upgrade by it.
"""

from __future__ import annotations

from typing import Final

from truename.naming.words import words

__all__ = ["is_control_plane"]

_UPGRADES: Final = frozenset({"update", "updater", "upgrade", "upgrader", "selfupdate", "rollback", "reinstall"})
_ITSELF: Final = frozenset({"self", "agent", "agents", "daemon", "worker", "runner", "runtime", "firmware", "fleet"})


def is_control_plane(name: str) -> bool:
    """Tell whether a name says that the tool upgrades its own program.

    >>> [is_control_plane(name) for name in ("agent.update", "selfUpdate", "winget.update", "update_lead")]
    [True, True, False, False]
    """
    found = frozenset(words(name))
    return "selfupdate" in found or bool(found & _UPGRADES and found & _ITSELF)

"""What happens at the door, for whoever keeps a journal of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

__all__ = ["AccessEvent", "OnAccess", "Turnstile", "ignore_access"]

What = Literal["signed_in", "sign_in_refused", "sign_in_ended", "turned_away", "logged_in"]
_AT_ONCE: Final = 20.0
_A_SECOND: Final = 1.0


@dataclass(frozen=True, kw_only=True)
class AccessEvent:
    """One thing that happened. ``principal`` is the key of whose it is, "" where nobody knows; ``client`` who acts.

    ``server`` is where somebody logged in, by the gateway's own page. ``why`` says what the reason was, and nothing of
    a token; ``times`` how often it happened since it was told last.
    """

    what: What
    principal: str = ""
    client: str = ""
    server: str = ""
    why: str = ""
    times: int = 1


OnAccess = Callable[[AccessEvent], None]
"""Is told of each. It must not wait, and must not raise."""


def ignore_access(_: AccessEvent) -> None:
    """Do nothing."""


class Turnstile:
    """Tells of those who were turned away, and no more than one a second on the whole.

    Anybody can send wrong tokens, as fast as they like; a journal of them is not to be filled by that.
    """

    def __init__(self, tell: OnAccess, clock: Callable[[], float] = time.monotonic) -> None:
        self._tell = tell
        self._clock = clock
        self._left = _AT_ONCE
        self._at = clock()
        self._silent = 0

    def turned_away(self, why: str) -> None:
        """Tell of one, or count it for the next time that something is told."""
        now = self._clock()
        self._left = min(_AT_ONCE, self._left + (now - self._at) * _A_SECOND)
        self._at = now
        self._silent += 1
        if self._left >= 1.0:
            self._left -= 1.0
            times, self._silent = self._silent, 0
            self._tell(AccessEvent(what="turned_away", why=why, times=times))

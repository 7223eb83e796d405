"""What comes of showing servers credentials: told when it changes, and who has to log in; never what was shown."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from truename.auth.outbound.tokens import LoginNeeded, NoCredential
from truename.cache import LRUCache

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.auth.outbound.tokens import ServerCredential

__all__ = ["LastChallenges", "OnShown", "Showing", "ShownEvent", "ignore_shown"]

What = Literal["obtained", "renewed", "login_required", "not_obtained"]
# Servers times people; those who were not seen for longest are forgotten.
_MOST: Final = 10_000
# What goes on failing in the same way is told once in so many seconds.
_PAUSE: Final = 60.0


@dataclass(frozen=True, kw_only=True)
class ShownEvent:
    """A credential was ``obtained`` for a server, ``renewed``, or could not be had; for whom, and why not.

    ``times`` is how often it happened since it was told last.
    """

    what: What
    server: str
    principal: str
    why: str = ""
    times: int = 1


OnShown = Callable[[ShownEvent], None]
"""Is told of each. It must not wait, and must not raise."""


def ignore_shown(_: ShownEvent) -> None:
    """Do nothing."""


@dataclass
class _Last:
    what: What | None = None
    # Tells another token from the same, and is no way back to it.
    token: int | None = None
    at: float = 0.0
    times: int = 0


class LastChallenges:
    """Keeps, by server and person, what came last of asking for a credential."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.tell: OnShown = ignore_shown
        self._clock = clock
        self._last: LRUCache[tuple[str, str], _Last] = LRUCache(_MOST)

    def logins_required(self) -> Mapping[str, int]:
        """Return at how many people's logins servers wait, by server's key; servers at which all is well are not in."""
        found: dict[str, int] = {}
        for (server, _), last in zip(self._last, self._last.values(), strict=True):
            if last.what == "login_required":
                found[server] = found.get(server, 0) + 1
        return found

    def had(self, server: str, principal: str, token: str) -> None:
        """Know that there was a token."""
        last = self._of(server, principal)
        if last.what in {"obtained", "renewed"} and last.token == hash(token):
            return
        last.what = "obtained" if last.token is None else "renewed"
        last.token, last.times = hash(token), 0
        self.tell(ShownEvent(what=last.what, server=server, principal=principal))

    def missed(self, server: str, principal: str, error: NoCredential) -> None:
        """Know that there was none."""
        what: What = "login_required" if isinstance(error, LoginNeeded) else "not_obtained"
        last, now = self._of(server, principal), self._clock()
        last.times += 1
        if last.what == what and now < last.at + _PAUSE:
            return
        times, last.times = last.times, 0
        last.what, last.at = what, now
        self.tell(ShownEvent(what=what, server=server, principal=principal, why=str(error), times=times))

    def _of(self, server: str, principal: str) -> _Last:
        if (last := self._last.get((server, principal))) is None:
            last = self._last[server, principal] = _Last()
        return last


class Showing:
    """A credential for one server and person, of which is told what comes of it. Raises what it raises."""

    def __init__(self, credential: ServerCredential, server: str, principal: str, shown: LastChallenges) -> None:
        self._credential = credential
        self._server = server
        self._principal = principal
        self._shown = shown

    async def token(self) -> str:
        """Return an access token. Raises `NoCredential`."""
        try:
            token = await self._credential.token()
        except NoCredential as error:
            self._shown.missed(self._server, self._principal, error)
            raise
        self._shown.had(self._server, self._principal, token)
        return token

    def refused(self, token: str) -> None:
        """Know that the server did not take a token."""
        self._credential.refused(token)

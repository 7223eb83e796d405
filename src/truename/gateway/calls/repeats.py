"""How often in a row a wrong name was called: a model that is stuck is told so at the third time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from truename.cache import LRUCache
from truename.gateway.protocol.callers import principal_of
from truename.gateway.protocol.sdk import is_modern

if TYPE_CHECKING:
    from collections.abc import Callable

    from truename.gateway.mcp.requests import Request
    from truename.gateway.views.view import ViewSpec

__all__ = ["Repeats"]

_MAX_CALLERS: Final = 1_000
_MAX_NAMES: Final = 50
_LONGEST: Final = 200
_WINDOW: Final = 60.0
_LAST: Final = "truename.last-call"


class Repeats:
    """Counts by session where one lasts; else by principal, machine, view and name within a minute.

    The stateless era has no sessions, and some frameworks open one for each call: so a session's first call is
    counted so too.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._wrong: LRUCache[tuple[str, str, ViewSpec], LRUCache[str, tuple[int, float]]] = LRUCache(_MAX_CALLERS)

    def again(self, request: Request, view: ViewSpec, name: str) -> int:
        """Note a wrong name; return how often it was called now."""
        name = name[:_LONGEST]
        times: int
        session = None if is_modern(request.protocol_version) else request.connection.state
        if session is not None and _LAST in session:
            before, times = session[_LAST]
            times = times + 1 if before == name else 1
        else:
            times = self._from_one_caller((*_caller(request), view), name)
        if session is not None:
            session[_LAST] = name, times
        return times

    def over(self, request: Request, view: ViewSpec) -> None:
        """Note a call of a right name, which ends a row."""
        if is_modern(request.protocol_version):
            self._wrong.pop((*_caller(request), view))
        else:
            request.connection.state[_LAST] = "", 0

    def _from_one_caller(self, caller: tuple[str, str, ViewSpec], name: str) -> int:
        now = self._clock()
        if (rows := self._wrong.get(caller)) is None:
            rows = self._wrong[caller] = LRUCache(_MAX_NAMES)
        times, at = rows.get(name) or (0, now)
        times = times + 1 if now <= at + _WINDOW else 1
        rows[name] = times, now
        return times


def _caller(request: Request) -> tuple[str, str]:
    """Return who asks from which machine: its address as the socket has it, whatever headers say."""
    client = getattr(request.http, "client", None)
    return principal_of(request).key, getattr(client, "host", None) or "stdio"

"""A second connection to a server that speaks both eras: in the handshake era, for clients of that era.

What a server can do depends on the version of its connection: many tools ask the client by a request while they run,
which only the handshake eras have. So a server has to know a client of those eras that can be asked as one. A session,
or a pipe, is of one era, so this takes another one: of a server over standard input and output a second program.
"""

from __future__ import annotations

import logging
import math
import time
from typing import TYPE_CHECKING, Any, Final

import anyio

from truename.gateway.background import background
from truename.gateway.upstream_errors import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from anyio.abc import TaskGroup

    from truename.config import ServerConfig, Settings
    from truename.gateway.upstream.session import ServerSession
    from truename.gateway.upstream.upstream import Upstream

__all__ = ["HandshakeConnection"]

log: Final = logging.getLogger("truename.gateway")

# How long a call waits for the connection, and after how long one that could not be had is tried again.
_PATIENCE: Final = 10.0
_AGAIN: Final = 60.0
# What a server says that does not speak the version: another attempt would end in the same way.
_REFUSED: Final = frozenset({"protocol", "refused"})


class HandshakeConnection:
    """The second connection to one server. All sessions share it; it is opened at the first call that needs it.

    Over HTTP it ends after ``isolation_idle`` seconds without a request. ``make`` makes one that is not running yet.
    A server that refuses the handshake is not asked again as long as the connection to it lasts that all clients use.
    """

    def __init__(
        self, make: Callable[[], Upstream], tasks: TaskGroup, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._make = make
        self._tasks = tasks
        self._clock = clock
        self._upstream: Upstream | None = None
        self._scope = anyio.CancelScope()
        self._is_late = False
        self._refused: ServerSession | None = None
        self._not_before = -math.inf

    def reload(self, make: Callable[[], Upstream], server: ServerConfig, settings: Settings, of: Upstream) -> None:
        """Have other limits from the next call on."""
        self._make = make
        if (own := self._upstream) is not None:
            own.reload(server, settings)
            own.calls.share(of.calls)

    def end(self) -> None:
        """End it; the next call opens another."""
        self._upstream = None
        self._scope.cancel()

    async def of(self, first: Upstream, *, is_lasting: bool) -> Upstream | None:
        """Return the connection beside ``first``; None where it cannot be had, or not in time.

        One that is ``is_lasting`` does not end when nobody uses it.
        """
        if (own := self._upstream) is None:
            if first.session is self._refused or self._clock() < self._not_before:
                return None
            own = self._open(first, is_lasting=is_lasting)
        # What one call waited for in vain, no other waits for.
        patience = 0.0 if self._is_late else min(_PATIENCE, first.settings.startup_timeout)
        with own.running, anyio.move_on_after(patience):
            await own.settled.wait()
        if not own.settled.is_set():
            self._is_late = True
            return None
        if own.state == "failed" or (own.problem is not None and own.problem.kind in _REFUSED):
            self._give_up(first, own)
            return None
        level = first.follower.level
        if level is not None and own.follower.level != level:
            await own.follower.set_level(level)
        return own

    def _open(self, first: Upstream, *, is_lasting: bool) -> Upstream:
        self._upstream = own = self._make()
        self._is_late = False
        own.calls.share(first.calls)
        own.follower.level = first.follower.level
        self._scope = anyio.CancelScope()
        self._tasks.start_soon(self._run, own, self._scope, None if is_lasting else self._expire)
        return own

    def _give_up(self, first: Upstream, own: Upstream) -> None:
        if self._upstream is not own:
            return
        self.end()
        log.info(
            "server %r cannot ask clients of earlier versions while they call it: %s", printable(own.key), own.problem
        )
        # Another program would be started in vain again and again.
        if own.config.url is None or (own.problem is not None and own.problem.kind in _REFUSED):
            self._refused = first.session
        else:
            self._not_before = self._clock() + _AGAIN

    @staticmethod
    async def _run(
        own: Upstream, scope: anyio.CancelScope, expire: Callable[[Upstream], Coroutine[Any, Any, None]] | None
    ) -> None:
        with scope:
            async with background() as tasks:
                if expire is not None:
                    tasks.start_soon(expire, own)
                await own.run()

    async def _expire(self, own: Upstream) -> None:
        """End it once nobody has used it for long."""
        while (left := own.settings.isolation_idle - own.running.quiet) > 0:
            await anyio.sleep(left)
            await own.running.none()
        if self._upstream is own:
            self.end()

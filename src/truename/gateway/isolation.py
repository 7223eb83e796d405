"""Connections that sessions have for themselves, to servers that must not mix them up."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio

from truename.gateway.faults import UpstreamError
from truename.gateway.sdk import connection_of, is_modern

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from anyio.abc import TaskGroup

    from truename.config import Settings
    from truename.gateway.questions import Asker
    from truename.gateway.sdk import Request
    from truename.gateway.upstream import Upstream

__all__ = ["Isolation"]

# The one user that there is: whoever knows the token.
_USER = "user"


@dataclass(frozen=True)
class _Own:
    upstream: Upstream
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)


class Isolation:
    """One server's connections that belong to sessions: made at the first call, ended with the session.

    ``make`` makes one that is not running yet. Where there are no sessions, a user has one.
    """

    def __init__(self, make: Callable[[Asker], Upstream], tasks: TaskGroup, settings: Settings) -> None:
        self._make = make
        self._tasks = tasks
        self._most = settings.max_isolated
        self._patience = settings.startup_timeout
        self._own: dict[Hashable, _Own] = {}

    async def of(self, request: Request, asker: Asker) -> Upstream:
        """Return the connection for this request, when it is ready or has failed. Raises `UpstreamError` (busy)."""
        has_session = not is_modern(request.protocol_version)
        key: Hashable = connection_of(request) if has_session else _USER
        if key not in self._own:
            own = self._open(key, asker)
            if has_session:
                connection_of(request).exit_stack.callback(own.scope.cancel)
        upstream = self._own[key].upstream
        with anyio.move_on_after(self._patience):
            await upstream.settled.wait()
        return upstream

    def _open(self, key: Hashable, asker: Asker) -> _Own:
        own = _Own(self._make(asker))
        if len(self._own) >= self._most:
            raise UpstreamError(
                server=own.upstream.key,
                kind="busy",
                problem=f"has {self._most:,} connections of sessions already, which max_isolated allows",
                remedy="End another session, or raise max_isolated.",
            )
        self._own[key] = own
        self._tasks.start_soon(self._run, key, own)
        return own

    async def _run(self, key: Hashable, own: _Own) -> None:
        try:
            with own.scope:
                await own.upstream.run()
        finally:
            del self._own[key]

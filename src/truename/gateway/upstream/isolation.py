"""Connections that sessions or users have for themselves, to servers that must not mix them up."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import anyio

from truename.auth.outbound.tokens import TokenCaller
from truename.gateway.background import background
from truename.gateway.elicitation.router import A_USER
from truename.gateway.protocol.callers import admission_of, principal_of
from truename.gateway.upstream.negotiating import HANDSHAKES
from truename.gateway.upstream_errors import UpstreamError, needs_login
from truename.policy.principal import LOCAL

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from anyio.abc import TaskGroup

    from truename.config import Settings
    from truename.gateway.elicitation.router import Asker, User
    from truename.gateway.mcp.requests import Request
    from truename.gateway.upstream.negotiating import Handshake
    from truename.gateway.upstream.upstream import Upstream
    from truename.policy.principal import Principal

    # For whom, who that is, how they were let in, and when the handshake is tried.
    Make = Callable[[Asker | User, str, TokenCaller, Handshake], Upstream]

__all__ = ["Isolation"]


@dataclass(frozen=True)
class _Own:
    upstream: Upstream
    caller: TokenCaller
    principal: str
    is_lasting: bool
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)


class Isolation:
    """One server's connections that belong to sessions (``by_session``) or users: each made at the first call.

    It ends with its session, and where clients can vanish without a word, that is over HTTP, after ``isolation_idle``
    without a request. ``make`` makes one that is not running yet. Where there are no sessions, a user has one; where
    they are known to the server by what they may do (``by_rights``), one with each client, scopes and groups. Who came
    in by a credential has half of all connections at most: nobody keeps all others out by opening sessions.
    """

    def __init__(
        self, make: Make, tasks: TaskGroup, settings: Settings, *, by_session: bool, by_rights: bool = False
    ) -> None:
        self._tasks = tasks
        self._by_session = by_session
        self._by_rights = by_rights
        self._own: dict[Hashable, _Own] = {}
        # By whose they are; those too that are just ending: their programs are still there.
        self._running = Counter[str]()
        self.reload(make, settings)

    def reload(self, make: Make, settings: Settings) -> None:
        """Have other limits, and make the next ones otherwise."""
        self._make = make
        self._most = settings.max_isolated
        self._idle = settings.isolation_idle
        self._wait_seconds = settings.startup_timeout

    def end(self) -> None:
        """End all of them."""
        for key in list(self._own):
            self._end(key)

    async def of(self, request: Request, asker: Asker, handshake: Handshake) -> Upstream:
        """Return the connection for this request, when it is ready or has failed. Raises `UpstreamError` (busy).

        A user whose clients are of both eras has one for each: ``handshake`` tells which.
        """
        has_session = self._by_session and not request.connection.is_modern
        who = principal_of(request)
        key: Hashable = request.connection if has_session else (self._whose(who), handshake)
        if key not in self._own:
            owner = asker if self._by_session else A_USER
            self._open(key, owner, who.key, handshake, is_lasting=request.http is None)
            if has_session:
                request.connection.exit_stack.callback(partial(self._end, key))
        upstream = self._own[key].upstream
        self._own[key].caller.asks(admission_of(request))
        with upstream.running, anyio.move_on_after(self._wait_seconds):
            await upstream.settled.wait()
        return upstream

    def renew(self, who: Principal) -> None:
        """End somebody's connection that waits for a login: one is made anew, and shown what there is by then."""
        for key in [(self._whose(who), handshake) for handshake in HANDSHAKES]:
            if key in self._own and needs_login(self._own[key].upstream.problem):
                self._end(key)

    def _whose(self, who: Principal) -> Hashable:
        return who if self._by_rights else who.key

    def _open(
        self, key: Hashable, owner: Asker | User, principal: str, handshake: Handshake, *, is_lasting: bool
    ) -> None:
        caller = TokenCaller()
        own = _Own(self._make(owner, principal, caller, handshake), caller, principal, is_lasting)
        if problem := self._full(principal):
            remedy = "End another session, or raise max_isolated."
            raise UpstreamError(server=own.upstream.key, kind="busy", problem=problem, remedy=remedy)
        self._own[key] = own
        self._running[principal] += 1
        self._tasks.start_soon(self._run, key, own)

    def _full(self, principal: str) -> str:
        """Say why somebody can have no other connection now, "" if they can."""
        if self._running.total() >= self._most:
            whose = "sessions" if self._by_session else "users"
            return f"has {self._most:,} connections of {whose} already, which max_isolated allows"
        share = self._most if principal == LOCAL.key else max(1, self._most // 2)
        if self._running[principal] >= share:
            return f"has {share:,} connections of yours already, half of what max_isolated allows"
        return ""

    async def _run(self, key: Hashable, own: _Own) -> None:
        try:
            with own.scope:
                async with background() as tasks:
                    if not own.is_lasting:
                        tasks.start_soon(self._expire, key, own)
                    await own.upstream.run()
        finally:
            self._running -= Counter({own.principal: 1})
            if self._own.get(key) is own:
                del self._own[key]

    async def _expire(self, key: Hashable, own: _Own) -> None:
        """End it once nobody has used it for long."""
        while (left := self._idle - own.upstream.running.quiet) > 0:
            await anyio.sleep(left)
            await own.upstream.running.none()
        self._end(key)

    def _end(self, key: Hashable) -> None:
        if (own := self._own.pop(key, None)) is not None:
            own.scope.cancel()

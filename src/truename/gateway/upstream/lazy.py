"""A server that may rest: it is started when somebody wants it, and what it listed before is shown until then."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from truename.gateway.protocol.skills import SKILLS_CAPABILITIES
from truename.gateway.upstream.backoff import Backoff
from truename.gateway.upstream.idle_shutdown import IdleShutdown
from truename.gateway.upstream.kept import INSTRUCTIONS, Remembered
from truename.gateway.upstream.known import Known

if TYPE_CHECKING:
    from truename.config import ServerConfig, Settings
    from truename.gateway.upstream.following import Follower
    from truename.gateway.upstream.kept import ListCache
    from truename.gateway.upstream.session import ServerSession

__all__ = ["Lazy"]


class Lazy(Known):
    """``kept`` has what lazy servers listed before, and which servers gave instructions or served skills.

    A connection that is somebody's own (``is_own``) never rests.
    """

    def __init__(self, config: ServerConfig, settings: Settings, *, is_own: bool) -> None:
        super().__init__(config, settings)
        self.kept: ListCache | None = None
        self.idle_shutdown = IdleShutdown(self.running)
        self._is_own = is_own
        self._backoff = Backoff()
        self._up = anyio.Event()

    @property
    def is_lazy(self) -> bool:
        """Whether it runs only as long as it is wanted."""
        return (self.config.start or self.settings.start) == "lazy" and not self._is_own

    @property
    def idle_limit(self) -> float:
        """After how many seconds without a request it rests; 0 is never."""
        own = self.config.idle_timeout
        limit = self.settings.idle_timeout if own is None else own
        return limit if self.is_lazy else 0.0

    @property
    def may_rest(self) -> bool:
        """Whether it need not run now: its lists are known, and nobody wants it."""
        return self.is_lazy and self.tools is not None and not self.idle_shutdown.is_wanted

    @property
    def is_resting(self) -> bool:
        """Whether it does not run, and is not to."""
        return self.idle_shutdown.is_on

    async def awake(self) -> None:
        """Have the server started if it rests, and wait until it is ready, or could not be started."""
        if self.is_lazy and (self._connection is None or self._connection.closed):
            self._backoff.hurry()
            await self.idle_shutdown.want(self.settings.startup_timeout)

    @property
    def may_instruct(self) -> bool:
        """Whether it gives instructions, or gave some when it last ran."""
        if self.session is not None or self._before is not None:
            return bool(self.instructions)
        return self.kept is not None and self.kept.had(self.config, INSTRUCTIONS)

    def offers(self, capability: str) -> bool:
        """Whether the server has this. Of one that is starting, skills are only known from when it last ran."""
        is_unknown = self.session is None and self._before is None
        if capability in SKILLS_CAPABILITIES and is_unknown:
            return self.state == "starting" and self.kept is not None and self.kept.had(self.config, capability)
        return super().offers(capability)

    def _recalled(self) -> Remembered | None:
        """Return what it listed when it last ran."""
        if self.is_lazy and self.kept is not None:
            self._before = self.kept.read(self.config)
        return self._before

    def _keep(self, session: ServerSession) -> None:
        if self.kept is None:
            return
        self.kept.note(self.config, INSTRUCTIONS, is_so=bool(session.instructions))
        for capability in SKILLS_CAPABILITIES:
            self.kept.note(self.config, capability, is_so=session.offers(capability))
        if not self.is_lazy:
            return
        now = Remembered.of(self.tools or (), self.lists, session.offers, session.instructions)
        if now != self._before:
            self._before = now
            self.kept.write(self.config, now)

    def _withdraw(self) -> None:
        # Whoever waits already waits for the event that the next connection sets.
        if self._connection is not None:
            self._connection, self._up = None, anyio.Event()

    async def _shut_down_when_idle(self, follower: Follower, lost: anyio.Event) -> None:
        if not (limit := self.idle_limit):
            return
        await self.idle_shutdown.idle(limit, follower)
        # In one step with the last look: who comes now waits for the next start.
        self.idle_shutdown.is_on = True
        self._withdraw()
        lost.set()

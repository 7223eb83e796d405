"""All upstream servers of a configuration, started together, none in the way of another; replaced without a gap."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import anyio
from anyio.lowlevel import checkpoint

from truename import __version__
from truename.config.credentials import TokenExchange
from truename.gateway.background import background
from truename.gateway.elicitation.request_states import RequestStates
from truename.gateway.elicitation.suspended_calls import SuspendedCalls
from truename.gateway.events import ignore_event
from truename.gateway.upstream.handshake import HandshakeConnection
from truename.gateway.upstream.isolation import Isolation
from truename.gateway.upstream.kept import ListCache
from truename.gateway.upstream.outside import Outside
from truename.gateway.upstream.replacing import is_same_connection
from truename.gateway.upstream.upstream import Upstream

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from anyio.abc import TaskGroup

    from truename.auth.outbound.tokens import TokenCaller
    from truename.config import Config, ServerConfig
    from truename.gateway.elicitation.router import Asker, User
    from truename.gateway.events import OnEvent
    from truename.gateway.protocol.operations import Operations
    from truename.gateway.upstream.isolation import Make
    from truename.gateway.upstream.negotiating import Handshake
    from truename.gateway.upstream.sharing.program_sharing import ProgramSharing
    from truename.gateway.upstream.showing import LastChallenges

__all__ = ["ServerPool", "running_pool"]


class ServerPool(Mapping[str, Upstream]):
    """The servers that are shown, by key, in the configuration's order. They run among ``owners``.

    Another configuration is taken in two steps: `show` puts what is shown in its place at once; `follow` starts what is
    new, and ends what is no more when its last request has ended. A server whose entry is another one goes on until its
    successor is ready, or has failed.
    """

    def __init__(
        self,
        config: Config,
        owners: TaskGroup,
        changed: Callable[[], None],
        on_event: OnEvent,
        outside: Outside,
        *,
        states: RequestStates,
        announce: Callable[[str], None] | None = None,
    ) -> None:
        self.joined: Callable[[Upstream], None] = _ignore_joined
        self._announce = announce
        self._owners = owners
        self._changed = changed
        self._on_event = on_event
        self._identity = {"name": config.settings.server_name, "version": __version__}
        self._settings = config.settings
        self._outside = outside
        self._states = states
        self.suspended = SuspendedCalls(owners, config.settings, states=states, location=config.state_location())
        self._kept = _kept_beside(config)
        self._scopes: dict[Upstream, anyio.CancelScope] = {}
        self._coming: dict[str, Upstream] = {}
        self._shown = {server.key: self._made(server) for server in config.enabled}

    def __getitem__(self, key: str) -> Upstream:
        return self._shown[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._shown)

    def __len__(self) -> int:
        return len(self._shown)

    @property
    def shown(self) -> LastChallenges:
        """What came of asking for credentials for servers."""
        return self._outside.credentials.shown

    @property
    def operations(self) -> Operations:
        """Who is told of requests to servers."""
        return self._outside.operations

    def start(self) -> None:
        """Start all of them."""
        for upstream in self._shown.values():
            self._start(upstream)

    async def settled(self) -> None:
        """Wait until each is ready or has failed for now, successors too, and those have taken their places."""
        while (one := self._unsettled()) is not None:
            await one.settled.wait()
        while self._coming:
            await checkpoint()

    def _unsettled(self) -> Upstream | None:
        everybody = (*self._shown.values(), *self._coming.values())
        return next((one for one in everybody if not one.settled.is_set()), None)

    def show(self, config: Config) -> None:
        """Show the servers of this configuration: those that stay and those that are to come."""
        before, self._settings = self._shown, config.settings
        self._shown = {server.key: before.get(server.key) or self._made(server) for server in config.enabled}

    def follow(self, config: Config) -> None:
        """Start, replace and end servers, such that those of this configuration run, within its limits."""
        self.suspended.reload(config.settings)
        for key in [key for key in self._coming if key not in self._shown]:
            self._dismiss(self._coming.pop(key))
        for server in config.enabled:
            self._follow(server)
        for upstream in [one for one in self._scopes if self._shown.get(one.key) is not one]:
            if self._coming.get(upstream.key) is not upstream:
                self._dismiss(upstream)

    def _follow(self, server: ServerConfig) -> None:
        shown, coming = self._shown[server.key], self._coming.get(server.key)
        if shown not in self._scopes:
            self.joined(shown)
            self._start(shown)
            return
        if is_same_connection(shown.config, server):
            # What was to come in between is not wanted any more.
            self._reload(shown, server)
            if coming is not None:
                self._dismiss(self._coming.pop(server.key))
        elif coming is not None and is_same_connection(coming.config, server):
            self._reload(coming, server)
        else:
            if coming is not None:
                self._dismiss(self._coming.pop(server.key))
            self._coming[server.key] = successor = self._made(server)
            self.joined(successor)
            self._start(successor)
            self._owners.start_soon(self._hand_over, successor)

    def _reload(self, upstream: Upstream, server: ServerConfig) -> None:
        upstream.reload(server, self._settings)
        if upstream.isolation is not None:
            upstream.isolation.reload(self._maker(server), self._settings)
        if upstream.second is not None:
            upstream.second.reload(self._second_maker(server), _eager(server), self._settings, upstream)

    def _made(self, server: ServerConfig) -> Upstream:
        upstream = Upstream(
            server,
            self._settings,
            self._identity,
            changed=self._changed,
            on_event=self._on_event,
            outside=self._outside,
        )
        upstream.suspended, upstream.states = self.suspended, self._states
        upstream.kept = self._kept
        if self._announce is not None:
            upstream.announce = self._announce
        if server.isolation != "shared":
            by_session = server.isolation == "session"
            by_rights = isinstance(server.auth, TokenExchange)
            upstream.isolation = Isolation(
                self._maker(server), self._owners, self._settings, by_session=by_session, by_rights=by_rights
            )
        else:
            upstream.second = HandshakeConnection(self._second_maker(server), self._owners)
        return upstream

    def _maker(self, server: ServerConfig) -> Make:
        """Return how people's own connections are made. What is listed there is what the shared one lists."""
        settings, identity, outside = self._settings, self._identity, self._outside

        def make(owner: Asker | User, principal: str, caller: TokenCaller, handshake: Handshake) -> Upstream:
            return Upstream(
                server,
                settings,
                identity,
                changed=_ignore,
                on_event=ignore_event,
                outside=replace(outside, principal=principal, caller=caller),
                owner=owner,
                handshake=handshake,
            )

        return make

    def _second_maker(self, server: ServerConfig) -> Callable[[], Upstream]:
        """Return how a second connection to a server is made, for clients of the handshake eras."""
        return partial(
            Upstream,
            _eager(server),
            self._settings,
            self._identity,
            changed=_ignore,
            on_event=ignore_event,
            outside=self._outside,
            handshake="only",
        )

    def _start(self, upstream: Upstream) -> None:
        self._scopes[upstream] = scope = anyio.CancelScope()
        self._owners.start_soon(self._run, upstream, scope)

    async def _run(self, upstream: Upstream, scope: anyio.CancelScope) -> None:
        with scope:
            await upstream.run()

    async def _hand_over(self, successor: Upstream) -> None:
        """Show a successor in place of the one that goes on until now."""
        await successor.settled.wait()
        if self._coming.get(successor.key) is not successor:
            return
        del self._coming[successor.key]
        before = self._shown[successor.key]
        self._shown = {**self._shown, successor.key: successor}
        self.joined(successor)
        self._changed()
        self._dismiss(before)

    def _dismiss(self, upstream: Upstream) -> None:
        scope = self._scopes.pop(upstream, None)
        if scope is not None:
            self._owners.start_soon(self._end, upstream, scope)

    async def _end(self, upstream: Upstream, scope: anyio.CancelScope) -> None:
        """End a server when nothing runs there any more, or calls had their time."""
        with anyio.move_on_after(self._settings.drain_timeout):
            await upstream.running.none()
        if upstream.isolation is not None:
            upstream.isolation.end()
        if upstream.second is not None:
            upstream.second.end()
        scope.cancel()


@asynccontextmanager
async def running_pool(
    config: Config,
    changed: Callable[[], None],
    on_event: OnEvent,
    *,
    wait: float | None = None,
    may_rest: bool = False,
    states: RequestStates | None = None,
    sharing: ProgramSharing | None = None,
    announce: Callable[[str], None] | None = None,
) -> AsyncIterator[ServerPool]:
    """Start the enabled servers and wait until each is ready or has failed; end them with the block.

    ``wait`` bounds the waiting, in seconds: who is later joins later. ``may_rest`` has lazy servers started when they
    are needed; else all are, to hear what they list now.

    ``states`` has what clients of the stateless era bring back, ``sharing`` the programs that other processes of the
    gateway share. ``changed`` is called whenever the tools of one are other ones; ``on_event`` is told the progress,
    and ``announce`` the key of a server that says to this process that its lists changed.
    """
    outside, stack = Outside.of(config, sharing), ExitStack()
    try:
        async with background() as owners:
            shown = config if may_rest else _all_eager(config)
            states = states or RequestStates()
            pool = ServerPool(shown, owners, changed, on_event, outside, states=states, announce=announce)
            pool.start()
            with anyio.move_on_after(math.inf if wait is None else wait):
                await pool.settled()
            # After its calls, which run among the owners.
            stack.callback(pool.suspended.close)
            yield pool
    finally:
        stack.close()
        with anyio.CancelScope(shield=True):
            await outside.credentials.close()


def _all_eager(config: Config) -> Config:
    return replace(config, servers=tuple(map(_eager, config.servers)))


def _eager(server: ServerConfig) -> ServerConfig:
    return replace(server, start="eager")


def _kept_beside(config: Config) -> ListCache | None:
    """Return the lists of lazy servers: beside the state database, where there is a file for it."""
    state = config.state_location().path
    return None if state is None else ListCache(state.with_name(f"{state.name}.lists"), config.settings.max_tools)


def _ignore() -> None:
    pass


def _ignore_joined(_: Upstream) -> None:
    pass

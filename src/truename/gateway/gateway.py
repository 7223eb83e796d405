"""The gateway: servers behind it, views in front of it, and the ledger that keeps their names."""

from __future__ import annotations

import logging
import math
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final, Self

import anyio
from anyio import to_thread

from truename import __version__
from truename.audit import with_recorded_revision
from truename.config.addresses import path_of
from truename.config.quotas import Quotas
from truename.gateway.auditing import Auditing, auditing
from truename.gateway.background import background
from truename.gateway.call_records import ignore_call
from truename.gateway.elicitation.request_states import RequestStates
from truename.gateway.endpoint.addressing import asked_by, choosing
from truename.gateway.endpoint.endpoint import Endpoint
from truename.gateway.events import OnEvent, ignore_event
from truename.gateway.protocol.tracing import is_traced
from truename.gateway.registry import Registry
from truename.gateway.reloading import limited, take
from truename.gateway.report import Report, ServerReport
from truename.gateway.status import RegistryStatus
from truename.gateway.upstream.list_change_relay import ListChangeRelay
from truename.gateway.upstream.server_pool import running_pool
from truename.gateway.views.choice import fixed_view
from truename.gateway.views.discovery import check_ranking
from truename.gateway.views.naming import check_identities
from truename.gateway.views.view import MAIN, Asked, UnknownView
from truename.ledger import Ledger, open_ledger
from truename.naming import utc_today
from truename.policy import Context
from truename.policy.principal import LOCAL
from truename.storage import StateLocation
from truename.telemetry.call_spans import describe_call
from truename.telemetry.setup import create_metrics, export_metrics
from truename.trust import PinStore
from truename.trust.renames import RenameStore

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from datetime import date
    from types import TracebackType

    from anyio.abc import TaskGroup, TaskStatus

    from truename.catalog import Catalog
    from truename.config import Config
    from truename.gateway.reloading import Guard
    from truename.gateway.report import Reloaded
    from truename.gateway.upstream.server_pool import ServerPool
    from truename.gateway.upstream.sharing.program_sharing import ProgramSharing
    from truename.gateway.views.view import ViewSpec
    from truename.naming import NameTable
    from truename.policy.call import OnCall
    from truename.policy.principal import Principal

__all__ = ["Gateway"]

_LOOK_EVERY: Final = 2.0
_LAST_WORDS: Final = 1.0
_HASTE: Final = 0.02
# Seconds for which a write waits for another process; the loop, and with it every call, waits as long.
_PATIENCE: Final = 0.05

log: Final = logging.getLogger("truename.gateway")


class Gateway:
    """A running gateway, as an async context manager: inside, its servers are started and its names are known.

    ``on_event`` is told the progress while servers start, and later what happens to them. ``ledger`` is one to use
    instead of the configuration's. ``wait`` bounds, in seconds, how long entering waits for servers that are slow to
    start (None: until each is ready or has failed); they join when they are ready, and clients are told. With
    ``is_early`` entering waits for none of them: requests that depend on lists wait instead, as long as entering would,
    and clients may connect meanwhile (`joined`). ``only`` is
    the key of the one server to start: the others' views are not there then, nor is the one of all. ``servers`` are
    those to start, where it is several: they are shown under the names that they have among all. ``today`` tells the
    day, until which old names are listed. ``sharing`` has the programs that this gateway shares with others of its
    state, once it listens (`listening`): enter it with ``is_early`` then. ``on_call`` is told of each call of a tool
    when it is over, once and however it ended (`CallEvent`); it must not wait, and what it raises is logged and stops
    nothing.

    Entering raises `LedgerError` (a damaged or busy file, ``style_mismatch``, ``identity_mismatch``) and groups of
    naming errors. A server that fails raises nothing and stands in `status`.
    """

    def __init__(
        self,
        config: Config,
        *,
        on_event: OnEvent = ignore_event,
        on_call: OnCall = ignore_call,
        ledger: Ledger | None = None,
        wait: float | None = None,
        is_early: bool = False,
        only: str | None = None,
        servers: Collection[str] | None = None,
        today: Callable[[], date] = utc_today,
        sharing: ProgramSharing | None = None,
    ) -> None:
        self.sharing = sharing
        self.list_changes = ListChangeRelay(self._heard)
        self._wait = wait
        self._is_early = is_early
        self._only = only
        self._servers = servers if only is None else (only,)
        self._today = today
        self.config = config
        self._on_event = on_event
        self._on_call = on_call
        self._ledger = ledger
        self._endpoints: dict[Asked, Endpoint] = {}
        self._dirty = anyio.Event()
        self._reloading = anyio.Lock()
        self._stack = AsyncExitStack()
        self._registry: Registry | None = None
        self._pool: ServerPool | None = None
        self._guards: list[Guard] = []
        self._audit = Auditing(config.settings.audit)
        self._states = RequestStates()
        check_ranking(config.settings.search_ranking)
        self.metrics = create_metrics(config.settings.telemetry)
        if self.metrics is not None:
            self._on_event = self.metrics.counting(on_event)

    async def __aenter__(self) -> Self:
        self.config = with_recorded_revision(self.config)
        async with AsyncExitStack() as stack:
            # Nobody is served yet. A thread that runs an event loop would give a slow database up sooner.
            ledger = await self._opened_ledger(stack)
            pins = stack.enter_context(await to_thread.run_sync(PinStore, self.config.pins_location()))
            config = await to_thread.run_sync(check_identities, ledger, self._served(self.config))
            state = self.config.state_location() if self._ledger is None else StateLocation()
            renames = stack.enter_context(await to_thread.run_sync(partial(RenameStore, state, servers=())))
            self._audit = await stack.enter_async_context(auditing(config.settings.audit, state, pins))
            self._audit.started(config, version=__version__)
            self._audit.watch_state(state)
            approvals = self.config.state_location()
            states = self._states = RequestStates(approvals)
            stack.callback(states.close)
            if approvals.url is not None or (not approvals.is_memory and approvals.keys.is_external()):
                # A key that is not the other gateways' is found now, and a command that prints it blocks no call.
                await states.open()
            pool = await stack.enter_async_context(
                running_pool(
                    config,
                    self._mark_dirty,
                    self._on_event,
                    wait=0.0 if self._is_early else self._wait,
                    may_rest=True,
                    states=states,
                    sharing=self.sharing,
                    announce=self.list_changes.announce,
                )
            )
            self._pool = pool
            resting = len(self.config.enabled) - len(config.enabled)
            self._registry = Registry(
                pool,
                ledger,
                config.settings,
                self._today,
                pins=pins,
                approvals=approvals,
                states=states,
                renames=renames,
                resting=resting,
            )
            stack.callback(self._close_approvals)
            stack.push_async_callback(self._registry.end)
            self._registry.call_records.listen(self._on_call, arguments=True)
            self._audit.join(self._registry)
            if self.metrics is not None:
                self._registry.call_records.listen(self.metrics.record_call)
                self._registry.call_records.timer = self.metrics.record_request
                pool.operations.tell = self.metrics.record_server_request
                self.metrics.watch(RegistryStatus(self._registry, self._audit, pool.shown))
                await stack.enter_async_context(export_metrics(self.metrics, config.settings))
            if is_traced():
                self._registry.call_records.listen(describe_call)
            pool.joined, pool.shown.tell = self._registry.welcome, self._audit.shown
            stack.callback(self._registry.access.recording.close)
            self._registry.access.recording.open()
            self._dirty = anyio.Event()
            await self._registry.begin()
            # What is there at the start is no news.
            self._registry.other_changes()
            # The first of all views, whichever clients ask for: the names of the others follow those that it shows.
            spec = fixed_view(self._read(None), self.config.settings)
            tasks = await stack.enter_async_context(background())
            if self._is_early:
                await tasks.start(self._join, pool, spec)
            else:
                await self._registry.prepare(spec, Context())
                self._registry.view(spec)
                self._audit.look()
            tasks.start_soon(self._keep_fresh, tasks)
            tasks.start_soon(partial(self._registry.quotas.run, is_used=config.settings.quotas != Quotas()))
            stack.callback(self._close_endpoints)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._stack.__aexit__(kind, error, trace)

    async def _opened_ledger(self, stack: AsyncExitStack) -> Ledger:
        if self._ledger is not None:
            return self._ledger
        location, most = self.config.state_location(), self.config.settings.max_claims
        ledger = await to_thread.run_sync(partial(open_ledger, location, max_claims=most, patience=_PATIENCE))
        stack.callback(ledger.close)
        return ledger

    @property
    def registry(self) -> Registry:
        """What is behind the views. Raises `RuntimeError` before the gateway is entered."""
        if self._registry is None:
            message = "The gateway is not running. Use `async with Gateway(config) as gateway`."
            raise RuntimeError(message)
        return self._registry

    async def reload(self, config: Config) -> Reloaded:
        """Have another configuration from now on, and return what changed. No call is dropped.

        Servers whose entries are as they were keep their connections. One with another entry goes on until its
        successor is ready or has failed; it, and one that is gone, is ended when its last call is over, or after
        ``drain_timeout``. Clients are told of lists that changed.

        Raises `ConfigError` (also for a setting that cannot change now), `LedgerError` (``style_mismatch``,
        ``identity_mismatch``) and groups of these and of naming errors. Then nothing is changed.
        """
        registry, pool = self.registry, self._pool
        assert pool is not None  # noqa: S101 - there is one where there is a registry
        with self._audit.noting_refusal():
            async with self._reloading:
                changed = await take(registry, pool, self._served(self.config), self._served(config), self._guards)
                self.config = config
        self._audit.follow(config, changed)
        self._dirty.set()
        return changed

    @property
    def audit(self) -> Auditing:
        """The audit log, for events other than calls."""
        return self._audit

    @contextmanager
    def guarded(self, guard: Guard) -> Iterator[None]:
        """Have a guard look at each configuration that comes while the block lasts (`reload`)."""
        self._guards.append(guard)
        try:
            yield
        finally:
            self._guards.remove(guard)

    def _served(self, config: Config) -> Config:
        return config if self._servers is None else limited(config, self._servers)

    async def drain(self, timeout: float | None = None) -> bool:
        """Let no other request begin and wait until none runs or waits for its client; tells whether it was in time.

        For ``drain_delay`` of the configuration requests still begin; ``/readyz`` tells balancers to send no more.
        Every request counts that goes to a server, until its answer has left; lists are answered on.
        ``timeout`` is in seconds, ``drain_timeout`` of the configuration unless given.
        """
        drain_tracker = self.registry.drain_tracker
        drain_tracker.is_ending = True
        await anyio.sleep(self.config.settings.drain_delay)
        drain_tracker.close()
        with anyio.move_on_after(self.config.settings.drain_timeout if timeout is None else timeout):
            while self.unfinished:
                await drain_tracker.drained()
                if self._pool is not None:
                    await self._pool.suspended.none()
        return not self.unfinished

    async def break_off(self) -> None:
        """Break off what did not end within the time; clients are told so, if they are reached within a second."""
        self.registry.drain_tracker.break_off()
        with anyio.move_on_after(_LAST_WORDS):
            await self.registry.drain_tracker.drained()

    @property
    def unfinished(self) -> int:
        """How many requests run at servers or are being answered, and how many calls wait for their clients."""
        return self.registry.drain_tracker.running + (0 if self._pool is None else self._pool.suspended.count)

    async def _join(self, pool: ServerPool, spec: ViewSpec, *, task_status: TaskStatus[None]) -> None:
        async with self.registry.joining(spec):
            task_status.started()
            with anyio.move_on_after(math.inf if self._wait is None else self._wait):
                await pool.settled()
        self._audit.look()

    async def joined(self) -> None:
        """Wait until lists are answered, where the gateway was entered early."""
        await self.registry.joined.wait()

    async def settle(self) -> None:
        """Wait until each server is ready or has failed for now, so that `table` has all that there is to show."""
        registry = self.registry
        if self._pool is not None:
            await self._pool.settled()
        await registry.renew()

    @property
    def catalog(self) -> Catalog:
        """All tools that are known now."""
        return self.registry.catalog

    @property
    def main(self) -> str:
        """The path that is shown to who asks for none."""
        return MAIN if self._only is None else path_of(server=self._only)

    def table(self, path: str | None = None) -> NameTable:
        """Return the names that a path (`main` unless given) shows to who says nothing of itself.

        Raises `UnknownView`.
        """
        return self.registry.view(fixed_view(self._read(path), self.config.settings)).table

    @property
    def state_silence(self) -> float:
        """How many seconds ago the server that has the state answered last; 0 for a file and for memory."""
        return self._states.silence

    def status(self) -> Report:
        """Return how everything stands."""
        state, registered = self.config.state_location(), self.config.registered
        return Report(
            servers=tuple(ServerReport.of(upstream, registered) for upstream in self.registry.pool.values()),
            names=dict(self.table()),
            style=self.registry.style,
            ledger=None if self._ledger or state.is_memory else state.name,
        )

    def _read(self, path: str | None, principal: Principal | None = None) -> Asked:
        asked = asked_by(self.registry, path or self.main, principal)
        if self._only is not None and asked.server is None:
            message = f"Only server {self._only!r} is served here. Use {self.main}."
            raise UnknownView(message)
        return asked

    def endpoint(
        self, path: str | None = None, contexts: tuple[str, ...] = (), principal: Principal = LOCAL
    ) -> Endpoint:
        """Return the MCP server of a path (`main` unless given) for somebody, made at first need.

        Those who see the same share it. ``contexts`` are the context headers of who asks. Raises `UnknownView`, also
        for what there is only for others, and `ContextRefused` for headers that cannot be followed there.
        """
        asked = self._read(path, principal)
        self.registry.access.contexts.asked(asked.context, contexts)
        if asked not in self._endpoints:
            spec = fixed_view(asked, self.config.settings)
            self._endpoints[asked] = Endpoint(self.registry, spec, choosing(self.registry, asked), asked)
        return self._endpoints[asked]

    def release(self, endpoint: Endpoint) -> None:
        """Forget an endpoint that nobody uses; it is made anew when it is asked for."""
        self._endpoints = {asked: one for asked, one in self._endpoints.items() if one is not endpoint}

    async def _heard(self, server: str) -> None:
        if self._pool is not None and server in self._pool:
            await self._pool[server].read_anew()
            await self.registry.renew()
            while self.registry.stale:
                # Another replica writes its names.
                await anyio.sleep(_HASTE)
                await self.registry.renew()

    def _mark_dirty(self) -> None:
        # What is new is made beside the loop (`_keep_fresh`).
        self._dirty.set()

    async def _keep_fresh(self, tasks: TaskGroup) -> None:
        """Follow the servers at once, and the ledger every few seconds: it costs a look at the file."""
        while True:
            with anyio.move_on_after(_LOOK_EVERY):
                await self._dirty.wait()
            if self._dirty.is_set():
                self._dirty = anyio.Event()
                await self.registry.renew()
            else:
                await self.registry.caught_up()
            await self.registry.approving.catch_up()
            self._audit.look()
            changed, others = self.registry.changes(), self.registry.other_changes()
            if changed or others:
                tasks.start_soon(self._notify, changed, others)

    async def _notify(self, changed: frozenset[ViewSpec], others: frozenset[tuple[str, str]]) -> None:
        # Who lists again because of it may reach another replica.
        await self.list_changes.told()
        async with anyio.create_task_group() as tasks:
            for endpoint in list(self._endpoints.values()):
                tasks.start_soon(endpoint.notify, changed, others)

    def _close_approvals(self) -> None:
        # Another configuration may have opened them.
        self.registry.approving.close()

    def _close_endpoints(self) -> None:
        for endpoint in self._endpoints.values():
            endpoint.close()

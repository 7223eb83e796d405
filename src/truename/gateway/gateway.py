"""The gateway: servers behind it, views in front of it, and the ledger that keeps their names."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, Self

import anyio

from truename.catalog import Catalog
from truename.gateway.background import background
from truename.gateway.choice import fixed_view, main_view
from truename.gateway.endpoint import Endpoint
from truename.gateway.events import OnEvent, ignore_event
from truename.gateway.fleet import running_fleet
from truename.gateway.hub import Hub, utc_today
from truename.gateway.report import Report, ServerReport
from truename.gateway.views import MAIN, Asked, UnknownView, only_path, read_path
from truename.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import date
    from types import TracebackType

    from anyio.abc import TaskGroup

    from truename.config import Config
    from truename.gateway.sdk import Request
    from truename.gateway.upstream import Upstream
    from truename.gateway.views import ViewSpec
    from truename.naming import NameTable

__all__ = ["Gateway", "fetch_catalog"]

_LOOK_EVERY: Final = 2.0


class Gateway:
    """A running gateway, as an async context manager: inside, its servers are started and its names are known.

    ``on_event`` is told the progress while servers start, and later what happens to them. ``ledger`` is one to use
    instead of the configuration's. ``wait`` bounds, in seconds, how long entering waits for servers that are slow to
    start (None: until each is ready or has failed); they join when they are ready, and clients are told. ``only`` is
    the key of the one server to start: the others' views are not there then, nor is the one of all. ``today`` tells
    the day, until which old names are listed.

    Entering raises `LedgerError` (a damaged or busy file, ``style_mismatch``) and groups of naming errors; a server
    that fails raises nothing and stands in `status`.
    """

    def __init__(
        self,
        config: Config,
        *,
        on_event: OnEvent = ignore_event,
        ledger: Ledger | None = None,
        wait: float | None = None,
        only: str | None = None,
        today: Callable[[], date] = utc_today,
    ) -> None:
        self._wait = wait
        self._only = only
        self._today = today
        self.config = config
        self._on_event = on_event
        self._ledger = ledger
        self._endpoints: dict[Asked, Endpoint] = {}
        self._dirty = anyio.Event()
        self._stack = AsyncExitStack()
        self._hub: Hub | None = None

    async def __aenter__(self) -> Self:
        ledger = self._ledger or _open_ledger(self.config)
        async with AsyncExitStack() as stack:
            config = self.config if self._only is None else _alone(self.config, self._only)
            fleet = await stack.enter_async_context(
                running_fleet(config, self._mark_dirty, self._on_event, wait=self._wait)
            )
            self._hub = Hub(fleet, ledger, self.config.settings, self._today)
            stack.callback(self._hub.rights.close)
            self._hub.rights.open_recording()
            self._dirty = anyio.Event()
            self._hub.rebuild()
            # What is there at the start is no news.
            self._hub.other_changes()
            self._hub.view(fixed_view(self._read(None), self.config.settings))
            tasks = await stack.enter_async_context(background())
            tasks.start_soon(self._keep_fresh, tasks)
            stack.callback(self._close_endpoints)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._stack.__aexit__(kind, error, trace)

    @property
    def hub(self) -> Hub:
        """What is behind the views. Raises `RuntimeError` before the gateway is entered."""
        if self._hub is None:
            message = "The gateway is not running. Use `async with Gateway(config) as gateway`."
            raise RuntimeError(message)
        return self._hub

    async def drain(self, timeout: float | None = None) -> bool:
        """Let no other call begin and wait until none runs; tells whether that was within the time.

        ``timeout`` is in seconds, ``drain_timeout`` of the configuration unless given.
        """
        traffic = self.hub.traffic
        traffic.close()
        with anyio.move_on_after(self.config.settings.drain_timeout if timeout is None else timeout):
            await traffic.drained()
        return traffic.running == 0

    async def settle(self) -> None:
        """Wait until each server is ready or has failed for now, so that `table` has all that there is to show."""
        for upstream in self.hub.fleet.values():
            await upstream.settled.wait()
        self.hub.catch_up()

    @property
    def catalog(self) -> Catalog:
        """All tools that are known now."""
        return self.hub.catalog

    @property
    def main(self) -> str:
        """The path that is shown to who asks for none."""
        return MAIN if self._only is None else only_path(self._only)

    def table(self, path: str | None = None) -> NameTable:
        """Return the names that a path (`main` unless given) shows to who says nothing of itself.

        Raises `UnknownView`.
        """
        return self.hub.view(fixed_view(self._read(path), self.config.settings)).table

    def status(self) -> Report:
        """Return how everything stands."""
        return Report(
            servers=tuple(_server_report(upstream) for upstream in self.hub.fleet.values()),
            names=dict(self.table()),
            style=self.hub.style,
            ledger=None if self._ledger else self.config.ledger_path(),
        )

    def _read(self, path: str | None) -> Asked:
        asked = read_path(path or self.main, self.hub.fleet, self.config.settings.contexts)
        if self._only is not None and asked.server is None:
            message = f"Only server {self._only!r} is served here. Use {self.main}."
            raise UnknownView(message)
        return asked

    def endpoint(self, path: str | None = None) -> Endpoint:
        """Return the MCP server of a path (`main` unless given), made at first need. Raises `UnknownView`."""
        asked = self._read(path)
        if asked not in self._endpoints:
            spec = fixed_view(asked, self.config.settings)
            is_fixed = asked.client is not None or asked.server is not None
            choose = _always(spec) if is_fixed else partial(main_view, settings=self.config.settings)
            self._endpoints[asked] = Endpoint(self.hub, spec, choose, asked.context)
        return self._endpoints[asked]

    def _mark_dirty(self) -> None:
        if self._hub is not None:
            self._hub.stale = True
        self._dirty.set()

    async def _keep_fresh(self, tasks: TaskGroup) -> None:
        """Follow the servers at once, and the ledger every few seconds: it costs a look at the file."""
        while True:
            with anyio.move_on_after(_LOOK_EVERY):
                await self._dirty.wait()
            self._dirty = anyio.Event()
            self.hub.catch_up()
            changed, others = self.hub.changes(), self.hub.other_changes()
            if changed or others:
                for endpoint in list(self._endpoints.values()):
                    tasks.start_soon(endpoint.notify, changed, others)

    def _close_endpoints(self) -> None:
        for endpoint in self._endpoints.values():
            endpoint.close()


def _alone(config: Config, key: str) -> Config:
    return replace(config, servers=tuple(server for server in config.servers if server.key == key))


async def fetch_catalog(config: Config, on_event: OnEvent = ignore_event) -> Catalog:
    """Start the servers, take what they list, and stop them.

    A server that fails is told through ``on_event`` and missing in the catalogue. The configuration's ledger, if there
    is one, is only read: its identities are kept.
    """
    path = config.ledger_path()
    bound = Ledger.open(path, readonly=True).bindings() if path is not None and path.exists() else None
    async with running_fleet(config, _ignore_change, on_event) as fleet:
        listed = {key: upstream.tools for key, upstream in fleet.items() if upstream.tools is not None}
        return Catalog.from_mcp(listed, config.settings.aliases, bound=bound, strict=False)


def _open_ledger(config: Config) -> Ledger:
    path = config.ledger_path()
    if path is None:
        return Ledger.memory(max_claims=config.settings.max_claims)
    return Ledger.open(path, max_claims=config.settings.max_claims)


def _always(spec: ViewSpec) -> Callable[[Request], ViewSpec]:
    def choose(_: Request) -> ViewSpec:
        return spec

    return choose


def _ignore_change() -> None:
    pass


def _server_report(upstream: Upstream) -> ServerReport:
    return ServerReport(
        key=upstream.key,
        state=upstream.state,
        tools=len(upstream.tools or ()),
        seconds=upstream.seconds,
        error=str(upstream.problem) if upstream.problem else None,
    )

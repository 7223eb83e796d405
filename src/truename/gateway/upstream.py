"""One upstream server, kept connected: started, listed, followed, restarted with patience, ended for good."""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING, Any, Final, Literal

import anyio
from mcp_types import (
    UNSUPPORTED_PROTOCOL_VERSION,
    Implementation,
)

from truename.gateway.background import background
from truename.gateway.events import Event, EventKind, OnEvent
from truename.gateway.exchange import Exchange
from truename.gateway.faults import UpstreamError, fault_within, printable, unavailable, unusable
from truename.gateway.following import Follower
from truename.gateway.limits import Calls
from truename.gateway.lists import NOTHING, Lists
from truename.gateway.news import News
from truename.gateway.opening import open_link
from truename.gateway.patience import Calm, Patience
from truename.gateway.questions import Questions
from truename.gateway.sdk import MCPError, RawSession

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from mcp.shared.dispatcher import ProgressFnT

    from truename.config import ServerConfig, Settings
    from truename.gateway.exchange import Definition
    from truename.gateway.holding import Holding
    from truename.gateway.isolation import Isolation
    from truename.gateway.link import Link
    from truename.gateway.questions import Asker

__all__ = ["Upstream"]

log: Final = logging.getLogger("truename.gateway")

State = Literal["starting", "ready", "reconnecting", "failed"]
_HEALTH_INTERVAL: Final = 30.0
_CALL_PATIENCE: Final = 2.0


class Upstream:
    """A supervised connection with one owner task (`run`); ``changed`` is called when its lists are other ones.

    ``tools`` is the last known list, which stays while the server is being reconnected; None was never seen. So do
    ``lists``, all others, and ``session``, what it said of itself. ``owner`` is the client whose own it is, if any;
    ``isolation`` has the connections that sessions have for themselves, where they do; ``holding`` the calls that wait.
    """

    def __init__(
        self,
        config: ServerConfig,
        settings: Settings,
        identity: Implementation,
        *,
        changed: Callable[[], None],
        on_event: OnEvent,
        owner: Asker | None = None,
    ) -> None:
        self.config = config
        self.tools: tuple[Definition, ...] | None = None
        self.lists: Lists = NOTHING
        self.session: RawSession | None = None
        self.problem: UpstreamError | None = None
        self.seconds: float | None = None
        self.settled = anyio.Event()
        self.settings = self._settings = settings
        self.isolation: Isolation | None = None
        self.holding: Holding | None = None
        self.follower = Follower(config.key, self._mark_dirty)
        self._owner = owner
        self._identity = identity
        self._changed = changed
        self._on_event = on_event
        self._exchange: Exchange | None = None
        self._up = anyio.Event()
        self._patience = Patience()
        self._calls = Calls(config, settings, self._reached, self._doubt)
        self._calm = Calm()
        self._news = News()
        self._suspect = anyio.Event()
        self._dirty = anyio.Event()
        self._probe = True
        self._greet_anew = False

    @property
    def key(self) -> str:
        """The server's key in the configuration."""
        return self.config.key

    @property
    def state(self) -> State:
        """Where the connection stands."""
        if self._exchange is not None:
            return "ready"
        if self.tools is not None:
            return "reconnecting"
        return "failed" if self.problem is not None else "starting"

    def offers(self, capability: str) -> bool:
        """Whether the server has this; one that is only starting may have it."""
        return self.state == "starting" if self.session is None else self.session.offers(capability)

    def lacks(self, capability: str) -> bool:
        """Whether the server runs and says that it does not have this."""
        return self.state == "ready" and not self.offers(capability)

    async def request(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        capabilities: Mapping[str, Any],
        on_progress: ProgressFnT | None,
        asker: Asker | None = None,
    ) -> dict[str, Any]:
        """Forward a request, waiting a moment for a server that is just being restarted.

        Without an ``asker`` nobody can be asked anything meanwhile.

        Raises `UpstreamError` and, for errors that the server itself sends, `MCPError`.
        """

        def once(exchange: Exchange, timeout: float) -> Awaitable[dict[str, Any]]:
            return exchange.request(
                method, params, timeout=timeout, capabilities=capabilities, on_progress=on_progress, asker=asker
            )

        return await self._calls.send(method, params, once)

    async def _reached(self) -> Exchange:
        if self._exchange is not None and self._exchange.closed:
            self._withdraw()
        if self._exchange is None:
            self._patience.hurry()
            with anyio.move_on_after(_CALL_PATIENCE):
                await self._up.wait()
        if self._exchange is not None:
            return self._exchange
        raise unavailable(self.key, self.problem)

    async def run(self) -> None:
        """Keep the server connected until cancelled."""
        self._tell("start")
        while True:
            self._patience.begin()
            self._greet_anew = False
            await self._connect()
            if not self._greet_anew:
                await self._patience.pause(self.problem)

    async def _connect(self) -> None:
        """Open one connection and stay with it until it is lost. Notes what went wrong; raises nothing."""
        try:
            async with (
                open_link(self.config, self._settings, self._news) as link,
                RawSession.over(
                    link.streams, self._identity, self._on_message, Questions(link.origins, self._owner)
                ) as session,
            ):
                exchange = Exchange(self.key, link, session, self._news, self._settings)
                problem = await self._greet(link, session, exchange)
                # Noted before the program is ended, which may take seconds.
                self._down(problem or await self._stay(link, session, exchange))
        except Exception as error:  # whatever a server brings about must not end the others
            found = fault_within(error)
            if found is None:
                log.debug("server %r", printable(self.key), exc_info=error)
                found = unusable(self.key, error)
            self._down(found)

    async def _greet(self, link: Link, session: RawSession, exchange: Exchange) -> UpstreamError | None:
        limit = self._settings.startup_timeout
        try:
            with anyio.fail_after(limit):
                await session.negotiate(probe=self._probe)
                tools, lists = await exchange.list_all(self.lists)
        except TimeoutError:
            return UpstreamError(
                server=self.key,
                kind="timeout",
                problem=f"did not answer within {limit:g} seconds of its start",
                remedy="Start it by hand to see why, or raise startup_timeout.",
                output=link.tail.lines(),
            )
        except UpstreamError as error:
            return error
        except (MCPError, RuntimeError, ValueError) as error:
            # Some older servers end when their first message is not the handshake, or refuse it then.
            is_refused = isinstance(error, MCPError) and error.code == UNSUPPORTED_PROTOCOL_VERSION
            if self._probe and (link.closed.is_set() or is_refused):
                self._probe, self._greet_anew = False, True
            if isinstance(error, MCPError):
                return exchange.explain_start(error)
            return exchange.protocol_fault(f"greets wrongly ({printable(str(error), 200)})")
        if self.config.url is None:
            self._probe = session.modern
        self.session = session
        self._ready(exchange, tools, lists)
        return None

    def _ready(self, exchange: Exchange, tools: tuple[Definition, ...], lists: Lists) -> None:
        self._exchange, self.problem = exchange, None
        self.seconds = self._patience.seconds
        self._suspect, self._dirty = anyio.Event(), anyio.Event()
        self._up.set()
        self._calls.breaker.revive()
        self._admit(tools, lists)
        self._tell("ready", tools=len(tools), seconds=self.seconds)
        self.settled.set()

    def _admit(self, tools: tuple[Definition, ...], lists: Lists) -> bool:
        if (tools, lists) == (self.tools, self.lists):
            return False
        self.tools, self.lists = tools, lists
        self._changed()
        return True

    def _withdraw(self) -> None:
        # Whoever waits already waits for the event that the next connection sets.
        if self._exchange is not None:
            self._exchange, self._up = None, anyio.Event()

    def _down(self, problem: UpstreamError) -> None:
        self._withdraw()
        if self._greet_anew:
            return
        known, was_ready = self.problem, self.problem is None and self.settled.is_set()
        self.problem = problem
        if not was_ready:
            self.seconds = self._patience.seconds
        if known is None or known.problem != problem.problem:
            log.warning("%s", problem)
            self._tell("lost" if was_ready else "failed", seconds=self.seconds, text=str(problem))
        self.settled.set()

    async def _stay(self, link: Link, session: RawSession, exchange: Exchange) -> UpstreamError:
        lost = anyio.Event()
        async with background() as tasks:
            tasks.start_soon(self.follower.follow, session)
            tasks.start_soon(self._refresh, exchange)
            tasks.start_soon(self._watch_health, exchange, lost)
            tasks.start_soon(self._calls.look_after, exchange)
            tasks.start_soon(link.watch, lost)
            await lost.wait()
        return UpstreamError(
            server=self.key,
            kind="ended",
            problem=link.ending() if link.closed.is_set() else "lost the connection",
            remedy="It is being restarted.",
            output=link.tail.lines(),
        )

    async def _refresh(self, exchange: Exchange) -> None:
        while True:
            await self._dirty.wait()
            await anyio.sleep(self._calm.delay())
            self._dirty = anyio.Event()
            try:
                with anyio.fail_after(self._settings.startup_timeout):
                    tools, lists = await exchange.list_all(self.lists)
            except (UpstreamError, TimeoutError) as error:
                text = f"server {printable(self.key)!r}: its lists can't be listed anew: {error or 'it took too long'}"
                self._news.tell("anew", text)
                continue
            if self._admit(tools, lists):
                self._tell("changed", tools=len(tools))

    async def _watch_health(self, exchange: Exchange, lost: anyio.Event) -> None:
        """Find out whether a connection still works: after a lost call, and for HTTP now and then."""
        interval = _HEALTH_INTERVAL if self.config.url is not None else math.inf
        while True:
            with anyio.move_on_after(interval):
                await self._suspect.wait()
            self._suspect = anyio.Event()
            if not await exchange.alive():
                lost.set()

    async def _on_message(self, message: object) -> None:
        await self.follower.heard(message, self.session)

    def _doubt(self) -> None:
        self._suspect.set()
        self._patience.hurry()

    def _mark_dirty(self) -> None:
        self._dirty.set()

    def _tell(self, kind: EventKind, *, tools: int | None = None, seconds: float | None = None, text: str = "") -> None:
        self._on_event(Event(kind=kind, server=self.key, tools=tools, seconds=seconds, text=text))

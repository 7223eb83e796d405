"""One upstream server, kept connected: started, listed, followed, restarted with patience, ended for good."""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING, Any, Final, Literal

import anyio
from mcp_types import Implementation, ToolListChangedNotification

from truename.gateway.background import background
from truename.gateway.events import Event, EventKind, OnEvent
from truename.gateway.exchange import Exchange
from truename.gateway.faults import UpstreamError, fault_within, printable
from truename.gateway.http_link import open_http
from truename.gateway.news import News
from truename.gateway.patience import Calm, Patience
from truename.gateway.sdk import MCPError, RawSession
from truename.gateway.stdio import open_stdio

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractAsyncContextManager

    from mcp.shared.dispatcher import ProgressFnT

    from truename.config import ServerConfig, Settings
    from truename.gateway.exchange import Definition
    from truename.gateway.link import Link

__all__ = ["Upstream"]

log: Final = logging.getLogger("truename.gateway")

State = Literal["starting", "ready", "reconnecting", "failed"]
_HEALTH_INTERVAL: Final = 30.0
_CALL_PATIENCE: Final = 2.0
_RELISTEN_DELAY: Final = 1.0


class Upstream:
    """A supervised connection with one owner task (`run`); ``changed`` is called when its tools are other ones.

    ``tools`` is the last known list, which stays while the server is being reconnected; None was never seen.
    """

    def __init__(
        self,
        config: ServerConfig,
        settings: Settings,
        identity: Implementation,
        *,
        changed: Callable[[], None],
        on_event: OnEvent,
    ) -> None:
        self.config = config
        self.tools: tuple[Definition, ...] | None = None
        self.problem: UpstreamError | None = None
        self.seconds: float | None = None
        self.settled = anyio.Event()
        self._settings = settings
        self._identity = identity
        self._changed = changed
        self._on_event = on_event
        self._exchange: Exchange | None = None
        self._up = anyio.Event()
        self._patience = Patience()
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

    async def call(
        self, params: Mapping[str, Any], *, capabilities: Mapping[str, Any], on_progress: ProgressFnT | None
    ) -> dict[str, Any]:
        """Forward a tools/call, waiting a moment for a server that is just being restarted.

        Raises `UpstreamError` and, for errors that the server itself sends, `MCPError`.
        """
        exchange = await self._reached()
        timeout = self.config.timeout or self._settings.call_timeout
        try:
            return await exchange.call(params, timeout=timeout, capabilities=capabilities, on_progress=on_progress)
        except UpstreamError as error:
            if error.kind in {"unreachable", "lost"}:
                self._suspect.set()
            raise

    async def _reached(self) -> Exchange:
        if self._exchange is not None and self._exchange.closed:
            self._withdraw()
        if self._exchange is None:
            self._patience.hurry()
            with anyio.move_on_after(_CALL_PATIENCE):
                await self._up.wait()
        if self._exchange is not None:
            return self._exchange
        cause = f" ({self.problem.problem})" if self.problem else ""
        raise UpstreamError(
            server=self.key,
            kind="unreachable",
            problem=f"is not available now{cause}; nothing was run",
            remedy="It is being restarted: try again later, or use another tool.",
        )

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
                self._open() as link,
                RawSession.over(link.streams, self._identity, self._on_message) as session,
            ):
                exchange = self._exchange_over(link, session)
                problem = await self._greet(link, session, exchange)
                # Noted before the program is ended, which may take seconds.
                self._down(problem or await self._stay(link, session, exchange))
        except Exception as error:  # whatever a server brings about must not end the others
            found = fault_within(error)
            if found is None:
                log.debug("server %r", printable(self.key), exc_info=error)
                problem_text = f"can't be used ({type(error).__name__}: {printable(str(error), 200)})"
                found = UpstreamError(
                    server=self.key,
                    kind="protocol",
                    problem=problem_text,
                    remedy="Report it to the server's authors.",
                )
            self._down(found)

    def _exchange_over(self, link: Link, session: RawSession) -> Exchange:
        limits = self._settings
        return Exchange(self.key, link, session, self._news, max_tools=limits.max_tools, max_bytes=limits.max_result)

    def _open(self) -> AbstractAsyncContextManager[Link]:
        if self.config.type == "sse":
            raise UpstreamError(
                server=self.key,
                kind="protocol",
                problem="is configured for the old SSE transport, which is not supported yet",
                remedy='Use its streamable HTTP address and "type": "http".',
            )
        if self.config.url is not None:
            timeout = self.config.timeout or self._settings.call_timeout
            return open_http(self.config, self._settings.max_result, timeout)
        return open_stdio(self.config, self._settings.max_result, self._news)

    async def _greet(self, link: Link, session: RawSession, exchange: Exchange) -> UpstreamError | None:
        limit = self._settings.startup_timeout
        try:
            with anyio.fail_after(limit):
                await session.negotiate(probe=self._probe)
                tools = await exchange.list_tools()
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
            # Some older servers end when their first message is not the handshake: greet them their way.
            if self._probe and link.closed.is_set():
                self._probe, self._greet_anew = False, True
            if isinstance(error, MCPError):
                return exchange.explain_start(error)
            return exchange.protocol_fault(f"greets wrongly ({printable(str(error), 200)})")
        if self.config.url is None:
            self._probe = session.modern
        self._ready(exchange, tools)
        return None

    def _ready(self, exchange: Exchange, tools: tuple[Definition, ...]) -> None:
        self._exchange, self.problem = exchange, None
        self.seconds = self._patience.seconds
        self._suspect, self._dirty = anyio.Event(), anyio.Event()
        self._up.set()
        self._admit(tools)
        self._tell("ready", tools=len(tools), seconds=self.seconds)
        self.settled.set()

    def _admit(self, tools: tuple[Definition, ...]) -> bool:
        if tools == self.tools:
            return False
        self.tools = tools
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
            tasks.start_soon(self._follow, session)
            tasks.start_soon(self._refresh, exchange)
            tasks.start_soon(self._watch_health, exchange, lost)
            tasks.start_soon(_watch_end, link, lost)
            await lost.wait()
        return UpstreamError(
            server=self.key,
            kind="ended",
            problem=link.ending() if link.closed.is_set() else "lost the connection",
            remedy="It is being restarted.",
            output=link.tail.lines(),
        )

    async def _follow(self, session: RawSession) -> None:
        """Subscribe to changes in the stateless era; in the others they come by themselves (`_on_message`)."""
        while session.modern and session.announces_changes:
            await session.listen(self._mark_dirty)
            await anyio.sleep(_RELISTEN_DELAY)

    async def _refresh(self, exchange: Exchange) -> None:
        while True:
            await self._dirty.wait()
            await anyio.sleep(self._calm.delay())
            self._dirty = anyio.Event()
            try:
                with anyio.fail_after(self._settings.startup_timeout):
                    tools = await exchange.list_tools()
            except (UpstreamError, TimeoutError) as error:
                text = f"server {printable(self.key)!r}: its tools can't be listed anew: {error or 'it took too long'}"
                self._news.tell("anew", text)
                continue
            if self._admit(tools):
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
        if isinstance(message, ToolListChangedNotification):
            self._mark_dirty()

    def _mark_dirty(self) -> None:
        self._dirty.set()

    def _tell(self, kind: EventKind, *, tools: int | None = None, seconds: float | None = None, text: str = "") -> None:
        self._on_event(Event(kind=kind, server=self.key, tools=tools, seconds=seconds, text=text))


async def _watch_end(link: Link, lost: anyio.Event) -> None:
    await link.closed.wait()
    lost.set()

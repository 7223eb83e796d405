"""One upstream server, kept connected: started, listed, followed, restarted with patience, ended for good."""

from __future__ import annotations

import logging
import math
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import anyio

from truename.gateway.background import background
from truename.gateway.elicitation.request_states import RequestStates
from truename.gateway.elicitation.router import ElicitationRouter
from truename.gateway.protocol.errors import MCPError
from truename.gateway.upstream.announced import Announced
from truename.gateway.upstream.following import Follower
from truename.gateway.upstream.limits import PAUSE, Calls
from truename.gateway.upstream.listed import Listed
from truename.gateway.upstream.negotiating import Negotiation
from truename.gateway.upstream.opening import Opening
from truename.gateway.upstream.replacing import limits_of
from truename.gateway.upstream.server_connection import ServerConnection
from truename.gateway.upstream.server_history import ServerHistory
from truename.gateway.upstream.session import InvalidGreeting, Notification, ServerSession
from truename.gateway.upstream.transport import TransportError
from truename.gateway.upstream_errors import (
    UpstreamError,
    fault_within,
    needs_login,
    printable,
    unavailable,
    unset,
    unusable,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from truename.config import ServerConfig, Settings
    from truename.gateway.elicitation.router import Asker, User
    from truename.gateway.elicitation.suspended_calls import SuspendedCalls
    from truename.gateway.events import OnEvent
    from truename.gateway.protocol.definitions import Definition
    from truename.gateway.protocol.progress import ReportProgress
    from truename.gateway.upstream.handshake import HandshakeConnection
    from truename.gateway.upstream.isolation import Isolation
    from truename.gateway.upstream.known import Before
    from truename.gateway.upstream.lists import Lists
    from truename.gateway.upstream.negotiating import Handshake
    from truename.gateway.upstream.outside import Outside
    from truename.gateway.upstream.transport import Transport

__all__ = ["Upstream"]

log: Final = logging.getLogger("truename.gateway")

_HEALTH_INTERVAL: Final = 30.0
CALL_WAIT: Final = 2.0
_LAST_WORD: Final = 0.5


class Upstream(Listed):
    """A supervised connection with one owner task (`run`); ``changed`` is called when its lists are other ones.

    ``outside`` is what all connections have in common; ``owner`` is the client whose own it is, if any;
    ``isolation`` has the connections that sessions have for themselves, where they do; ``holding`` the calls that wait;
    ``second`` is the connection for clients of the handshake eras, where those share this one.
    """

    def __init__(
        self,
        config: ServerConfig,
        settings: Settings,
        identity: Mapping[str, Any],
        *,
        changed: Callable[[], None],
        on_event: OnEvent,
        outside: Outside,
        owner: Asker | User | None = None,
        handshake: Handshake = "last",
    ) -> None:
        super().__init__(config, settings, changed=changed, on_event=on_event, is_own=owner is not None)
        self.isolation: Isolation | None = None
        self.second: HandshakeConnection | None = None
        self.suspended: SuspendedCalls | None = None
        # Whatever is heard comes of the connection that was opened last.
        self.program_run = ""
        self.history = ServerHistory()
        self.states = RequestStates()
        self.follower = Follower(config.key, self._mark_dirty)
        self._owner = owner
        self._identity = identity
        self._opening = Opening(outside)
        self._reloaded, self._suspect = anyio.Event(), anyio.Event()
        self._calls = Calls(config, settings, self._doubt)
        self._negotiation = Negotiation(handshake)
        self._greet_anew = False

    @property
    def calls(self) -> Calls:
        """How many may run and wait here, and whether it is left alone."""
        return self._calls

    def reload(self, config: ServerConfig, settings: Settings) -> None:
        """Have other limits from the next call on, on the connection that there is."""
        before = limits_of(self.config, self.settings)
        self.config, self.settings = config, settings
        if limits_of(config, settings) != before:
            self._calls = Calls(config, settings, self._doubt)
        self._reloaded.set()
        if not self.is_lazy:
            self.idle_shutdown.wake()

    async def request(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        capabilities: Mapping[str, Any],
        on_progress: ReportProgress | None,
        asker: Asker | None = None,
        before: Before | None = None,
    ) -> dict[str, Any]:
        """Forward a request, waiting a moment for a server that is just being restarted.

        Without an ``asker`` nobody can be asked anything meanwhile. ``before`` is awaited once the server is there,
        each time that the request is about to be sent; what it raises keeps it from being sent. So does another run
        of the program than the one that the asker wants (`OtherRunError`).

        Raises `UpstreamError` and, for errors that the server itself sends, `MCPError`.
        """
        calls = self._calls
        limits = calls.limits(method, params, repeatable=None if asker is None else asker.repeatable)
        permit = await calls.permit(limits)
        try:
            for attempt in count(1):
                admission = calls.admit()
                try:
                    connection = self._connection
                    if connection is None or connection.closed:
                        connection = await self._reached()
                    if before is not None:
                        await before(self)
                    if asker is not None:
                        asker.run.reach(connection.run)
                    result = await connection.request(
                        method,
                        params,
                        timeout=limits.timeout,
                        capabilities=capabilities,
                        on_progress=on_progress,
                        asker=asker,
                        permit=permit,
                    )
                except UpstreamError as error:
                    if not calls.failed(admission, error, limits) or attempt == limits.attempts:
                        raise
                except MCPError:
                    calls.breaker.succeeded(admission)
                    raise
                except BaseException:
                    calls.breaker.abandoned(admission)
                    raise
                else:
                    calls.breaker.succeeded(admission)
                    return result
                await anyio.sleep(PAUSE * attempt)
        finally:
            permit.leave()
        raise AssertionError("unreachable")

    async def _reached(self) -> ServerConnection:
        if self._connection is not None and self._connection.closed:
            self._withdraw()
        if self._connection is None:
            self._backoff.hurry()
            with anyio.move_on_after(0 if self.config.unset or needs_login(self.problem) else CALL_WAIT):
                await self._up.wait()
        if self._connection is not None:
            return self._connection
        raise unavailable(self.key, self.problem)

    async def run(self) -> None:
        """Keep the server connected until cancelled, or as long as it is wanted."""
        if self.config.unset:
            # Nothing changes before another entry does, and that gets a connection of its own.
            self._down(unset(self.key, self.config.unset))
            await anyio.sleep_forever()
        if (before := self._recalled()) is None:
            self._tell("start")
        else:
            self._admit(before.tools, before.lists)
            self._tell("resting", tools=len(before.tools))
            self.settled.set()
        while True:
            # One that cannot be started is not tried again before somebody wants it.
            if self.may_rest:
                await self.idle_shutdown.over()
            self.idle_shutdown.is_on = False
            self._backoff.begin()
            self._greet_anew = False
            await self._connect()
            if not self._greet_anew and not self.idle_shutdown.is_on:
                await self._backoff.pause(self.problem)

    async def _connect(self) -> None:
        """Open one connection and stay with it until it is lost. Notes what went wrong; raises nothing."""
        try:
            async with (
                self._opening.transport(
                    self.config, self.settings, self._log, self._negotiation.handshake
                ) as transport,
                ServerSession.over(
                    transport, self._identity, self._on_message, ElicitationRouter(self._owner)
                ) as session,
            ):
                self._opening.measure(session, self.key)
                self.program_run, self.history.tail = transport.run, transport.tail
                connection = ServerConnection(self.key, transport, session, self._log, self.settings)
                problem = await self._greet(transport, session, connection)
                # Noted before the program is ended, which may take seconds.
                self._down(problem or await self._stay(transport, session, connection))
        except Exception as error:  # whatever a server brings about must not end the others
            found = fault_within(error)
            if found is None:
                log.debug("server %r", printable(self.key), exc_info=error)
                found = unusable(self.key, error)
            self._down(found)

    async def _greet(
        self, transport: Transport, session: ServerSession, connection: ServerConnection
    ) -> UpstreamError | None:
        limit = self.settings.startup_timeout
        try:
            with anyio.fail_after(limit):
                greeting = self._negotiation.agree(session, transport)
                # A program may take its time to start, and another one would take as long.
                await (greeting if self.config.url is None else self._backoff.answered(greeting))
                self._announced = Announced()
                async with self._announced.reading():
                    tools, lists = await connection.list_all(self.lists)
        except TimeoutError as error:
            return transport.silent(self.key, error.args[0] if error.args else limit)
        except UpstreamError as error:
            return error
        except (MCPError, TransportError, InvalidGreeting) as error:
            if isinstance(error, TransportError) and self.config.url is None:
                # Whoever shares a program hears of its end a moment after what it left unanswered.
                with anyio.move_on_after(_LAST_WORD):
                    await transport.closed.wait()
            refusal = None if isinstance(error, InvalidGreeting) else connection.explain_start(error)
            self._greet_anew = self._negotiation.changes(error, transport, refusal)
            if refusal is not None:
                self._greet_anew |= self._opening.falls_back(transport, refusal)
                return refusal
            return connection.protocol_fault(f"sent an invalid initialize result ({printable(str(error), 200)})")
        if self.config.url is None:
            self._negotiation.agreed(session)
        self.session = session
        self.follower.begin(session, connection.explain, transport.listens)
        self._ready(connection, tools, lists)
        self._keep(session)
        return None

    def _ready(self, connection: ServerConnection, tools: tuple[Definition, ...], lists: Lists) -> None:
        self._connection, self.problem = connection, None
        self.history.started()
        self.seconds = self._backoff.seconds
        self._suspect = anyio.Event()
        self._up.set()
        self._calls.breaker.revive()
        self._admit(tools, lists)
        self.idle_shutdown.tried()
        self._tell("ready", tools=len(tools), seconds=self.seconds)
        self.settled.set()

    def _down(self, problem: UpstreamError) -> None:
        self._withdraw()
        if self._greet_anew or self.idle_shutdown.is_on:
            return
        self.idle_shutdown.tried()
        known, was_ready = self.problem, self.problem is None and self.session is not None
        self.problem = problem
        self.history.failed(problem, was_ready=was_ready)
        if not was_ready:
            self.seconds = self._backoff.seconds
        is_news = known is None or known.problem != problem.problem
        if is_news and not self._opening.is_over(self.config):
            # Most servers of one era alone refuse the other, and nothing is lost by that.
            log.log(logging.DEBUG if self._negotiation.handshake == "only" else logging.WARNING, "%s", problem)
            self._tell("lost" if was_ready else "failed", seconds=self.seconds, text=str(problem))
        self.settled.set()

    async def _stay(self, transport: Transport, session: ServerSession, connection: ServerConnection) -> UpstreamError:
        lost = anyio.Event()
        async with background() as tasks:
            tasks.start_soon(self.follower.follow, session)
            tasks.start_soon(self._refresh, connection)
            tasks.start_soon(self._watch_health, connection, lost)
            tasks.start_soon(self._look_after, connection, lost)
            tasks.start_soon(transport.watch, lost)
            await lost.wait()
        return transport.lost(self.key)

    async def _look_after(self, connection: ServerConnection, lost: anyio.Event) -> None:
        while True:
            self._reloaded = anyio.Event()
            async with background() as tasks:
                tasks.start_soon(self._calls.look_after, connection)
                tasks.start_soon(self._shut_down_when_idle, self.follower, lost)
                await self._reloaded.wait()

    async def _watch_health(self, connection: ServerConnection, lost: anyio.Event) -> None:
        """Find out whether a connection still works: after a lost call, and for HTTP now and then."""
        interval = _HEALTH_INTERVAL if self.config.url is not None else math.inf
        while True:
            with anyio.move_on_after(interval):
                await self._suspect.wait()
            self._suspect = anyio.Event()
            if not await connection.alive():
                lost.set()

    async def _on_message(self, message: Notification) -> None:
        await self.follower.heard(message, self.session)

    def _doubt(self) -> None:
        self._suspect.set()
        self._backoff.hurry()

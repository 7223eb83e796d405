"""The calls of one server: how many at a time, how long each may take, which are repeated, and when none is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import anyio

from truename.catalog.globs import Globs
from truename.gateway.background import background
from truename.gateway.faults import UpstreamError, printable
from truename.gateway.protocol.sdk import MCPError
from truename.gateway.questions.semaphore import Semaphore
from truename.gateway.upstream.circuit_breaker import CircuitBreaker

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from truename.config import ServerConfig, Settings
    from truename.gateway.questions.semaphore import Permit
    from truename.gateway.upstream.server_connection import ServerConnection

    Once = Callable[[ServerConnection, float, Permit], Awaitable[dict[str, Any]]]

__all__ = ["Calls"]

_ATTEMPTS: Final = 3
_PAUSE: Final = 0.1
CHECK_INTERVAL: Final = 0.5
_SIGN_OF_LIFE: Final = 2.0
# The connection went, or there was none: another attempt may find the server well again.
_REPEATED: Final = frozenset({"lost", "unreachable"})
# What a server does wrong with a single answer says nothing of the next.
_BLAMELESS: Final = frozenset({"too_large", "question"})
# It waits for the end of a task, which may take hours: it has permits of its own, and is no sign of a server's illness.
_LONG: Final = "tasks/result"


class Calls:
    """Sends requests to one server, as many as it can stand.

    ``reached`` gives the connection to send over, ``suspect`` is called when a connection seems to be lost or
    is missed.
    """

    def __init__(
        self,
        config: ServerConfig,
        settings: Settings,
        reached: Callable[[], Awaitable[ServerConnection]],
        suspect: Callable[[], None],
    ) -> None:
        self._key = config.key
        self._reached = reached
        self._suspect = suspect
        self._most = config.max_concurrent or settings.max_concurrent
        self._most_waiting = config.max_waiting or settings.max_waiting
        self._semaphore = Semaphore(self._most)
        self._long_semaphore = Semaphore(self._most)
        self._timeout = config.timeout or settings.call_timeout
        self._timeouts = config.tool_timeouts
        self._timed = Globs(config.tool_timeouts)
        self._idempotent = Globs(config.idempotent)
        self._problem = ""
        self.breaker = CircuitBreaker(failures=settings.breaker_failures, seconds=settings.breaker_seconds)

    def share(self, other: Calls) -> None:
        """Count the calls here and those of another connection to the same server together."""
        self._semaphore, self._long_semaphore = other._semaphore, other._long_semaphore

    @property
    def waiting(self) -> int:
        """How many wait for a place."""
        return self._semaphore.waiting + self._long_semaphore.waiting

    async def send(
        self, method: str, params: Mapping[str, Any], once: Once, repeatable: bool | None = None
    ) -> dict[str, Any]:
        """Send a request by ``once(connection, timeout, permit)``; again only if its tool is marked as idempotent.

        ``repeatable`` goes before what the server's entry says of its tools.

        Raises `UpstreamError` (busy, if too many wait; unreachable, while the server is left alone; what ``once``
        raises) and, for errors that the server itself sends, `MCPError`.
        """
        tool = str(params.get("name")) if method == "tools/call" else ""
        timeout = self._timeout
        if tool and self._timeouts and (glob := self._timed.first(tool)):
            timeout = self._timeouts[glob]
        may_repeat = bool(tool) and (bool(self._idempotent.first(tool)) if repeatable is None else repeatable)
        attempts = _ATTEMPTS if may_repeat else 1
        semaphore = self._long_semaphore if method == _LONG else self._semaphore
        permit = semaphore.take_at_once() if self.breaker.state != "open" else None
        if permit is None:
            permit = await self._wait(timeout, semaphore)
        try:
            for attempt in range(1, attempts):
                try:
                    return await self._attempt(method, once, timeout, permit)
                except UpstreamError as error:
                    if error.kind not in _REPEATED or self.breaker.state == "open":
                        raise
                await anyio.sleep(_PAUSE * attempt)
            return await self._attempt(method, once, timeout, permit)
        finally:
            permit.leave()

    async def _wait(self, timeout: float, semaphore: Semaphore) -> Permit:
        """Wait for a permit; whoever waits for one waits in the order of their coming."""
        if self.breaker.state == "open":
            raise self._left_alone()
        waiting = semaphore.waiting
        if not semaphore.free and waiting >= self._most_waiting:
            raise self._busy(f"{self._most:,} calls are running there and {waiting:,} are waiting")
        try:
            with anyio.fail_after(timeout):
                return await semaphore.take()
        except TimeoutError as error:
            raise self._busy(
                f"{self._most:,} calls are running there, and none ended for {timeout:g} seconds"
            ) from error

    async def _attempt(self, method: str, once: Once, timeout: float, permit: Permit) -> dict[str, Any]:
        admission = self.breaker.admit()
        if admission is None:
            raise self._left_alone()
        try:
            result = await once(await self._reached(), timeout, permit)
        except UpstreamError as error:
            if error.kind in _BLAMELESS or (method == _LONG and error.kind == "timeout"):
                self.breaker.succeeded(admission)
            else:
                self._problem = error.problem
                self.breaker.failed(admission)
            if error.kind in _REPEATED:
                self._suspect()
            raise
        except MCPError:
            self.breaker.succeeded(admission)
            raise
        except BaseException:
            self.breaker.abandoned(admission)
            raise
        self.breaker.succeeded(admission)
        return result

    def _left_alone(self) -> UpstreamError:
        # Wanted all the same: a restart is not to be put off.
        self._suspect()
        return UpstreamError(
            server=self._key,
            kind="unreachable",
            problem=f"failed {self.breaker.failures:,} times in a row, so its circuit breaker is open; this call was"
            f" not sent (the last one: {printable(self._problem, 200)})",
            remedy="It is retried automatically: try again later, or use another tool.",
        )

    def _busy(self, cause: str) -> UpstreamError:
        return UpstreamError(
            server=self._key,
            kind="busy",
            problem=f"is busy: {cause}; this call was not sent",
            remedy="Try again later, or raise max_concurrent or max_waiting if it can handle more.",
        )

    async def look_after(self, connection: ServerConnection) -> None:
        """While the server is left alone, ask now and then whether it is well again."""
        async with background() as tasks:
            while True:
                await anyio.sleep(CHECK_INTERVAL)
                if self.breaker.state != "closed":
                    # Not one after the other: one that is never answered must not hold the next up.
                    tasks.start_soon(self._look, connection)

    async def _look(self, connection: ServerConnection) -> None:
        if await connection.answers(_SIGN_OF_LIFE):
            self.breaker.revive()

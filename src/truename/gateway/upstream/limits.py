"""The calls of one server: how many at a time, how long each may take, which are repeated, and when none is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import anyio

from truename.catalog.globs import Globs
from truename.gateway.background import background
from truename.gateway.elicitation.semaphore import Semaphore
from truename.gateway.upstream.circuit_breaker import CircuitBreaker
from truename.gateway.upstream_errors import UpstreamError, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from truename.config import ServerConfig, Settings
    from truename.gateway.elicitation.semaphore import Permit
    from truename.gateway.upstream.circuit_breaker import BreakerPermit
    from truename.gateway.upstream.server_connection import ServerConnection

__all__ = ["PAUSE", "CallLimits", "Calls"]

_ATTEMPTS: Final = 3
# Before the second attempt, and twice that before the third.
PAUSE: Final = 0.1
CHECK_INTERVAL: Final = 0.5
_SIGN_OF_LIFE: Final = 2.0
# The connection went, or there was none: another attempt may find the server well again.
_REPEATED: Final = frozenset({"lost", "unreachable"})
# What a server does wrong with a single answer says nothing of the next, and what holds messages up is not its fault.
_BLAMELESS: Final = frozenset({"too_large", "question", "busy", "withheld"})
# It waits for the end of a task, which may take hours: it has permits of its own, and is no sign of a server's illness.
_LONG: Final = "tasks/result"


class CallLimits(NamedTuple):
    """What limits one call: its seconds, how often it may be sent, and the permits that it takes one of."""

    timeout: float
    attempts: int
    semaphore: Semaphore
    is_long: bool


class Calls:
    """The calls of one server. ``suspect`` is called when its connection seems to be lost or is missed."""

    def __init__(self, config: ServerConfig, settings: Settings, suspect: Callable[[], None]) -> None:
        self._key = config.key
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

    def limits(self, method: str, params: Mapping[str, Any], *, repeatable: bool | None) -> CallLimits:
        """Return what limits a call. ``repeatable`` goes before what the server's entry says of its tools."""
        tool = str(params.get("name")) if method == "tools/call" else ""
        timeout = self._timeout
        if tool and self._timeouts and (glob := self._timed.first(tool)):
            timeout = self._timeouts[glob]
        may_repeat = bool(tool) and (bool(self._idempotent.first(tool)) if repeatable is None else repeatable)
        is_long = method == _LONG
        semaphore = self._long_semaphore if is_long else self._semaphore
        return CallLimits(timeout, _ATTEMPTS if may_repeat else 1, semaphore, is_long)

    async def permit(self, limits: CallLimits) -> Permit:
        """Return a permit for a call; whoever has to wait for one waits in the order of their coming.

        Raises `UpstreamError`: busy, if too many wait or for too long; unreachable, while the server is left alone.
        """
        semaphore = limits.semaphore
        if self.breaker.state == "open":
            raise self._left_alone()
        if (permit := semaphore.take_at_once()) is not None:
            return permit
        waiting = semaphore.waiting
        if waiting >= self._most_waiting:
            raise self._busy(f"{self._most:,} calls are running there and {waiting:,} are waiting")
        try:
            with anyio.fail_after(limits.timeout):
                return await semaphore.take()
        except TimeoutError as error:
            raise self._busy(
                f"{self._most:,} calls are running there, and none ended for {limits.timeout:g} seconds"
            ) from error

    def admit(self) -> BreakerPermit:
        """Return the circuit breaker's leave to send a call. Raises `UpstreamError` while the server is left alone."""
        admission = self.breaker.admit()
        if admission is None:
            raise self._left_alone()
        return admission

    def failed(self, admission: BreakerPermit, error: UpstreamError, limits: CallLimits) -> bool:
        """Note a failure; return whether another attempt may find the server well again."""
        if error.kind in _BLAMELESS or (limits.is_long and error.kind == "timeout"):
            self.breaker.succeeded(admission)
        else:
            self._problem = error.problem
            self.breaker.failed(admission)
        if error.kind not in _REPEATED:
            return False
        self._suspect()
        return self.breaker.state != "open"

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

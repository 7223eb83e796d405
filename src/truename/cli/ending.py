"""How `truename serve` ends: what runs is let end, and a person is told of what was not."""

from __future__ import annotations

import contextlib
import signal
import sys
from typing import TYPE_CHECKING, Final

import anyio

from truename.cli.rendering import say, say_json
from truename.gateway import background

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractContextManager

    from truename.gateway import Gateway

    Signals = AsyncIterator[signal.Signals]

__all__ = ["Ending", "ending_signals"]

_REASONS: Final = {"time": "drain_timeout was over", "signal": "a second signal came"}


def ending_signals() -> AbstractContextManager[Signals | None]:
    """Receive the signals that end it; None where no event loop can, and Ctrl-C comes as `KeyboardInterrupt`."""
    if sys.platform == "win32":
        return contextlib.nullcontext()
    return anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Ending:
    """The end of one run. ``gateway`` is set once there is one; ``hang_up`` takes SIGHUP, if that is not the end."""

    def __init__(self, hang_up: Callable[[], bool], *, as_json: bool) -> None:
        self.gateway: Gateway | None = None
        self._hang_up = hang_up
        self._as_json = as_json
        self._reason: str | None = None
        self._left = 0

    async def wait(self, signals: Signals | None, scope: anyio.CancelScope) -> None:
        """Cancel all when a signal says so and what runs has ended, or a second signal comes."""
        if signals is None:
            return
        await self._told(signals)
        self._reason = "time"
        self._say_what_runs()
        async with background() as draining:
            draining.start_soon(self._end_at_next, signals, scope)
            if self.gateway is not None:
                await self.gateway.drain()
        await self._end(scope)

    async def _end(self, scope: anyio.CancelScope) -> None:
        self._left = self._count()
        if self._left and self.gateway is not None:
            await self.gateway.break_off()
        scope.cancel()

    def _count(self) -> int:
        return 0 if self.gateway is None else self.gateway.unfinished

    async def _told(self, signals: Signals) -> None:
        while await anext(signals) == signal.SIGHUP and self._hang_up():
            pass

    async def _end_at_next(self, signals: Signals, scope: anyio.CancelScope) -> None:
        await self._told(signals)
        self._reason = "signal"
        await self._end(scope)

    def _say_what_runs(self) -> None:
        if self.gateway is None or self._as_json or not (count := self._count()):
            return
        what = "the running call has" if count == 1 else f"the {count:,} running calls have"
        seconds = self.gateway.config.settings.drain_timeout
        with contextlib.suppress(OSError):
            say(f"Ending when {what} ended, in {seconds:g} seconds at the latest; at once at a second signal.")

    def status(self) -> int:
        """Say how it ended, if a signal ended it, and return the exit status: 1 where requests were broken off."""
        if self._reason is None:
            return 0
        # Where the terminal was closed there is nobody to tell.
        with contextlib.suppress(OSError):
            self._say_how(self._reason)
        return 1 if self._left else 0

    def _say_how(self, reason: str) -> None:
        if self._as_json:
            say_json({"ended": True, "broken_off": self._left})
        elif self._left:
            what = "1 call was" if self._left == 1 else f"{self._left:,} calls were"
            say(f"Ended. {what} broken off, as {_REASONS[reason]}: what they did is unknown.")
        else:
            say("Ended. No call was broken off.")

"""What runs through the gateway: counted until its answer has left, so that it can end without breaking one off."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import anyio

from truename.gateway.upstream_errors import UpstreamError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from truename.gateway.cancellation import Cancellation

__all__ = ["ANSWERS_KEY", "DrainTracker", "OutgoingAnswers", "count_on"]

# Where a request over HTTP (an ASGI scope) has its answers.
ANSWERS_KEY: Final = "truename.answers"


class OutgoingAnswers:
    """Answers on their way to a client, by what they are known by there, and what is done once one has left.

    ``begin`` counts one that was begun elsewhere, and returns what ends that.
    """

    def __init__(self, begin: Callable[[], Callable[[], None]] | None = None) -> None:
        self.is_over = False
        self._begin = begin
        self._then: dict[object, Callable[[], None]] = {}

    def count_on(self) -> None:
        """Count the answer that goes on here, until all have left."""
        if self._begin is not None:
            self.after(self, self._begin())

    def after(self, key: object, then: Callable[[], None]) -> None:
        """Have this done when the answer has left; at once if none leaves here any more."""
        if self.is_over:
            then()
        else:
            self._then[key] = then

    def left(self, key: object) -> None:
        """Note that an answer has left."""
        then = self._then.pop(key, None)
        if then is not None:
            then()

    def over(self) -> None:
        """Note that no more will leave: all did, or the client is gone."""
        self.is_over = True
        for key in list(self._then):
            self.left(key)


def count_on(scope: Mapping[str, Any]) -> None:
    """Count a request over HTTP that goes on with the answer to another, which broke off."""
    answers = scope.get(ANSWERS_KEY)
    if isinstance(answers, OutgoingAnswers):
        answers.count_on()


class DrainTracker:
    """Counts requests while they run; once it is `close`d, no other begins.

    ``is_ending`` says that it will be: whoever sends requests here should send them elsewhere.

    ``pipe`` has the answers that go to the one client over standard output, where there is one.
    """

    def __init__(self) -> None:
        self.pipe: OutgoingAnswers | None = None
        self.is_ending = False
        self._running: dict[object, Cancellation] = {}
        self._is_closed = False
        self._idle: anyio.Event | None = None

    @property
    def running(self) -> int:
        """How many requests run now."""
        return len(self._running)

    def begin(self, gateway: str, block: Cancellation, *, goes_on: bool = False) -> Callable[[], None]:
        """Count a request, which runs in this block, until what this returns is called.

        One that goes on with another may always begin. Raises `UpstreamError` (busy) once the gateway is ending.
        """
        if self._is_closed and not goes_on:
            raise UpstreamError(
                server=gateway,
                kind="busy",
                problem="is shutting down and accepts no more calls; this call was not sent",
                remedy="Connect again and repeat the call.",
            )
        request = object()
        self._running[request] = block

        def end() -> None:
            self._running.pop(request, None)
            if not self._running and self._idle is not None:
                self._idle.set()
                self._idle = None

        return end

    def close(self) -> None:
        """Let no other request begin."""
        self.is_ending = self._is_closed = True

    def break_off(self) -> None:
        """Cancel all that runs."""
        for block in list(self._running.values()):
            block.cancel()

    async def drained(self) -> None:
        """Wait until none runs any more."""
        while self._running:
            self._idle = self._idle or anyio.Event()
            await self._idle.wait()

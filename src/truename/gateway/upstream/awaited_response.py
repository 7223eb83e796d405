"""The response that a request to a server waits for, and the id that it answers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from truename.gateway.upstream.transport import TransportError

if TYPE_CHECKING:
    from truename.gateway.protocol.envelopes import Envelope
    from truename.gateway.protocol.progress import ReportProgress

__all__ = ["AwaitedResponse", "own_number"]


class AwaitedResponse:
    """The response that one request waits for. It is held back while somebody is told of what came before it."""

    __slots__ = ("_held", "_untold", "outcome", "report_progress")

    def __init__(self, report_progress: ReportProgress | None) -> None:
        self.report_progress = report_progress
        self.outcome: asyncio.Future[Envelope] | None = None
        self._untold = 0
        self._held: Envelope | TransportError | None = None

    def wait(self) -> asyncio.Future[Envelope]:
        """Return the future of the response; a `TransportError` is its exception."""
        self.outcome = asyncio.get_running_loop().create_future()
        if not self._untold and self._held is not None:
            self._settle(self._held)
        return self.outcome

    def resolve(self, outcome: Envelope | TransportError) -> None:
        """Take the response, or why there is none; the first counts."""
        if self._untold or self.outcome is None:
            self._held = self._held or outcome
        else:
            self._settle(outcome)

    def _settle(self, outcome: Envelope | TransportError) -> None:
        if self.outcome is None or self.outcome.done():
            return
        if isinstance(outcome, TransportError):
            self.outcome.set_exception(outcome)
        else:
            self.outcome.set_result(outcome)

    def hold(self) -> None:
        """Hold the response back until `let_go` is called as often."""
        self._untold += 1

    def let_go(self) -> None:
        """Undo one `hold`."""
        self._untold -= 1
        if not self._untold and self._held is not None:
            self.resolve(self._held)

    def lose(self) -> None:
        """Give up the response, unless it has come: the connection is gone."""
        self._untold = 0
        self.resolve(self._held or TransportError("lost"))


def own_number(value: object) -> int:
    """Return the number that an id of ours stands for, also where a server made a text of it; 0 for none."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    return int(value) if isinstance(value, str) and len(value) < 18 and value.isascii() and value.isdigit() else 0

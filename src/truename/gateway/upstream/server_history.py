"""What happened to one server: its last failures, how often it was restarted, and what its program wrote last."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from truename.gateway.upstream_errors import Tail

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from truename.gateway.upstream_errors import UpstreamError

__all__ = ["ServerFailure", "ServerHistory"]

_MOST: Final = 10


@dataclass(frozen=True, kw_only=True)
class ServerFailure:
    """A failure, as the seconds since 1970 when it was seen last, and how many times in a row it was."""

    at: float
    error: UpstreamError
    times: int = 1


class ServerHistory:
    """The history of one server since this process started: the last ten failures, the restarts, the output.

    ``restarts`` counts the connections that were opened after one was lost. ``tail`` has the last lines that the
    program of the latest connection wrote to its standard error.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.restarts = 0
        self.tail = Tail()
        self._clock = clock
        self._failures: deque[ServerFailure] = deque(maxlen=_MOST)
        self._was_lost = False

    @property
    def failures(self) -> Sequence[ServerFailure]:
        """The last failures, newest first."""
        return tuple(reversed(self._failures))

    def started(self) -> None:
        """Note that a connection is ready."""
        self.restarts += self._was_lost
        self._was_lost = False

    def failed(self, error: UpstreamError, *, was_ready: bool) -> None:
        """Note that a connection was lost, or that an attempt to open one failed."""
        self._was_lost |= was_ready
        last = self._failures[-1] if self._failures else None
        if last is not None and last.error.problem == error.problem and not was_ready:
            self._failures[-1] = replace(last, at=self._clock(), times=last.times + 1, error=error)
        else:
            self._failures.append(ServerFailure(at=self._clock(), error=error))

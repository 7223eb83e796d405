"""Until when a request counts as running: its answer has to leave, over HTTP or the pipe, before the gateway ends."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from truename.gateway.cancellation import Cancellation
from truename.gateway.drain import ANSWERS_KEY, OutgoingAnswers
from truename.gateway.mcp.messages import is_answer
from truename.gateway.upstream_errors import BrokenOff

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import TracebackType

    from starlette.types import Scope

    from truename.gateway.drain import DrainTracker
    from truename.gateway.mcp.requests import Request

__all__ = ["AdmittedRequest", "Answering", "note_written", "piped"]

# Clients of these versions and later come back for an answer whose stream broke off; so long they are waited for.
_RESUMABLE: Final = "2025-11-25"
_COMES_BACK: Final = 2.0
# Answered by the gateway itself, or for as long as the client listens: nothing is lost that cannot be asked again.
_FREE: Final = frozenset(
    {
        *("initialize", "ping", "server/discover", "subscriptions/listen"),
        *("tools/list", "prompts/list", "resources/list", "resources/templates/list"),
    }
)


class AdmittedRequest:
    """Admits a request to the gateway while the block lasts, and counts it until its answer has left.

    A request that goes on with a suspended call is admitted to the end. Raises `UpstreamError`: busy once the gateway
    is ending, lost if that breaks the request off.
    """

    def __init__(self, request: Request, drain_tracker: DrainTracker, gateway: str) -> None:
        self._request = request
        self._drain_tracker = drain_tracker
        self._gateway = gateway
        self._is_free = request.method in _FREE

    def __enter__(self) -> None:
        if self._is_free:
            return
        self._cancellation = Cancellation()
        goes_on = "requestState" in (self._request.params or {})
        self._end = self._drain_tracker.begin(self._gateway, self._cancellation, goes_on=goes_on)
        self._cancellation.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_free:
            return
        is_broken_off = self._cancellation.__exit__(kind, error, trace)
        if not is_broken_off and isinstance(error, asyncio.CancelledError):
            # The client is gone, and nobody is answered.
            self._end()
        self._end_when_sent()
        if is_broken_off:
            raise _broken_off(self._gateway)

    def _end_when_sent(self) -> None:
        request = self._request
        answers = self._drain_tracker.pipe if request.http is None else request.http.scope.get(ANSWERS_KEY)
        if answers is None:
            self._end()
        elif request.http is not None and answers.is_over and request.protocol_version >= _RESUMABLE:
            asyncio.get_running_loop().call_later(_COMES_BACK, self._end)
        else:
            answers.after(request.id, self._end)


def _broken_off(gateway: str) -> BrokenOff:
    return BrokenOff(
        server=gateway,
        kind="lost",
        problem="stopped before the call ended, and the call was cancelled",
        remedy="Whether the call took effect is unknown; check before you repeat it.",
    )


class Answering:
    """Answers a request over HTTP while the block lasts: at its end the answer has left."""

    def __init__(self, scope: Scope, drain_tracker: DrainTracker, gateway: str) -> None:
        # Not a method of this: a request that refers to itself stays until garbage is collected.
        self._answers = scope[ANSWERS_KEY] = OutgoingAnswers(partial(_go_on, drain_tracker, gateway))

    def __enter__(self) -> None:
        """Begin to answer."""

    def __exit__(self, *_: object) -> None:
        self._answers.over()


def _go_on(drain_tracker: DrainTracker, gateway: str) -> Callable[[], None]:
    return drain_tracker.begin(gateway, Cancellation(), goes_on=True)


@contextmanager
def piped(drain_tracker: DrainTracker) -> Iterator[OutgoingAnswers]:
    """Serve a client over a pipe in this block."""
    answers = drain_tracker.pipe = OutgoingAnswers()
    try:
        yield answers
    finally:
        drain_tracker.pipe = None
        answers.over()


def note_written(answers: OutgoingAnswers, message: Mapping[str, Any]) -> None:
    """Note what was written to the pipe."""
    if is_answer(message):
        answers.left(message["id"])

"""Until when a request counts as running: its answer has to leave, over HTTP or the pipe, before the gateway ends."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import anyio

from truename.gateway.drain import ANSWERS_KEY, OutgoingAnswers
from truename.gateway.faults import BrokenOff
from truename.gateway.mcp.messages import is_answer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from starlette.types import Scope

    from truename.gateway.drain import DrainTracker
    from truename.gateway.mcp.requests import Request

__all__ = ["answering", "note_written", "passing", "piped"]

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


@contextmanager
def passing(request: Request, drain_tracker: DrainTracker, gateway: str) -> Iterator[None]:
    """Count a request that is answered in this block. What goes on with a call that waits is let in to the end.

    Raises `UpstreamError`: busy once the gateway is ending, lost if that breaks it off.
    """
    if request.method in _FREE:
        yield
        return
    scope = anyio.CancelScope()
    end = drain_tracker.begin(gateway, scope, goes_on="requestState" in (request.params or {}))
    try:
        with scope:
            yield
        if scope.cancelled_caught:
            raise _broken_off(gateway)
    except anyio.get_cancelled_exc_class():
        # Nobody is answered then.
        end()
        raise
    finally:
        answers = drain_tracker.pipe if request.http is None else request.http.scope.get(ANSWERS_KEY)
        if answers is None:
            end()
        elif request.http is not None and answers.is_over and request.protocol_version >= _RESUMABLE:
            asyncio.get_running_loop().call_later(_COMES_BACK, end)
        else:
            answers.after(request.id, end)


def _broken_off(gateway: str) -> BrokenOff:
    return BrokenOff(
        server=gateway,
        kind="lost",
        problem="stopped before the call ended, and the call was cancelled",
        remedy="Whether the call took effect is unknown; check before you repeat it.",
    )


@contextmanager
def answering(scope: Scope, drain_tracker: DrainTracker, gateway: str) -> Iterator[None]:
    """Answer a request over HTTP in this block: at its end the answer has left."""
    answers = scope[ANSWERS_KEY] = OutgoingAnswers(
        lambda: drain_tracker.begin(gateway, anyio.CancelScope(), goes_on=True)
    )
    try:
        yield
    finally:
        answers.over()


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

"""What is sent to a collector is sent by threads that keep no process from its end: a collector may never answer."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["LAST", "aside"]

LAST: Final = 3.0
"""For so many seconds the end waits for a collector, of spans and of metrics."""

Result = TypeVar("Result")


def aside(work: Callable[[], Result]) -> Future[Result]:
    """Do something in a thread of its own, and return what comes of it, or is raised.

    A timeout of reading counts from the last byte, so one who sends a byte now and then is waited for without end; and
    Python waits at its end for every thread that is no daemon.

    >>> aside(lambda: 6 * 7).result(10)
    42
    """
    future: Future[Result] = Future()
    threading.Thread(target=_run, args=(work, future), name="truename-telemetry", daemon=True).start()
    return future


def _run(work: Callable[[], Result], future: Future[Result]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = work()
    except Exception as error:  # noqa: BLE001 - whoever waits for it is told
        future.set_exception(error)
    else:
        future.set_result(result)

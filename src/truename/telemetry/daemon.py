"""Threads that export telemetry and never keep the process alive: a collector may never answer."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["SHUTDOWN_TIMEOUT", "in_daemon_thread"]

SHUTDOWN_TIMEOUT: Final = 3.0
"""Seconds that the end of the process waits for the last spans, and for the last metrics."""

Result = TypeVar("Result")


def in_daemon_thread(work: Callable[[], Result]) -> Future[Result]:
    """Run a function in a daemon thread of its own, and return its future.

    A read timeout starts anew with each byte, so a collector that sends one now and then blocks its reader for ever;
    at its end Python joins every thread that is not a daemon, those of executors too.

    >>> in_daemon_thread(lambda: 6 * 7).result(10)
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
    except Exception as error:  # noqa: BLE001 - whoever waits for the future gets it
        future.set_exception(error)
    else:
        future.set_result(result)

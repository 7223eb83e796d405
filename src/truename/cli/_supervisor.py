"""Supervise the workers of `truename serve --workers`: start them, replace those that die, pass on signals.

This process reads no request and imports no gateway: it waits. It ends when all workers have ended.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from truename.cli._ending import report_end
from truename.cli._rendering import say, say_json
from truename.cli._worker import WORKER

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from truename.cli._ending import Reason

__all__ = ["Supervisor", "cores"]

# Seconds until a worker that died is started again: at once, unless it dies again and again.
_BACKOFF: Final = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
# One that served for as long has recovered from what killed those before.
_RECOVERED: Final = 60.0
_MOST_READ: Final = 4096
_QUOTA: Final = Path("/sys/fs/cgroup/cpu.max")
# As a shell has it for what a signal ended.
_BY_SIGNAL: Final = 128


def cores() -> int:
    """Return how many workers the processors that this process may use are enough for, at least 1.

    The smaller of the processors it may run on and of the quota of its control group, as containers have it.
    """
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    return max(1, min(usable, _quota() or usable))


def _quota() -> int:
    """Return the quota of the control group (v2) in processors, rounded up; 0 if there is none."""
    try:
        quota, period = _QUOTA.read_text("ascii").split()
        return -(-int(quota) // int(period))
    except (OSError, ValueError):
        return 0


@dataclass(kw_only=True)
class _RunningWorker:
    """A worker that runs: its process, our end of the link, and what it has told."""

    number: int
    process: subprocess.Popen[bytes]
    link: socket.socket
    began: float
    has_begun: bool = False
    is_ready: bool = False
    left: int = 0
    reason: Reason = "time"
    is_hung_up: bool = False
    unread: bytes = b""

    def told(self) -> Iterator[dict[str, object]]:
        """Yield what it has told since the last time."""
        with contextlib.suppress(BlockingIOError, ConnectionError):
            while piece := self.link.recv(_MOST_READ):
                self.unread += piece
        *lines, self.unread = self.unread.split(b"\n")
        yield from map(json.loads, lines)


@dataclass(kw_only=True)
class _DueStart:
    """A worker that is to be started again, at a time."""

    number: int
    at: float


@dataclass(kw_only=True)
class Supervisor:
    """Runs ``count`` workers: ``truename`` with ``words``, which share the socket ``bound``.

    The first one is started alone: what is wrong with the configuration is told once. ``reload`` is the setting of this
    name: where it is ``off``, SIGHUP ends the gateway.
    """

    words: Sequence[str]
    bound: socket.socket
    count: int
    reload: str
    as_json: bool
    _running: dict[int, _RunningWorker] = field(default_factory=dict)
    _due: list[_DueStart] = field(default_factory=list)
    _deaths: dict[int, int] = field(default_factory=dict)
    _signals: list[signal.Signals] = field(default_factory=list)
    _directory: str = ""
    _awaited: set[int] = field(default_factory=set)
    _is_alone: bool = True
    _is_reported: bool = False
    _endings: int = 0
    _left: int = 0
    _reason: Reason = "time"
    _failure: int | None = None
    _is_broken: bool = False

    def run(self) -> int:
        """Serve until a signal ends it, and return the exit status: that of `serve` in one process."""
        self._terminals = tuple(number for number in (0, 2) if os.isatty(number))
        self._awaited = set(range(1, self.count + 1))
        with self._woken() as waker:
            self._directory = tempfile.mkdtemp(prefix="truename-")
            try:
                self._start(1)
                while self._running or self._due:
                    self._wait(waker)
                    signals = self._taken_signals()
                    # What a worker told before a signal came may say what the signal means.
                    self._listen()
                    for number in signals:
                        self._pass_on(number)
                    self._reap()
                    self._start_due()
            finally:
                shutil.rmtree(self._directory, ignore_errors=True)
            if self._failure is not None:
                return self._failure
            status = report_end(self._left, self._reason, as_json=self.as_json)
            return 1 if self._is_broken else status

    @contextlib.contextmanager
    def _woken(self) -> Iterator[socket.socket]:
        """Have signals wake `_wait` during the block."""
        awake, waker = socket.socketpair()
        for one in (awake, waker):
            one.setblocking(False)
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)
        before = {number: signal.signal(number, self._note) for number in numbers}
        signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
        try:
            yield awake
        finally:
            signal.set_wakeup_fd(-1)
            for number, handler in before.items():
                signal.signal(number, handler)
            awake.close()
            waker.close()

    def _note(self, number: int, _: object) -> None:
        if number != signal.SIGCHLD:
            self._signals.append(signal.Signals(number))

    def _taken_signals(self) -> list[signal.Signals]:
        taken, self._signals = self._signals, []
        return taken

    def _wait(self, awake: socket.socket) -> None:
        now = time.monotonic()
        patience = min((max(0.0, one.at - now) for one in self._due), default=None)
        links = [one.link for one in self._running.values()]
        select.select([awake, *links], [], [], patience)
        with contextlib.suppress(BlockingIOError):
            awake.recv(_MOST_READ)

    def _start(self, number: int) -> None:
        """Start a worker. Raises `OSError`."""
        ours, theirs = socket.socketpair()
        with contextlib.ExitStack() as unstarted, theirs:
            unstarted.callback(ours.close)
            described = {
                "number": number,
                "count": self.count,
                "listener": self.bound.fileno(),
                "link": theirs.fileno(),
                "directory": self._directory,
                "reports": number == 1 and not self._is_reported,
            }
            process = subprocess.Popen(  # noqa: S603 - this program, with the words that it was started with
                # -P: a directory `truename` in the working directory is not imported.
                [sys.executable, "-P", "-m", "truename", *self.words],
                stdin=subprocess.DEVNULL,
                env=os.environ | {WORKER: json.dumps(described)},
                pass_fds=(self.bound.fileno(), theirs.fileno()),
                # Ctrl-C in a terminal reaches this process alone, which passes it on.
                process_group=0,
            )
            unstarted.pop_all()
        ours.setblocking(False)
        self._running[number] = _RunningWorker(number=number, process=process, link=ours, began=time.monotonic())

    def _start_beside(self, number: int) -> None:
        """Start a worker; the others serve on where that is not possible now."""
        try:
            self._start(number)
        except OSError as error:
            reason = error.strerror or str(error)
            pause, when = self._put_off(number)
            text = f"Worker {number} cannot be started ({reason}). It is tried again {when}."
            self._say({"worker": number, "failed": reason, "starts_in": pause}, text)
            self._settle(number)

    def _start_due(self) -> None:
        now = time.monotonic()
        due = [one for one in self._due if one.at <= now]
        self._due = [one for one in self._due if one.at > now]
        for one in due:
            self._start_beside(one.number)

    def _listen(self) -> None:
        for worker in list(self._running.values()):
            for said in worker.told():
                self._hear(worker, said)

    def _hear(self, worker: _RunningWorker, said: dict[str, object]) -> None:
        match said:
            case {"begun": True}:
                worker.has_begun = True
            case {"ready": True}:
                self._is_now_ready(worker)
            case {"reload": str(mode)}:
                self.reload = mode
            case {"broken_off": int(left), "reason": "time" | "signal" as reason}:
                worker.left, worker.reason = left, reason

    def _is_now_ready(self, worker: _RunningWorker) -> None:
        worker.is_ready = True
        if worker.is_hung_up:
            worker.process.send_signal(signal.SIGHUP)
        # A worker that starts after a signal would not get it.
        if worker.number == 1 and self._is_alone and not self._endings:
            self._is_alone = False
            for number in range(2, self.count + 1):
                self._start_beside(number)
        if self._deaths.get(worker.number):
            self._tell_of(
                worker, {"ready": True}, f"Worker {worker.number} serves again (process {worker.process.pid})."
            )
        self._settle(worker.number)

    def _settle(self, number: int) -> None:
        """Note that a worker serves or has failed once; then the first one prints the report."""
        self._awaited.discard(number)
        first = self._running.get(1)
        if not (self._awaited or self._is_reported or first is None):
            with contextlib.suppress(OSError):
                first.link.send(b"\n")
                # One that is started again from now on does not report.
                self._is_reported = True

    def _pass_on(self, number: signal.Signals) -> None:
        """Pass on a signal: the first that ends drains the workers, the second interrupts calls, a third kills."""
        if number == signal.SIGHUP and not self._is_hang_up_the_end():
            for worker in self._running.values():
                # One that starts would be killed by it.
                worker.is_hung_up = not worker.is_ready
                if worker.is_ready:
                    worker.process.send_signal(signal.SIGHUP)
            return
        self._due.clear()
        self._endings += 1
        for worker in self._running.values():
            worker.process.send_signal(signal.SIGTERM if self._endings <= 2 else signal.SIGKILL)

    def _is_hang_up_the_end(self) -> bool:
        return self.reload == "off" or not all(map(os.isatty, self._terminals))

    def _reap(self) -> None:
        for worker in list(self._running.values()):
            if (status := worker.process.poll()) is not None:
                for said in worker.told():
                    self._hear(worker, said)
                worker.link.close()
                del self._running[worker.number]
                self._ended(worker, status)

    def _ended(self, worker: _RunningWorker, status: int) -> None:
        if self._endings:
            self._left += worker.left
            if worker.left:
                self._reason = worker.reason
            if status and worker.is_ready and not worker.left:
                self._tell_of(worker, {"ended": _named(status)}, f"Worker {worker.number} {_words(status)}.")
                self._is_broken = True
            return
        if 1 in self._awaited and not worker.is_ready and not (worker.has_begun and status < 0):
            # It has said why; nobody else was started.
            self._failure = status if status >= 0 else _BY_SIGNAL - status
            if status < 0:
                self._tell_of(worker, {"ended": _named(status)}, f"Worker 1 {_words(status)} before it served.")
            return
        self._start_again(worker, status)

    def _start_again(self, worker: _RunningWorker, status: int) -> None:
        number, pid = worker.number, worker.process.pid
        if worker.is_ready and time.monotonic() - worker.began >= _RECOVERED:
            self._deaths[number] = 0
        pause, when = self._put_off(number)
        text = f"Worker {number} (process {pid}) {_words(status)}. It is started again {when}."
        self._tell_of(worker, {"ended": _named(status), "starts_in": pause}, text)
        self._settle(number)

    def _put_off(self, number: int) -> tuple[float, str]:
        """Have a worker be started after a pause, which grows with its deaths; return that, also in words."""
        deaths = self._deaths.get(number, 0)
        self._deaths[number] = deaths + 1
        pause = _BACKOFF[min(deaths, len(_BACKOFF) - 1)]
        self._due.append(_DueStart(number=number, at=time.monotonic() + pause))
        return pause, "now" if not pause else f"in {pause:g} s"

    def _tell_of(self, worker: _RunningWorker, document: dict[str, object], text: str) -> None:
        self._say({"worker": worker.number, "pid": worker.process.pid, **document}, text)

    def _say(self, document: dict[str, object], text: str) -> None:
        with contextlib.suppress(OSError):
            if self.as_json:
                say_json(document)
            else:
                say(text)


def _named(status: int) -> str | int:
    """Return the name of the signal that ended a process, or its exit status."""
    return signal.Signals(-status).name if status < 0 else status


def _words(status: int) -> str:
    return f"was killed by {_named(status)}" if status < 0 else f"ended with status {status}"

"""Processes that are measured: what they and their children have used of a processor, and what they hold in memory.

The figures are the operating system's (Linux): a clock for every process, and the pages that it has resident.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from types import TracebackType

__all__ = ["Process", "Usage", "end_children", "free_port"]

_END_SECONDS: Final = 5.0
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_SERVERS: Final = str(Path(__file__).with_name("servers.py")).encode()


def free_port() -> int:
    """Return a port of loopback on which nothing listens now."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


@dataclass(frozen=True)
class Usage:
    """What a process and its children use, the synthetic servers among them counted apart."""

    seconds: float
    resident_bytes: int
    servers_seconds: float


class Process:
    """A command in a session of its own inside a block; at its end nothing that the command has started runs."""

    def __init__(self, command: Sequence[str], *, env: Mapping[str, str], log: Path, has_pipes: bool = False) -> None:
        self._command, self._env, self._log, self._has_pipes = list(command), dict(env), log, has_pipes

    def __enter__(self) -> Self:
        piped = subprocess.PIPE if self._has_pipes else None
        with self._log.open("ab") as log:
            self.popen = subprocess.Popen(
                self._command,
                env=self._env,
                cwd=self._log.parent,
                stdin=piped or subprocess.DEVNULL,
                stdout=piped or log,
                stderr=log,
                start_new_session=True,
                text=True,
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A server over stdio may be in a session of its own: the tree is read while its root still stands.
        with ExitStack() as handles:
            # The number of a root that has ended may be another's by now.
            pids = _tree(self.popen.pid) if self.is_running() else ()
            tree = [handle for pid in pids if (handle := _handle(pid, handles)) is not None]
            _send(tree, signal.SIGTERM)
            try:
                self.popen.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                pass
            finally:
                _send(tree, signal.SIGKILL)
                with suppress(ProcessLookupError):
                    os.killpg(self.popen.pid, signal.SIGKILL)
                self.popen.wait()
            for handle in tree:
                select.select([handle], [], [], _END_SECONDS)
        for stream in (self.popen.stdin, self.popen.stdout):
            if stream is not None:
                stream.close()

    @property
    def pipes(self) -> tuple[IO[str], IO[str]]:
        """Return where to write to the process and where to read from it."""
        assert self.popen.stdin is not None
        assert self.popen.stdout is not None
        return self.popen.stdin, self.popen.stdout

    def is_running(self) -> bool:
        return self.popen.poll() is None

    def last_words(self) -> str:
        """Return the last line of what the process wrote to its log."""
        lines = self._log.read_text("utf-8", "replace").split("\n")
        return next((line.strip()[:300] for line in reversed(lines) if line.strip()), "it wrote nothing")

    def usage(self) -> Usage:
        """Return the processor time so far and the memory now, of all processes below this one."""
        own = servers = resident = 0.0
        for pid in _tree(self.popen.pid):
            try:
                seconds = time.clock_gettime(~pid << 3 | 2)
                command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
            except OSError:  # it has ended since
                continue
            if command[2:3] == [_SERVERS]:  # python -I servers.py
                servers += seconds
            else:
                own += seconds
                resident += pages * _PAGE
        return Usage(own + _of_ended_children(self.popen.pid), int(resident), servers)


def end_children() -> None:
    """End what this process has started and has not ended: an order to stop can come in the midst of a start."""
    with ExitStack() as handles:
        _, *started = _tree(os.getpid())
        _send([handle for pid in started if (handle := _handle(pid, handles)) is not None], signal.SIGKILL)


def _handle(pid: int, handles: ExitStack) -> int | None:
    """Return a descriptor that stands for a process, also when its number is given to another; None if it has ended."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return None
    handles.callback(os.close, handle)
    return handle


def _send(handles: Iterable[int], number: int) -> None:
    for handle in handles:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(handle, number)


def _tree(root: int) -> Iterator[int]:
    yield root
    # Each thread has the children that it has started.
    for children in Path(f"/proc/{root}/task").glob("*/children"):
        with suppress(OSError):
            for child in children.read_text().split():
                yield from _tree(int(child))


def _of_ended_children(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[13]) + int(fields[14])) / _TICKS

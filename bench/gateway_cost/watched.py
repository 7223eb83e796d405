"""A process that is measured: what it has used of a processor, and what it holds in memory."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

__all__ = ["Watched", "free_port"]

_ROOT: Final = Path(__file__).resolve().parents[2]
_START: Final = 60.0
_END: Final = 10.0


def free_port() -> int:
    """Return a port that nobody listens on now."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


class Watched:
    """A module run by this interpreter, listening on ``port`` inside the block; its children are not counted."""

    def __init__(self, port: int, module: str, *args: str, env: Mapping[str, str] | None = None) -> None:
        self.port = port
        self._env = env or {}
        self._command = [sys.executable, "-m", module, *args]

    def __enter__(self) -> Self:
        paths = (str(_ROOT), str(_ROOT / "src"), os.environ.get("PYTHONPATH", ""))
        env = {**os.environ, **self._env, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        self._process = subprocess.Popen(
            self._command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        try:
            self._await_port()
        except BaseException:
            self._end()
            raise
        return self

    def _await_port(self) -> None:
        until = time.monotonic() + _START
        while time.monotonic() < until:
            if self._process.poll() is not None:
                said = b"" if self._process.stderr is None else self._process.stderr.read()
                raise RuntimeError(f"{' '.join(self._command)} ended:\n{said.decode('utf-8', 'replace')[-2000:]}")
            with socket.socket() as trial:
                trial.settimeout(1)
                if trial.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        raise RuntimeError(f"{' '.join(self._command)} does not listen after {_START:g} seconds")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(_END)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stderr is not None:
            self._process.stderr.close()

    def processor_seconds(self) -> float:
        """Return the processor time of all its threads, by the clock that Linux has for each process."""
        return time.clock_gettime(~self._process.pid << 3 | 2)

    def resident_bytes(self) -> int:
        """Return what it holds in memory."""
        pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

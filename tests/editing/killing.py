"""Runs a function again and again, and kills it each time one system step later: before, during and after each.

``python -m tests.editing.killing MODULE:FUNCTION DIRECTORY`` calls ``prepare(place)`` and then, in a child that is
going to be killed, ``FUNCTION(place)``, for places ``DIRECTORY/1``, ``DIRECTORY/2`` and so on, until one child lives
to the end. Each place then is what a kill at that step leaves behind.
"""

from __future__ import annotations

import importlib
import io
import os
import shutil
import signal
import subprocess
import sys
import traceback
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.shared import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["killed_everywhere"]

_STEPS: Final = ("open", "fsync", "replace", "rename", "unlink", "mkdir", "rmdir", "utime", "chown", "close")
_ENOUGH: Final = 1_000


def killed_everywhere(function: str, directory: Path) -> list[Path]:
    """Return the places of all kills, in the order of steps, and last that of the run that was not killed."""
    command = [sys.executable, "-m", "tests.editing.killing", function, str(directory)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return [directory / str(n) for n in range(1, int(done.stdout) + 1)]


class _Countdown:
    """Kills this process when it has been asked often enough."""

    def __init__(self, left: int) -> None:
        self._left = left

    def step(self) -> bool:
        self._left -= 1
        return self._left == 0

    def die(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(*arguments: Any, **options: Any) -> Any:
            if self.step():
                self.die()
            result = function(*arguments, **options)
            if self.step():
                self.die()
            return result

        return call

    def opening(self, fdopen: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            stream = fdopen(*arguments, **options)
            return _Halfway(stream, self) if stream.writable() else stream

        return call


class _Halfway(io.BufferedIOBase):
    """A file in whose middle the process may die."""

    def __init__(self, stream: Any, countdown: _Countdown) -> None:
        self._stream, self._countdown = stream, countdown

    def write(self, raw: Any) -> int:
        if self._countdown.step():
            self._stream.write(raw[: len(raw) // 2])
            self._stream.flush()
            self._countdown.die()
        return int(self._stream.write(raw))

    def flush(self) -> None:
        self._stream.flush()

    def fileno(self) -> int:
        return int(self._stream.fileno())

    def close(self) -> None:
        self._stream.close()


def _child(run: Callable[[Path], None], place: Path, steps: int) -> None:
    countdown = _Countdown(steps)
    for name in _STEPS:
        setattr(os, name, countdown.around(getattr(os, name)))
    shutil.copystat = countdown.around(shutil.copystat)
    os.fdopen = countdown.opening(os.fdopen)
    status = 1
    try:
        run(place)
        status = 0
    except BaseException:  # noqa: BLE001 - whatever it is, the parent has to hear of it
        traceback.print_exc()
        sys.stderr.flush()
    os._exit(status)


def _main(function: str, directory: Path) -> int:
    module = importlib.import_module(function.partition(":")[0])
    run = getattr(module, function.partition(":")[2])
    for steps in range(1, _ENOUGH):
        place = directory / str(steps)
        place.mkdir(parents=True)
        module.prepare(place)
        child = os.fork()
        if child == 0:
            _child(run, place, steps)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            sys.stdout.write(str(steps))
            return os.waitstatus_to_exitcode(status)
    return 1


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1], Path(sys.argv[2])))

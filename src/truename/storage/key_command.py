"""Run the command that prints the keys of a state, as that of a key management service: without a shell, once."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import threading
import time
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import IO, Final, NoReturn

from truename.errors import ConfigError, printable

__all__ = ["printed_by"]

_SECONDS: Final = 30.0
_LONGEST: Final = 4_096
_LONGEST_SHOWN: Final = 300
_TOO_LONG: Final = f"the command of the vault's key printed more than {_LONGEST:,} bytes"
_TOO_SLOW: Final = "the command of the vault's key took more than {seconds:g} seconds"
# A key in base64, wherever a command repeats it.
_KEY: Final = re.compile(r"[A-Za-z0-9+/_-]{43,}=*")


@lru_cache(maxsize=16)
def printed_by(command: str | tuple[str, ...], where: str, seconds: float = _SECONDS) -> str:
    """Return what a command prints, the first time that a process asks, and the same afterwards.

    A text is split like a shell does it. ``where`` is what names the command. Raises `ConfigError` for a command that
    cannot be run, fails (with what it wrote to its standard error) or takes longer than ``seconds``.
    """
    words = _split(command, where) if isinstance(command, str) else command
    remedy = f"Run {printable(Path(words[0]).name, 100)} yourself: it has to print 32 bytes in base64."
    try:
        # The operator's own words; nothing that the gateway receives is among them.
        process = subprocess.Popen(  # noqa: S603
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
    except OSError as error:
        _refuse(where, f"the command of the vault's key cannot be run ({error.strerror or error})", remedy)
    printed, complaint = _OutputReader(process.stdout, ends=True), _OutputReader(process.stderr)
    deadline = time.monotonic() + seconds
    with process:
        printed.join(seconds)
        # Who prints more than keys is not waited for: it may print for ever.
        is_too_long = len(printed.read) > _LONGEST
        try:
            process.wait(0.0 if is_too_long else max(0.0, deadline - time.monotonic()))
            complaint.join(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            _kill(process)
            _refuse(where, _TOO_LONG if is_too_long else _TOO_SLOW.format(seconds=seconds), remedy)
    if printed.is_alive() or complaint.is_alive():
        # Another process has its output open.
        _kill(process)
        _refuse(where, _TOO_SLOW.format(seconds=seconds), remedy)
    if is_too_long:
        _refuse(where, _TOO_LONG, remedy)
    if process.returncode:
        said = " ".join(_KEY.sub("[...]", bytes(complaint.read).decode("utf-8", "replace")).split())
        detail = f": {printable(said, _LONGEST_SHOWN)}" if said else ""
        _refuse(where, f"the command of the vault's key failed with status {process.returncode}{detail}", remedy)
    return bytes(printed.read).decode("ascii", "replace")


class _OutputReader(threading.Thread):
    """Reads an output of a command, and keeps its beginning; with ``ends`` it reads no further."""

    def __init__(self, stream: IO[bytes] | None, *, ends: bool = False) -> None:
        super().__init__(daemon=True)
        assert stream is not None  # noqa: S101 - it is a pipe
        self._stream = stream
        self._ends = ends
        self.read = bytearray()
        self.start()

    def run(self) -> None:
        with suppress(OSError, ValueError):
            while part := os.read(self._stream.fileno(), _LONGEST):
                if len(self.read) <= _LONGEST:
                    self.read += part
                elif self._ends:
                    break


def _split(command: str, where: str) -> tuple[str, ...]:
    words: list[str] = []
    with suppress(ValueError):
        words = shlex.split(command)
    if not words:
        _refuse(where, "it is not a command line", "Write a program and its arguments.")
    return tuple(words)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a command with all that it started: who has its output open would be waited for."""
    if hasattr(os, "killpg"):
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()


def _refuse(where: str, problem: str, remedy: str) -> NoReturn:
    raise ConfigError(file=where, key="", problem=problem, remedy=remedy)

"""A person at a terminal: types a command, answers its questions, and sees all that it prints."""

from __future__ import annotations

import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from contextlib import suppress
from fcntl import ioctl
from itertools import groupby
from typing import TYPE_CHECKING, Final

import pyte

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from typing import Self

    from pyte.screens import Char

__all__ = ["COLUMNS", "Terminal"]

COLUMNS: Final = 80
_ROWS: Final = 50
# More than a command prints: nothing leaves at the top.
_LINES: Final = 300
_CODES: Final = {"black": 30, "red": 31, "green": 32, "brown": 33, "blue": 34, "magenta": 35, "cyan": 36, "white": 37}


class Terminal:
    """A command in a terminal of 80 columns. ``answers`` are what the person types, by what the question ends in."""

    def __init__(self, command: str, cwd: Path, env: Mapping[str, str], answers: Mapping[str, str]) -> None:
        self._answers = answers
        self._screen = pyte.Screen(COLUMNS, _LINES)
        self._stream = pyte.ByteStream(self._screen)
        self._asked = 0
        self._ours, theirs = pty.openpty()
        ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, COLUMNS, 0, 0))
        self.process = subprocess.Popen(
            # The terminal becomes the one that Ctrl-C comes from.
            ["setsid", "--ctty", "bash", "-c", command],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=cwd,
            env=env,
        )
        os.close(theirs)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self._ours)

    @property
    def text(self) -> str:
        """What the screen shows, without colours."""
        return "\n".join(line.rstrip() for line in self._screen.display).rstrip()

    @property
    def shown(self) -> str:
        """What the screen shows, with colours as terminals write them."""
        rows = [self._screen.buffer[row] for row in range(self.text.count("\n") + 1)]
        return "\n".join(_coloured([cells[column] for column in range(COLUMNS)]) for cells in rows)

    def type(self, keys: str) -> None:
        """Type keys."""
        os.write(self._ours, keys.encode())

    def until(self, words: str | None, seconds: float) -> bool:
        """Read, and answer questions, until the words are shown or, without words, until the command ends.

        Tells whether it came to that; False if the command ended before. Raises `TimeoutError`.
        """
        end = time.monotonic() + seconds
        while words is None or words not in self.text:
            if not select.select([self._ours], [], [], max(0.0, end - time.monotonic()))[0]:
                raise TimeoutError(self.text)
            try:
                piece = os.read(self._ours, 65_536)
            except OSError:  # the other end of the terminal is closed
                piece = b""
            if not piece:
                self.process.wait()
                return words is None
            self._stream.feed(piece)
            self._answer()
        return True

    def _answer(self) -> None:
        lines = self.text.count("\n")
        for question, answer in self._answers.items():
            if lines > self._asked and self.text.endswith(question):
                self._asked = lines
                self.type(f"{answer}\n")
                return


def _coloured(cells: Sequence[Char]) -> str:
    """Return a line of the screen, each run of one colour between its codes."""
    runs = [(style, "".join(cell.data for cell in same)) for style, same in groupby(cells, _style)]
    return "".join(f"\x1b[{style}m{text}\x1b[0m" if style else text for style, text in runs).rstrip()


def _style(cell: Char) -> str:
    codes = ["1"] if cell.bold else []
    if cell.fg in _CODES:
        codes.append(str(_CODES[cell.fg]))
    return ";".join(codes)

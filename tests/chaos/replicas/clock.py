"""Clocks that the nemesis moves: a library, compiled here, changes what one program reads of the wall clock."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path
from typing import Final

__all__ = ["Clock", "compiled"]

_SOURCE: Final = Path(__file__).with_name("clock.c")


def compiled(folder: Path) -> Path | None:
    """Return the library that programs preload; None on a machine without a C compiler, where no clock is moved."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    library = folder / "clock.so"
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(_SOURCE), "-ldl"]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode:
        return None
    library.chmod(0o755)
    return library


class Clock:
    """The wall clock of one program. ``environment`` is what the program is started with."""

    def __init__(self, folder: Path, name: str, library: Path | None) -> None:
        self._file = folder / f"{name}.clock"
        self._file.write_bytes(struct.pack("q", 0))
        self._file.chmod(0o644)
        self.can_move = library is not None
        self.moved = 0
        self.environment = {} if library is None else {"LD_PRELOAD": str(library), "MOVED_CLOCK": str(self._file)}

    def move(self, seconds: int) -> None:
        """Set the clock to so many seconds from the real time."""
        with self._file.open("r+b", buffering=0) as file:
            file.write(struct.pack("q", seconds))
        self.moved = seconds

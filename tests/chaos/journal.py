"""What upstream servers really did: each writes down its starts and every call that it runs, before it answers."""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Entry", "Journal"]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One line: a start (no tool), or a call that was run. Times are those of the system's monotonic clock."""

    server: str
    pid: int
    at: float
    tool: str = ""
    nonce: str = ""


class Journal:
    """The file of one server; programs that are killed leave whole lines in it."""

    def __init__(self, path: Path, server: str) -> None:
        self._path = path
        self._server = server

    def write(self, tool: str = "", nonce: str = "") -> None:
        entry = Entry(server=self._server, pid=os.getpid(), at=time.monotonic(), tool=tool, nonce=nonce)
        line = (json.dumps(asdict(entry)) + "\n").encode()
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(file, line)
        os.close(file)

    def entries(self) -> list[Entry]:
        if not self._path.exists():
            return []
        return [Entry(**json.loads(line)) for line in self._path.read_text(encoding="utf-8").splitlines()]

    def starts(self) -> list[Entry]:
        return [entry for entry in self.entries() if not entry.tool]

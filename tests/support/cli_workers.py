"""A supervisor of `truename serve --workers`, with the processes of its workers."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.cli_ending import PATIENCE

if TYPE_CHECKING:
    import subprocess

    from tests.support.cli_running import Lines


@dataclass
class Served:
    """A supervisor with its workers, which serve at ``url``."""

    supervisor: subprocess.Popen[str]
    url: str
    out: Lines
    err: Lines

    def workers(self) -> dict[int, int]:
        """Return the process of each worker, by its number."""
        pids = Path(f"/proc/{self.supervisor.pid}/task/{self.supervisor.pid}/children").read_text().split()
        return {number: pid for pid in map(int, pids) if (number := _number(pid))}

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.supervisor.send_signal(number)
        status = self.supervisor.wait(PATIENCE)
        self.err.rest()
        return status


def _number(pid: int) -> int:
    # Between fork and exec a process has the environment of its parent.
    environ = Path(f"/proc/{pid}/environ").read_bytes()
    found = re.search(rb'TRUENAME_WORKER=\{"number": (\d+)', environ)
    return int(found[1]) if found else 0

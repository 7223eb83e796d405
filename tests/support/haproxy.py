"""HAProxy before three replicas, as `examples/replicas` configures it: each request goes to the next one."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.error import URLError
from urllib.request import urlopen

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["balanced", "is_installed"]

_CONFIGURATION: Final = Path(__file__).parents[2] / "examples" / "replicas" / "haproxy.cfg"
_PATIENCE: Final = 20.0


def is_installed() -> bool:
    """Return whether HAProxy is here (`apt-get install haproxy`)."""
    return shutil.which("haproxy") is not None


@contextmanager
def balanced(replicas: Sequence[str], log: Path) -> Iterator[str]:
    """Run HAProxy before three replicas (HOST:PORT) while the block lasts; gives its URL."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{found.getsockname()[1]}"
    named = {f"REPLICA_{number}": replica for number, replica in enumerate(replicas, 1)}
    environment = {**os.environ, "BALANCER": address, **named}
    command = ["haproxy", "-db", "-f", str(_CONFIGURATION)]
    with log.open("wb") as output, subprocess.Popen(command, env=environment, stdout=output, stderr=output) as program:
        try:
            until = time.monotonic() + _PATIENCE
            while not _answers(f"http://{address}/readyz"):
                assert program.poll() is None, log.read_text("utf-8")
                assert time.monotonic() < until, log.read_text("utf-8")
                time.sleep(0.05)
            yield f"http://{address}"
        finally:
            program.kill()


def _answers(url: str) -> bool:
    with suppress(URLError, OSError), urlopen(url, timeout=2):
        return True
    return False

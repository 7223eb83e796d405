"""One of the workers of `truename serve --workers`: its number, its socket, and its link to the supervisor.

The link is a pair of connected sockets. A worker writes JSON lines on it; the supervisor writes one line, when the
others serve too. Its end means that the supervisor is dead, and nobody would end this worker any more.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from dataclasses import dataclass, field
from typing import Final

__all__ = ["WORKER", "Worker"]

WORKER: Final = "TRUENAME_WORKER"
"""The variable in which the supervisor describes a worker. Who reads it removes it: servers do not inherit it."""

# Seconds until calls are told that they are interrupted, and until the process ends whatever else happens.
_NOTICE: Final = 0.2
_LAST: Final = 10.0


@dataclass(frozen=True, kw_only=True)
class Worker:
    """A worker: ``number`` of ``count``. ``reports`` is True for the one that prints the report at the start.

    ``listener`` and ``link`` are file descriptors, ``directory`` is private to the workers of one supervisor.
    """

    number: int
    count: int
    listener: int
    link: int
    directory: str
    reports: bool
    _others_serve: threading.Event = field(default_factory=threading.Event, compare=False)

    @classmethod
    def here(cls) -> Worker | None:
        """Return the worker that this process is; None if no supervisor started it. A second call returns None."""
        described = os.environ.pop(WORKER, None)
        if described is None:
            return None
        worker = cls(**json.loads(described))
        for descriptor in (worker.listener, worker.link):
            os.set_inheritable(descriptor, False)
        threading.Thread(target=worker._follow, name="truename-supervisor", daemon=True).start()
        return worker

    def listening_socket(self) -> socket.socket:
        """Return the socket at which it listens."""
        return socket.socket(fileno=self.listener)

    @property
    def label(self) -> str:
        """How messages name it."""
        return f"worker {self.number}"

    def tell(self, **said: object) -> None:
        """Tell the supervisor something; it may be gone."""
        try:
            os.write(self.link, json.dumps(said).encode() + b"\n")
        except OSError:
            return

    def wait_for_others(self) -> None:
        """Wait until the supervisor says that the others serve, or have failed once."""
        self._others_serve.wait()

    def _follow(self) -> None:
        while os.read(self.link, 1):
            self._others_serve.set()
        self._others_serve.set()
        # As if two signals came, of which the second interrupts calls; two of one kind may become one.
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(_NOTICE)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(_LAST)
        os._exit(1)

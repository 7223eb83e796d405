"""One of the workers of `truename serve --workers`: its number, its socket, and its link to the supervisor.

The link is a pair of connected sockets. A worker writes JSON lines on it; the supervisor writes one line, when the
others serve too. Its end means that the supervisor is dead, and nobody would end this worker any more.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import threading
import time
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote

__all__ = ["WORKER", "Worker"]

WORKER: Final = "TRUENAME_WORKER"
"""The variable in which the supervisor describes a worker. Who reads it removes it: servers do not inherit it."""

# OpenTelemetry's variable and attribute: without it a collector would take the counts of all workers for one's.
_RESOURCE: Final = "OTEL_RESOURCE_ATTRIBUTES"
_INSTANCE: Final = "service.instance.id"
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
        os.environ[_RESOURCE] = _of_instance(os.environ.get(_RESOURCE, ""), worker.number)
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
        """Wait until the supervisor says that the others serve, or have failed once, or `wait_no_longer` is called."""
        self._others_serve.wait()

    def wait_no_longer(self) -> None:
        """End the wait of a thread: the process does not end before that."""
        self._others_serve.set()

    def _follow(self) -> None:
        while os.read(self.link, 1):
            self._others_serve.set()
        self._others_serve.set()
        # The supervisor cannot remove it any more.
        shutil.rmtree(self.directory, ignore_errors=True)
        # As if two signals came, of which the second interrupts calls; two of one kind may become one.
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(_NOTICE)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(_LAST)
        os._exit(1)


def _of_instance(attributes: str, number: int) -> str:
    """Return resource attributes with an instance id that only this worker has.

    >>> _of_instance("team=a,service.instance.id=pod-7", 2)
    'team=a,service.instance.id=pod-7-worker-2'
    """
    pairs = [pair.strip() for pair in attributes.split(",") if pair.strip()]
    given = [pair.partition("=")[2] for pair in pairs if pair.partition("=")[0].strip() == _INSTANCE]
    others = [pair for pair in pairs if pair.partition("=")[0].strip() != _INSTANCE]
    instance = given[-1].strip() if given else quote(socket.gethostname())
    return ",".join((*others, f"{_INSTANCE}={instance}-worker-{number}"))

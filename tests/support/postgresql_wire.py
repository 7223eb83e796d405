"""A wire to a PostgreSQL server that can be cut or silenced at a given message."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Self
from urllib.parse import quote

if TYPE_CHECKING:
    from tests.support.postgresql_server import PostgresqlServer

__all__ = ["Wire"]

_SOCKET = ".s.PGSQL.5432"


class Wire:
    """Forwards connections to a server.

    ``cut_before``: the first connection whose client sends this text is cut before the server has it; ``cut_after``:
    when the server has it and answers, and with ``is_down_then`` nobody is connected any more. With ``is_silent``
    nothing is forwarded any more, and no connection is closed.
    """

    def __init__(self, server: PostgresqlServer) -> None:
        self.server: PostgresqlServer | None = server
        self._directory = TemporaryDirectory(prefix="tn-wire-", dir="/tmp")
        self.cut_before = self.cut_after = b""
        self.is_silent = self.is_down_then = False
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(f"{self._directory.name}/{_SOCKET}")
        self._listening.listen()
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def url(self, scope: str) -> str:
        """Return the URL of a scope, over this wire."""
        assert self.server is not None
        there, here = (quote(str(path), safe="/") for path in (self.server.directory, self._directory.name))
        return f"{self.server.url.replace(there, here)}&scope={scope}"

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.socket(socket.AF_UNIX)
                self._open += (client, server)
                if self.server is None:
                    client.close()
                    continue
                try:
                    server.connect(str(self.server.directory / _SOCKET))
                except OSError:
                    client.close()
                    continue
                cuts = threading.Event()
                for source, target in ((client, server), (server, client)):
                    threading.Thread(target=self._forward, args=(source, target, client, cuts), daemon=True).start()

    def _forward(
        self, source: socket.socket, target: socket.socket, client: socket.socket, cuts: threading.Event
    ) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                if self.is_silent:
                    continue
                if source is client:
                    if self.cut_before and self.cut_before in data:
                        self.cut_before = b""
                        break
                    if self.cut_after and self.cut_after in data:
                        self.cut_after = b""
                        cuts.set()
                elif cuts.is_set():
                    self.server = None if self.is_down_then else self.server
                    break
                target.sendall(data)
        for one in (source, target):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def cut_all(self) -> None:
        """Cut all connections."""
        for one in self._open:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def cut(self) -> None:
        """Cut all connections, and connect nobody from now on."""
        self.server = None
        self.cut_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.close()
        for one in self._open:
            one.close()
        self._directory.cleanup()

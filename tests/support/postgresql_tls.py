"""TLS before a PostgreSQL server whose programs were built without it: what a client sees of one with ``ssl = on``."""

from __future__ import annotations

import socket
import ssl
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from tests.support.postgresql_server import PostgresqlServer
    from tests.support.tls import Pair

__all__ = ["TlsFront"]

_SSL_REQUEST = (8).to_bytes(4, "big") + (80_877_103).to_bytes(4, "big")


class TlsFront:
    """Listens on a port of 127.0.0.1, answers a client's request for TLS, and passes on what it says to a server."""

    def __init__(self, server: PostgresqlServer, pair: Pair) -> None:
        self._server = server
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(pair.certificate, pair.key)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, plain: socket.socket) -> None:
        with suppress(OSError), plain, socket.socket(socket.AF_UNIX) as server:
            if plain.recv(8) != _SSL_REQUEST:
                # As a server does whose `pg_hba.conf` has `hostssl` only.
                return
            plain.sendall(b"S")
            with self._context.wrap_socket(plain, server_side=True) as client:
                server.connect(str(self._server.directory / ".s.PGSQL.5432"))
                back = threading.Thread(target=_copy, args=(server, client), daemon=True)
                back.start()
                _copy(client, server)
                back.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.close()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)

"""New places for state in a PostgreSQL server, which all tests of a session share and the first of them starts."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from truename.files.lock import locked
from truename.storage import StateLocation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.postgresql_server import PostgresqlServer

__all__ = ["DIRECTORY", "new_directory", "new_place", "new_url", "remove_shared_server", "shared_server"]

DIRECTORY: Final = "TRUENAME_TEST_POSTGRESQL"
"""The environment variable with the directory of the server of this test session."""


def new_directory() -> Path:
    """Return a new directory for a server. Its path is short enough for that of a socket; others may enter it."""
    directory = Path(tempfile.mkdtemp(prefix="tn-pg-", dir="/tmp" if Path("/tmp").is_dir() else None))
    directory.chmod(0o755)
    return directory


def _server_in(directory: Path) -> PostgresqlServer:
    # psycopg takes 100 ms to load.
    from tests.support.postgresql_server import PostgresqlServer  # noqa: PLC0415

    return PostgresqlServer(directory / "server")


def shared_server() -> PostgresqlServer:
    """Return the server of this test session; the first that asks for it starts it."""
    directory = Path(os.environ[DIRECTORY])
    server = _server_in(directory)
    with locked(directory / "started", shared=False, patience=60):
        if not server.is_running:
            server.create()
            server.start()
    return server


def new_url() -> str:
    """Return the URL of a scope that nobody used yet."""
    return f"{shared_server().url}&scope=t{secrets.token_hex(8)}"


@contextmanager
def new_place() -> Iterator[StateLocation]:
    """Return a scope that nobody used yet, and close the connections to it that are left open."""
    location = StateLocation.of(new_url())
    try:
        yield location
    finally:
        from truename.storage.postgresql_link import unlink  # noqa: PLC0415 - psycopg, which few tests need

        while unlink(location):
            pass


def remove_shared_server(directory: Path) -> None:
    """Stop the server of a test session, if there is one, and remove its directory."""
    if (directory / "server").exists():
        _server_in(directory).remove()
    shutil.rmtree(directory, ignore_errors=True)

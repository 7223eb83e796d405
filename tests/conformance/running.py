"""The fixture, and the gateway in front of a server, as programs of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from tests.support.haproxy import balanced
from tests.support.postgresql_server import PostgresqlServer
from tests.support.state_places import new_directory, remove_shared_server

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["Fixture", "gateway", "replicas", "running"]

_ROOT: Final = Path(__file__).parents[2]
_PATIENCE: Final = 10.0
_REPLICAS: Final = 3


@dataclass(frozen=True, slots=True)
class Fixture:
    """How the fixture is run: the eras that it does without, and how it is spoken to."""

    without: str | None = None
    transport: str = "http"

    @property
    def _command(self) -> list[str]:
        return [
            sys.executable,
            "-m",
            "tests.conformance.fixture",
            *(["--without", self.without] if self.without else []),
        ]

    @contextmanager
    def served(self, folder: Path) -> Iterator[str]:
        """Run it over HTTP; gives its address."""
        with running(self._command, folder / "fixture.log") as program:
            assert program.stdout is not None
            yield program.stdout.readline().strip()

    @contextmanager
    def entry(self, folder: Path) -> Iterator[dict[str, Any]]:
        """Give the entry of a client's configuration for it, and run it if that has to be done."""
        if self.transport == "stdio":
            program, *arguments = self._command
            yield {"command": program, "args": [*arguments, "--stdio"], "env": {"PYTHONPATH": str(_ROOT)}}
            return
        with self.served(folder) as url:
            yield {"type": "http", "url": url}


@contextmanager
def gateway(entries: Mapping[str, Mapping[str, Any]], folder: Path, *, state: str = "memory") -> Iterator[str]:
    """Run the gateway in front of servers, which keep their own names as far as they can; gives its address.

    Raises `RuntimeError` if the gateway ends instead.
    """
    folder.mkdir(parents=True, exist_ok=True)
    config, log = folder / "mcp.json", folder / "gateway.log"
    options = ["--http", "127.0.0.1:0", "--style", "on-conflict", "--json"]
    document = {"mcpServers": dict(entries), "truename": {"state": state}}
    config.write_text(json.dumps(document), encoding="utf-8")
    with running([sys.executable, "-m", "truename", "serve", str(config), *options], log) as program:
        assert program.stdout is not None
        yield _url(program.stdout, log)


@contextmanager
def replicas(entries: Mapping[str, Mapping[str, Any]], folder: Path) -> Iterator[str]:
    """Run three gateways on one PostgreSQL behind HAProxy; each request goes to the next one. Gives the address."""
    folder.mkdir(parents=True, exist_ok=True)
    directory = new_directory()
    server = PostgresqlServer(directory / "server")
    with ExitStack() as stack:
        stack.callback(remove_shared_server, directory)
        server.create()
        server.start()
        urls = [
            urlsplit(stack.enter_context(gateway(entries, folder / f"replica-{number}", state=server.url)))
            for number in range(_REPLICAS)
        ]
        balancer = stack.enter_context(balanced([url.netloc for url in urls], folder / "haproxy.log"))
        yield f"{balancer}{urls[0].path}"


def _url(output: IO[str], log: Path) -> str:
    document = ""
    for line in output:
        document += line
        if line == "}\n":
            url: str = json.loads(document)["url"]
            return url
    raise RuntimeError(f"The gateway did not start:\n{log.read_text(encoding='utf-8')}")


@contextmanager
def running(command: Sequence[str], log: Path, env: Mapping[str, str] | None = None) -> Iterator[subprocess.Popen[str]]:
    """Run a program while the block lasts; what it says beside its output goes to ``log``."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with (
        log.open("w", encoding="utf-8") as errors,
        subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.PIPE, stderr=errors, text=True, env=env) as program,
    ):
        try:
            yield program
        finally:
            program.terminate()
            try:
                program.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                program.kill()

"""Servers that others wrote, from the package registries, and one gateway in front of all of them."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tarfile
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

from tests.conformance.running import gateway, running
from tests.conformance.suite import HOME, SuiteMissing, install, node_and_npm

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

__all__ = ["Other", "others", "served"]

_PATIENCE: Final = 60.0
_PAUSE: Final = 0.05
_EVERYTHING: Final = ("@modelcontextprotocol/server-everything", "2026.8.31")
_SOURCES: Final = "examples/servers/everything-server"


@dataclass(frozen=True, slots=True)
class Other:
    """A server over HTTP: how it is started, with the port in place of ``PORT`` in arguments and environment."""

    key: str
    name: str
    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)

    @contextmanager
    def served(self, folder: Path) -> Iterator[str]:
        """Run it; gives its address when it answers. Raises `RuntimeError` if it does not."""
        port = _free_port()
        command = [part.replace("PORT", str(port)) for part in self.command]
        env = {key: one.replace("PORT", str(port)) for key, one in self.env.items()}
        log = folder / f"{self.key}.log"
        with running(command, log, {**os.environ, **env}) as program:
            _wait(port, program, log)
            yield f"http://127.0.0.1:{port}/mcp"


@contextmanager
def served(servers: Sequence[Other], folder: Path) -> Iterator[Mapping[str, tuple[str, str]]]:
    """Run the servers, and the gateway in front of all; gives by key a server's own address, and that behind it."""
    with ExitStack() as stack:
        urls = {server.key: stack.enter_context(server.served(folder)) for server in servers}
        entries = {key: {"type": "http", "url": url} for key, url in urls.items()}
        main = stack.enter_context(gateway(entries, folder))
        yield {key: (url, f"{main}/only/{key}") for key, url in urls.items()}


def others() -> list[Other]:
    """Install the servers unless they are there. Raises `SuiteMissing`."""
    node, _ = node_and_npm()
    package, wanted = _EVERYTHING
    installed = install(package, wanted, HOME / "everything")
    sdk = version("mcp")
    python, port = (sys.executable, "-m"), ("--port", "PORT")
    return [
        Other("sdk", f"mcp {sdk}, its everything-server", (*python, "mcp_everything_server", *port), _sdk(sdk)),
        Other("fast", f"fastmcp {version('fastmcp')}", (*python, "tests.conformance.fast", *port)),
        Other(
            "npm",
            f"{package} {wanted}",
            (str(node), str(installed / "dist" / "index.js"), "streamableHttp"),
            {"PORT": "PORT"},
        ),
    ]


def _sdk(wanted: str) -> Mapping[str, str]:
    """Return the environment in which the SDK's own example can be run: it is in the source distribution alone."""
    place = HOME / f"mcp-{wanted}"
    if not place.exists():
        _unpack(_downloaded(wanted), place)
    return {"PYTHONPATH": str(place)}


def _downloaded(wanted: str) -> Path:
    folder = HOME / "downloads"
    options = ["--quiet", "--no-deps", "--no-binary", "mcp", "--dest", str(folder)]
    command = [sys.executable, "-m", "pip", "download", *options, f"mcp=={wanted}"]
    archive = folder / f"mcp-{wanted}.tar.gz"
    if subprocess.run(command, check=False).returncode or not archive.exists():
        raise SuiteMissing(f"The sources of mcp {wanted} cannot be had. See what pip said above.")
    return archive


def _unpack(archive: Path, place: Path) -> None:
    unpacked = place.with_suffix(".part")
    shutil.rmtree(unpacked, ignore_errors=True)
    with tarfile.open(archive) as tar:
        tar.extractall(unpacked, filter="data")
    (unpacked / f"mcp-{place.name.removeprefix('mcp-')}" / _SOURCES).rename(place)
    shutil.rmtree(unpacked)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
        return port


def _wait(port: int, program: subprocess.Popen[str], log: Path) -> None:
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until and program.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(_PAUSE)
        else:
            return
    raise RuntimeError(f"The server did not start:\n{log.read_text(encoding='utf-8')}")

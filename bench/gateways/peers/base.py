"""What a compared gateway is: where it is installed, what it lacks, and how it is started in front of servers."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from bench.gateways.cases import Setup
    from bench.gateways.certificate import Certificate
    from bench.gateways.environments import Environment

__all__ = ["HANDSHAKE_ONLY", "MESSAGES_TO_4_MIB", "Address", "Launch", "Peer", "Place"]

# What several gateways lack.
HANDSHAKE_ONLY: Final = {"2026-07-28": "it speaks the handshake versions"}
MESSAGES_TO_4_MIB: Final = {"messages over 4 MiB": "it refuses larger requests (413) and has no setting for that"}


@dataclass(frozen=True)
class Address:
    """A synthetic server: its address, or the command that starts it."""

    key: str
    url: str = ""
    command: tuple[str, ...] = ()

    def entry(self) -> dict[str, object]:
        """Return it as an entry of ``mcpServers``."""
        if self.url:
            return {"type": "http", "url": self.url}
        return {"command": self.command[0], "args": list(self.command[1:])}


@dataclass(frozen=True)
class Place:
    """What a gateway is started with: its servers, its port, a folder of its own for one start."""

    setup: Setup
    servers: tuple[Address, ...]
    port: int
    folder: Path
    # Where the gateway is installed.
    installed: Path
    certificate: Certificate
    # Where spans go: a process that is not measured.
    spans_port: int

    @property
    def base_url(self) -> str:
        scheme = "https" if self.setup.tls_to_clients else "http"
        return f"{scheme}://localhost:{self.port}"

    @property
    def trust(self) -> dict[str, str]:
        """Return the variables by which programs in Python and Node trust the certificate of the run."""
        if not self.setup.tls_to_servers:
            return {}
        path = str(self.certificate.certificate)
        return {"SSL_CERT_FILE": path, "NODE_EXTRA_CA_CERTS": path}

    def write(self, name: str, content: object) -> str:
        """Write a file of JSON into the folder, and return its path."""
        path = self.folder / name
        path.write_text(json.dumps(content))
        return str(path)

    def described(self) -> str:
        """Write what the programs in `bench/gateways/programs` read, and return the path."""
        tls = [str(self.certificate.certificate), str(self.certificate.key)] if self.setup.tls_to_clients else []
        servers = {one.key: one.entry() for one in self.servers}
        return self.write("place.json", {"port": self.port, "servers": servers, "tls": tls})


@dataclass(frozen=True)
class Launch:
    """How a gateway is started, and how clients reach it."""

    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    path: str = "/mcp"
    headers: Mapping[str, str] = field(default_factory=dict)
    # Registers the servers with a gateway that reads them from no file, and returns the path to them. Raises OSError.
    register: Callable[[], str] | None = None


@dataclass(frozen=True)
class Peer:
    """One of the compared gateways."""

    name: str
    title: str
    about: str
    # None: the load asks the first server itself.
    launch: Callable[[Place], Launch] | None
    # None: the project's own.
    environment: Environment | None = None
    # The reason why it does not do what a case needs, by the need (`bench.gateways.cases.needs`).
    lacks: Mapping[str, str] = field(default_factory=dict)

    def reason_against(self, needed: tuple[str, ...]) -> str:
        """Return why it cannot do a case; empty if it can."""
        return "; ".join(self.lacks[need] for need in needed if need in self.lacks)

    def shows(self, setup: Setup) -> int:
        """Return how many tools it lists in a set-up."""
        return setup.tools if self.launch else setup.tools_each

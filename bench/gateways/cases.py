"""What is measured: set-ups that gateways stand in front of, and the workloads that are sent through them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Final, Literal

from bench.gateways.servers import MODERN

__all__ = ["FULL", "HANDSHAKE", "LARGE", "MODERN", "SHORT", "Setup", "Workload", "needs"]

HANDSHAKE: Final = "2025-06-18"
VERSIONS: Final = (HANDSHAKE, MODERN)
# From this size on, gateways with a limit on messages have it raised.
LARGE: Final = 1_000_000
_SMALL: Final = 32


@dataclass(frozen=True)
class Setup:
    """What a gateway stands in front of."""

    name: str
    transport: Literal["http", "stdio"] = "http"
    servers: int = 3
    tools_each: int = 10
    tls_to_servers: bool = False
    tls_to_clients: bool = False
    largest: int = _SMALL

    @property
    def tools(self) -> int:
        return self.servers * self.tools_each


@dataclass(frozen=True)
class Workload:
    """What is asked: calls on so many connections with messages of so many bytes, or the whole list on one."""

    kind: Literal["call", "list"] = "call"
    version: str = HANDSHAKE
    connections: int = 32
    size: int = _SMALL

    def __str__(self) -> str:
        if self.kind == "list":
            return f"whole list, {self.version}"
        connections = "1 connection" if self.connections == 1 else f"{self.connections} connections"
        return f"{connections}, {self.size:,} bytes, {self.version}"


def needs(setup: Setup, workload: Workload) -> tuple[str, ...]:
    """Return what a gateway must be able to do for a case: the keys under which peers say what they lack."""
    asked = {
        f"{setup.transport} servers": True,
        "several servers": setup.servers > 1,
        "tls to servers": setup.tls_to_servers,
        "tls to clients": setup.tls_to_clients,
        "messages over 4 MiB": workload.size > 4 * 1024 * 1024,
        workload.version: True,
    }
    return tuple(need for need, is_needed in asked.items() if is_needed)


def _calls(*connections: int) -> tuple[Workload, ...]:
    return tuple(Workload("call", version, number) for number, version in product(connections, VERSIONS))


_LISTS: Final = tuple(Workload("list", version, 1) for version in VERSIONS)
_SIZES: Final = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)

FULL: Final[dict[Setup, tuple[Workload, ...]]] = {
    Setup("base"): (*_calls(1, 32, 256), *_LISTS),
    Setup("messages", largest=max(_SIZES)): tuple(Workload("call", HANDSHAKE, 4, size) for size in _SIZES),
    Setup("tls-servers", tls_to_servers=True): _calls(32),
    Setup("tls", tls_to_servers=True, tls_to_clients=True): _calls(1, 32, 256),
    Setup("stdio", "stdio", servers=1): _calls(1, 32),
    Setup("stdio-3", "stdio"): _calls(1, 32, 256),
    **{
        Setup(f"tools-{10 * each}", servers=10, tools_each=each): (*_calls(32), *_LISTS) for each in (1, 10, 100, 1_000)
    },
    **{Setup(f"servers-{number}", servers=number): _calls(32) for number in (1, 10, 100, 300)},
}
SHORT: Final[dict[Setup, tuple[Workload, ...]]] = {
    Setup("base"): (*_calls(1, 32), _LISTS[0]),
    Setup("messages", largest=1_000_000): (Workload("call", HANDSHAKE, 4, 1_000_000),),
    Setup("stdio", "stdio", servers=1): _calls(32),
}

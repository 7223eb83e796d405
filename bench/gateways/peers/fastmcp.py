"""FastMCP's proxy: over clients that stay connected, and as it is by default."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.gateways.environments import PythonEnvironment
from bench.gateways.peers.base import MESSAGES_TO_4_MIB, Launch, Peer

if TYPE_CHECKING:
    from bench.gateways.peers.base import Place

__all__ = ["PEERS"]

_PROGRAM: Final = str(Path(__file__).resolve().parents[1] / "programs" / "fastmcp_gateway.py")
_ENVIRONMENT: Final = PythonEnvironment(("fastmcp==4.2.3", "uvloop==0.23.0", "httptools==0.9.0"))


def _launch(place: Place, mode: str) -> Launch:
    return Launch((str(place.installed / "bin" / "python"), _PROGRAM, place.described(), mode), place.trust)


PEERS: Final = (
    Peer(
        "fastmcp-shared",
        "FastMCP, shared clients",
        "`create_proxy` over a connected client for each server, mounted, JSON answers",
        partial(_launch, mode="shared"),
        _ENVIRONMENT,
        lacks=MESSAGES_TO_4_MIB,
    ),
    Peer(
        "fastmcp",
        "FastMCP, default",
        "`create_proxy` over each server's address, mounted: it connects anew for each request",
        partial(_launch, mode="default"),
        _ENVIRONMENT,
        lacks=MESSAGES_TO_4_MIB,
    ),
)

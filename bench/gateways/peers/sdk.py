"""A gateway of forty lines on the official SDK for Python, as one would write it by hand."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.gateways.environments import PythonEnvironment
from bench.gateways.peers.base import Launch, Peer

if TYPE_CHECKING:
    from bench.gateways.peers.base import Place

__all__ = ["PEERS"]

_PROGRAM: Final = str(Path(__file__).resolve().parents[1] / "programs" / "sdk_gateway.py")


def _launch(place: Place) -> Launch:
    return Launch((str(place.installed / "bin" / "python"), _PROGRAM, place.described()), place.trust)


PEERS: Final = (
    Peer(
        "sdk",
        "MCP SDK by hand",
        "the SDK's low-level server, one connected client a server, JSON answers, uvicorn with uvloop and httptools",
        _launch,
        PythonEnvironment(("mcp==2.3.0", "uvicorn==0.54.0", "uvloop==0.23.0", "httptools==0.9.0")),
    ),
)

"""mcp-proxy of npm: one server over stdio becomes one over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bench.gateways.environments import NodeEnvironment
from bench.gateways.peers.base import Launch, Peer

if TYPE_CHECKING:
    from bench.gateways.peers.base import Place

__all__ = ["PEERS"]


def _launch(place: Place) -> Launch:
    program = str(place.installed / "node_modules" / ".bin" / "mcp-proxy")
    options = ("--host", "127.0.0.1", "--port", str(place.port), "--server", "stream")
    return Launch((program, *options, "--", *place.servers[0].command))


PEERS: Final = (
    Peer(
        "mcp-proxy",
        "mcp-proxy (npm)",
        "one server over stdio, as it is by default",
        _launch,
        NodeEnvironment(("mcp-proxy@6.7.19",)),
        lacks={
            "http servers": "it reaches its server over stdio only",
            "several servers": "it stands in front of one server",
        },
    ),
)

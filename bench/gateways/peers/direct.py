"""No gateway: the first of the servers, asked by the load itself."""

from __future__ import annotations

from typing import Final

from bench.gateways.peers.base import Peer

__all__ = ["PEERS"]

PEERS: Final = (
    Peer(
        "direct",
        "Direct",
        "no gateway: the load asks one server; the processor time is that of the servers' process",
        launch=None,
        lacks={"stdio servers": "a server over stdio listens on no port"},
    ),
)

"""The compared gateways, one file each: add one by adding its `PEERS` here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bench.gateways.peers import contextforge, direct, envoy, fastmcp, litellm, mcp_proxy, sdk, truename

if TYPE_CHECKING:
    from bench.gateways.peers.base import Peer

__all__ = ["ALL", "OURS", "SHORT"]

_MODULES: Final = (direct, truename, envoy, sdk, fastmcp, litellm, contextforge, mcp_proxy)
ALL: Final[dict[str, Peer]] = {peer.name: peer for module in _MODULES for peer in module.PEERS}
SHORT: Final = ("direct", "truename", "envoy")
# A wrong answer of one of these ends the run with status 1; that of another is reported.
OURS: Final = ("direct", *(peer.name for peer in truename.PEERS))

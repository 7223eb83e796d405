"""Test support: session ids, used by tests of several modules."""

from __future__ import annotations

from typing import Any

from truename.gateway.http.session_ids import Handshake, handshake_of

ANN = "ann at /mcp"


CAPABILITIES = {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {"listChanged": True}}


INFO = {"name": "claude-code", "version": "2.1.330", "title": "Claude Code", "websiteUrl": "https://example.com"}


def hello(version: str = "2025-11-25", capabilities: Any = CAPABILITIES, info: Any = INFO) -> dict[str, Any]:
    params = {"protocolVersion": version, "capabilities": capabilities, "clientInfo": info}
    return {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}


def agreed(message: dict[str, Any]) -> Handshake:
    found = handshake_of(message)
    assert found is not None
    return found

"""Test support: session ids, used by tests of several modules."""

from __future__ import annotations

import json
from typing import Any

from truename.gateway.protocol.session_ids import Handshake, handshake_in

ANN = "ann at /mcp"


CAPABILITIES = {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {"listChanged": True}}


INFO = {"name": "claude-code", "version": "2.1.330", "title": "Claude Code", "websiteUrl": "https://example.com"}


def hello(version: str = "2025-11-25", capabilities: Any = CAPABILITIES, info: Any = INFO) -> bytes:
    params = {"protocolVersion": version, "capabilities": capabilities, "clientInfo": info}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}).encode()


def agreed(body: bytes) -> Handshake:
    found = handshake_in(body)
    assert found is not None
    return found

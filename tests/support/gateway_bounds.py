"""Test support: bounds, used by tests of several modules."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.gateway.conftest import Raw

META = (
    '{"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}, '
    '"progressToken": 1}'
)


WHO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}


HELLO = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": WHO}


JSON = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


def _call(arguments: str, id: str = "1") -> str:
    params = f'{{"name": "w_echo", "arguments": {arguments}, "_meta": {META}}}'
    return f'{{"jsonrpc": "2.0", "id": {id}, "method": "tools/call", "params": {params}}}'


async def _headers(http: Raw, era: str) -> dict[str, str]:
    if era != "legacy":
        return {**JSON, "mcp-protocol-version": era, "mcp-method": "tools/call", "mcp-name": "w_echo"}
    answer = await http.http.post(f"{http.address}/mcp", json=HELLO, headers=JSON)
    return {**JSON, "mcp-protocol-version": "2025-11-25", "mcp-session-id": answer.headers["mcp-session-id"]}


def _answer(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text.rpartition("data: ")[2])
    return found

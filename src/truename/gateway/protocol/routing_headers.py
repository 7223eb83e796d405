"""The headers of streamable HTTP that repeat what a request's body says (MCP 2026-07-28; SEP-2243)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    NAME_BEARING_METHODS,
    encode_header_value,
    mcp_param_headers,
)

from truename.gateway.protocol.json_text import read_out

__all__ = ["VERSION_HEADER", "routing_headers"]

VERSION_HEADER: Final[str] = MCP_PROTOCOL_VERSION_HEADER
# By method, the parameter that a header repeats: those of the protocol, and of the extension for tasks.
_NAMED: Final = {**NAME_BEARING_METHODS, **dict.fromkeys(("tasks/get", "tasks/update", "tasks/cancel"), "taskId")}


def routing_headers(
    method: str, params: Mapping[str, Any], header_map: Mapping[tuple[str, ...], str]
) -> dict[str, str]:
    """Return the headers of a request; ``header_map`` says which arguments of a call they repeat.

    >>> routing_headers("tools/call", {"name": "Größe"}, {})
    {'mcp-method': 'tools/call', 'mcp-name': '=?base64?R3LDtsOfZQ==?='}
    """
    headers = {MCP_METHOD_HEADER: method}
    name = params.get(_NAMED.get(method, ""))
    if isinstance(name, str):
        headers[MCP_NAME_HEADER] = encode_header_value(name)
    if method == "tools/call":
        arguments = read_out(params.get("arguments")) if header_map else None
        if isinstance(arguments, Mapping):
            headers |= mcp_param_headers(header_map, arguments)
    return headers

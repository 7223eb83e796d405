"""Constants of the specification: protocol versions, methods, error codes, and the names of headers and `_meta` keys.

Source: MCP 2024-11-05 to 2026-07-28, and JSON-RPC 2.0, section 5.1.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "CLIENT_CAPABILITIES_META_KEY",
    "CLIENT_INFO_META_KEY",
    "CONNECTION_CLOSED",
    "HANDSHAKE_VERSIONS",
    "HEADER_MISMATCH",
    "INTERNAL_ERROR",
    "INVALID_PARAMS",
    "INVALID_REQUEST",
    "LOG_LEVELS",
    "LOG_LEVEL_META_KEY",
    "METHOD_HEADER",
    "METHOD_NOT_FOUND",
    "MISSING_REQUIRED_CLIENT_CAPABILITY",
    "MODERN_VERSIONS",
    "NAME_HEADER",
    "PARSE_ERROR",
    "PROTOCOL_VERSION_META_KEY",
    "REQUEST_TIMEOUT",
    "SERVER_INFO_META_KEY",
    "SESSION_HEADER",
    "SUBSCRIPTION_META_KEY",
    "TASKS_EXTENSION",
    "TASKS_VERSION",
    "UNSUPPORTED_PROTOCOL_VERSION",
    "URL_ELICITATION_REQUIRED",
    "VERSION_HEADER",
    "is_modern",
]

# Oldest first: those that begin with `initialize`, and those in which each request stands alone.
HANDSHAKE_VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN_VERSIONS: Final = ("2026-07-28",)
# The one handshake version, and the extension since, that have tasks.
TASKS_VERSION: Final = "2025-11-25"
TASKS_EXTENSION: Final = "io.modelcontextprotocol/tasks"

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
CONNECTION_CLOSED: Final = -32000
REQUEST_TIMEOUT: Final = -32001
HEADER_MISMATCH: Final = -32020
MISSING_REQUIRED_CLIENT_CAPABILITY: Final = -32021
UNSUPPORTED_PROTOCOL_VERSION: Final = -32022
URL_ELICITATION_REQUIRED: Final = -32042

VERSION_HEADER: Final = "mcp-protocol-version"
METHOD_HEADER: Final = "mcp-method"
NAME_HEADER: Final = "mcp-name"
SESSION_HEADER: Final = "mcp-session-id"

PROTOCOL_VERSION_META_KEY: Final = "io.modelcontextprotocol/protocolVersion"
CLIENT_INFO_META_KEY: Final = "io.modelcontextprotocol/clientInfo"
CLIENT_CAPABILITIES_META_KEY: Final = "io.modelcontextprotocol/clientCapabilities"
SERVER_INFO_META_KEY: Final = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION_META_KEY: Final = "io.modelcontextprotocol/subscriptionId"
LOG_LEVEL_META_KEY: Final = "io.modelcontextprotocol/logLevel"

# From the most talkative on.
LOG_LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


def is_modern(version: str | None) -> bool:
    """Tell whether a protocol version belongs to the stateless era (2026-07-28 and later)."""
    return version in MODERN_VERSIONS

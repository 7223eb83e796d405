"""Words of the protocol that all parts of the gateway share: versions, errors, capabilities."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from mcp_types import CLIENT_CAPABILITIES_META_KEY, SERVER_INFO_META_KEY
from mcp_types.jsonrpc import URL_ELICITATION_REQUIRED
from mcp_types.methods import SPEC_CLIENT_METHODS
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

if TYPE_CHECKING:
    from truename.gateway.mcp.requests import Request

__all__ = [
    "MODERN_PROTOCOL_VERSIONS",
    "SERVER_INFO_META_KEY",
    "SPEC_CLIENT_METHODS",
    "TASKS_EXTENSION",
    "TASKS_VERSION",
    "URL_ELICITATION_REQUIRED",
    "MCPError",
    "OnProgress",
    "declared_by",
    "is_modern",
]


class MCPError(Exception):
    """A JSON-RPC error: what answers a request in place of a result (JSON-RPC 2.0, section 5.1).

    >>> str(MCPError(-32601, "Method not found", "x/y"))
    'Method not found'
    """

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(code, message, data)
        self.code = code
        self.message = message
        self.data = data

    def __str__(self) -> str:
        return self.message


OnProgress = Callable[[float, float | None, str | None], Awaitable[None]]
"""Gets how far a request is: the progress, the total and a message."""

# The one handshake version, and the extension since, that have tasks.
TASKS_VERSION: Final = "2025-11-25"
TASKS_EXTENSION: Final = "io.modelcontextprotocol/tasks"


def is_modern(version: str | None) -> bool:
    """Tell whether a protocol version belongs to the stateless era (2026-07-28 and later)."""
    return version in MODERN_PROTOCOL_VERSIONS


def declared_by(request: Request) -> Mapping[str, Any]:
    """Return the client's capabilities as a request of the stateless era states them."""
    meta = (request.params or {}).get("_meta")
    said = meta.get(CLIENT_CAPABILITIES_META_KEY) if isinstance(meta, Mapping) else None
    return said if isinstance(said, Mapping) else {}

"""Words of the protocol that all parts of the gateway share: versions, errors, capabilities."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from truename.gateway.protocol.specification import (
    CLIENT_CAPABILITIES_META_KEY,
    SERVER_INFO_META_KEY,
    TASKS_EXTENSION,
    TASKS_VERSION,
    URL_ELICITATION_REQUIRED,
    is_modern,
)

if TYPE_CHECKING:
    from truename.gateway.mcp.requests import Request

__all__ = [
    "SERVER_INFO_META_KEY",
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


def declared_by(request: Request) -> Mapping[str, Any]:
    """Return the client's capabilities as a request of the stateless era states them."""
    meta = (request.params or {}).get("_meta")
    said = meta.get(CLIENT_CAPABILITIES_META_KEY) if isinstance(meta, Mapping) else None
    return said if isinstance(said, Mapping) else {}

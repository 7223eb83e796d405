"""Names of the protocol under which the rest of the gateway knows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from truename.gateway.protocol.errors import MCPError
from truename.gateway.protocol.progress import ReportProgress as OnProgress
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


def declared_by(request: Request) -> Mapping[str, Any]:
    """Return the client's capabilities as a request of the stateless era states them."""
    meta = (request.params or {}).get("_meta")
    said = meta.get(CLIENT_CAPABILITIES_META_KEY) if isinstance(meta, Mapping) else None
    return said if isinstance(said, Mapping) else {}

"""The error that a peer sent in place of a result."""

from __future__ import annotations

from typing import Any

__all__ = ["MCPError"]


class MCPError(Exception):
    """A JSON-RPC error: code, message, and what else the peer said of it (``data``, None for nothing).

    >>> str(MCPError(-32602, "Unknown tool", {"tool": "x"}))
    'Unknown tool'
    """

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(code, message, data)
        self.code = code
        self.message = message
        self.data = data

    def __str__(self) -> str:
        return self.message

"""Faults that our own transports find out are marked as such: by their texts they could be a server's own errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from truename.gateway.protocol.sdk import MCPError

__all__ = ["FAULT_KEY", "fault_of", "transport_fault"]

FAULT_KEY: Final = "dev.truename/transport-fault"


def transport_fault(secret: str, kind: str, detail: str) -> dict[str, Any]:
    """Build the data of an error that our own transport answers with; the secret keeps servers from faking one."""
    return {FAULT_KEY: secret, "kind": kind, "detail": detail}


def fault_of(error: MCPError, secret: str) -> tuple[str, str] | None:
    """Return kind and detail if this error comes from our own transport, not from the server."""
    data = error.data
    if isinstance(data, dict) and secret and data.get(FAULT_KEY) == secret:
        return str(data["kind"]), str(data["detail"])
    return None

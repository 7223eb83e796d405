"""A request of a client, as all steps of answering it see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import HTTPConnection

    from truename.gateway.mcp.connection import Channel, ClientConnection

__all__ = ["Request", "RequestId", "progress_token"]

RequestId = int | str


@dataclass(frozen=True, eq=False)
class Request:
    """One request: its method, parameters and id, the client's connection, and the way back that is its own.

    ``http`` is the HTTP request that carried it; None over a pipe.
    """

    method: str
    params: Mapping[str, Any] | None
    id: RequestId
    connection: ClientConnection
    channel: Channel
    http: HTTPConnection | None = None

    @property
    def protocol_version(self) -> str:
        """The version of MCP that the client speaks."""
        return self.connection.protocol_version

    @property
    def meta(self) -> Mapping[str, Any]:
        """The ``_meta`` of the parameters; empty where it is missing or no object."""
        found = (self.params or {}).get("_meta")
        return found if isinstance(found, dict) else {}


def progress_token(params: Mapping[str, Any] | None) -> RequestId | None:
    """Return the token by which a client wants to hear of progress; None if it does not."""
    meta = (params or {}).get("_meta")
    token = meta.get("progressToken") if isinstance(meta, dict) else None
    return token if isinstance(token, str | int) and not isinstance(token, bool) else None

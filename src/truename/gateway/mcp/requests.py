"""A request of a client, as all steps of answering it see it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from truename.gateway.protocol.app_capability import shows_apps
from truename.gateway.protocol.specification import CLIENT_CAPABILITIES_META_KEY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import HTTPConnection

    from truename.gateway.mcp.connection import Channel, ClientConnection

__all__ = ["Request", "RequestId", "declared_by", "is_from_app_host", "progress_token"]

RequestId = int | str


class Request(msgspec.Struct, frozen=True, eq=False):
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


def declared_by(request: Request) -> Mapping[str, Any]:
    """Return the client's capabilities as a request of the stateless era states them."""
    meta = (request.params or {}).get("_meta")
    said = meta.get(CLIENT_CAPABILITIES_META_KEY) if isinstance(meta, dict) else None
    return said if isinstance(said, dict) else {}


def is_from_app_host(request: Request) -> bool:
    """Tell whether a request's client shows apps: a session says it when it begins, a stateless request by itself."""
    if request.connection.is_modern:
        return shows_apps(declared_by(request))
    client = request.connection.client
    return client is not None and shows_apps(client.capabilities)

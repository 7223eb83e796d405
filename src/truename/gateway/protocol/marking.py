"""Faults that the SDK's client side finds out are marked as such: by its texts they could be a server's own errors."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import anyio
from mcp.client.streamable_http import StreamableHTTPTransport
from mcp.shared._context_streams import create_context_streams
from mcp.shared.message import SessionMessage
from mcp_types import CONNECTION_CLOSED, ErrorData, JSONRPCError

from truename.gateway.background import background
from truename.gateway.protocol.bounded import BoundedDispatcher

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx2
    from mcp.client._transport import TransportStreams
    from mcp.client.streamable_http import StreamWriter
    from mcp.shared.exceptions import MCPError
    from mcp.shared.message import MessageMetadata
    from mcp_types import JSONRPCMessage, RequestId

__all__ = ["FAULT_KEY", "MarkedDispatcher", "fault_of", "marked_client", "transport_fault"]

FAULT_KEY: Final = "dev.truename/transport-fault"
_GONE: Final = (anyio.BrokenResourceError, anyio.ClosedResourceError)


def transport_fault(secret: str, kind: str, detail: str) -> dict[str, Any]:
    """Build the data of an error that our own transport answers with; the secret keeps servers from faking one."""
    return {FAULT_KEY: secret, "kind": kind, "detail": detail}


def fault_of(error: MCPError, secret: str) -> tuple[str, str] | None:
    """Return kind and detail if this error comes from our own transport, not from the server."""
    data = error.data
    if isinstance(data, dict) and secret and data.get(FAULT_KEY) == secret:
        return str(data["kind"]), str(data["detail"])
    return None


class MarkedDispatcher(BoundedDispatcher):
    """Knows whether it has lost its connection: what it then raises has the form of an answer."""

    _is_unwritable = False

    @property
    def is_lost(self) -> bool:
        """Whether no answer can come any more."""
        return self._closed or self._is_unwritable

    async def _write(self, message: JSONRPCMessage, metadata: MessageMetadata = None) -> None:
        try:
            await super()._write(message, metadata)
        except _GONE:
            self._is_unwritable = True
            raise


class _MarkedTransport(StreamableHTTPTransport):
    """Answers with marked faults for what ended unanswered."""

    def __init__(self, url: str, secret: str, max_event: int) -> None:
        super().__init__(url, max_sse_event_size=max_event)
        self._secret = secret

    async def _resolve_abandoned_request(
        self,
        read_stream_writer: StreamWriter,
        request_id: RequestId,
        message: str,
        *,
        code: int = CONNECTION_CLOSED,
    ) -> None:
        fault = ErrorData(code=code, message=message, data=transport_fault(self._secret, "lost", message))
        try:
            await read_stream_writer.send(SessionMessage(JSONRPCError(jsonrpc="2.0", id=request_id, error=fault)))
        except _GONE:
            return


@asynccontextmanager
async def marked_client(
    url: str, http_client: httpx2.AsyncClient, *, secret: str, max_event: int
) -> AsyncIterator[TransportStreams]:
    """Open the SDK's streamable HTTP transport, as its own `streamable_http_client` does, with marked faults."""
    transport = _MarkedTransport(url, secret, max_event)
    to_session, from_server = create_context_streams[SessionMessage | Exception](0)
    to_server, from_session = create_context_streams[SessionMessage](0)
    async with to_session, from_server, to_server, from_session, background() as tasks:

        def follow() -> None:
            tasks.start_soon(transport.handle_get_stream, http_client, to_session)

        tasks.start_soon(transport.post_writer, http_client, from_session, to_session, to_server, follow, tasks)
        try:
            yield from_server, to_server
        finally:
            if transport.session_id:
                await transport.terminate_session(http_client)

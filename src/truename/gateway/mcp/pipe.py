"""A client over a pipe: its first request decides the protocol version for all, and its requests run side by side."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import anyio

from truename.gateway.mcp.connection import Channel, ClientConnection, PendingRequests
from truename.gateway.mcp.messages import answer_to, error, is_id, kind_of
from truename.gateway.mcp.requests import Request, progress_token
from truename.gateway.mcp.stateless import envelope_of
from truename.gateway.protocol.sdk import MCPError
from truename.gateway.protocol.specification import (
    INVALID_REQUEST,
    MODERN_VERSIONS,
    PROTOCOL_VERSION_META_KEY,
    UNSUPPORTED_PROTOCOL_VERSION,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Awaitable, Callable, Mapping

    from anyio.abc import TaskGroup

    from truename.gateway.mcp.connection import Write
    from truename.gateway.mcp.requests import RequestId

    Answer = Callable[[Request], Awaitable[Mapping[str, Any]]]

__all__ = ["serve_pipe"]

_OTHER_VERSION: Final = (
    "this connection serves the handshake protocol era; "
    "requests carrying the 2026-07-28 envelope are not accepted on it"
)
_NO_HANDSHAKE: Final = "connection is serving the 2026-07-28 protocol; the initialize handshake is not accepted"


async def serve_pipe(incoming: AsyncIterable[dict[str, Any]], write: Write, answer: Answer) -> None:
    """Answer the messages of one client until there are no more; ``write`` sends it a message.

    A request that the client cancels is not answered (MCP 2025-11-25, basic/utilities/cancellation).
    """
    pipe = _PipeClient(write, answer)
    try:
        async with anyio.create_task_group() as tasks:
            async for message in incoming:
                await pipe.take(message, tasks)
            tasks.cancel_scope.cancel()
    finally:
        pipe.requests.close()
        await pipe.session.close()


class _PipeClient:
    def __init__(self, write: Write, answer: Answer) -> None:
        self.requests = PendingRequests()
        self.session = ClientConnection(Channel(write, self.requests), pipe=self)
        self._write = write
        self._answer = answer
        self._is_modern: bool | None = None
        self._running: dict[RequestId, anyio.CancelScope] = {}

    async def take(self, message: dict[str, Any], tasks: TaskGroup) -> None:
        kind = kind_of(message)
        if kind == "response":
            self.requests.answered(message)
        elif kind == "notification":
            await self._notified(message["method"], message.get("params") or {})
        elif kind == "request":
            params = message.get("params")
            if self._is_modern is None:
                self._is_modern = message["method"] != "initialize" and _names_version(params)
            if message["method"] == "initialize":
                # What comes behind the handshake counts on it.
                await self._respond(message)
            else:
                tasks.start_soon(self._respond, message)

    async def _notified(self, method: str, params: Mapping[str, Any]) -> None:
        if method == "notifications/initialized":
            self.session.is_initialized = True
        elif method == "notifications/cancelled":
            id = params.get("requestId")
            if is_id(id) and (scope := self._running.get(id)) is not None:
                scope.cancel()
        elif method == "notifications/progress":
            await self.requests.progressed(params)

    async def _respond(self, message: dict[str, Any]) -> None:
        key = message["id"]
        with anyio.CancelScope() as scope:
            self._running[key] = scope
            try:
                found = await self._found(message)
            finally:
                if self._running.get(key) is scope:
                    del self._running[key]
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                await self._write(found)

    async def _found(self, message: dict[str, Any]) -> dict[str, Any]:
        try:
            connection = self._connection(message)
        except MCPError as problem:
            return error(message["id"], problem.code, problem.message, problem.data)
        params = message.get("params")
        channel = Channel(
            self._write, None if self._is_modern else self.requests, progress_token=progress_token(params)
        )
        request = Request(message["method"], params, message["id"], connection, channel)
        try:
            return await answer_to(request.id, self._answer(request))
        finally:
            channel.close()
            if connection is not self.session:
                await connection.close()

    def _connection(self, message: dict[str, Any]) -> ClientConnection:
        """Return the connection of a request. Raises `MCPError` for one of the other versions."""
        method, params = message["method"], message.get("params")
        if not self._is_modern:
            if method != "initialize" and _names_version(params):
                raise MCPError(INVALID_REQUEST, _OTHER_VERSION)
            return self.session
        if method == "initialize":
            wanted = (params or {}).get("protocolVersion")
            known = {"supported": list(MODERN_VERSIONS)}
            data = {**known, "requested": wanted} if isinstance(wanted, str) else known
            raise MCPError(UNSUPPORTED_PROTOCOL_VERSION, _NO_HANDSHAKE, data)
        envelope = envelope_of(method, params)
        beside = Channel.beside_requests(self._write)
        return ClientConnection.of_request(envelope.version, beside, pipe=self)


def _names_version(params: object) -> bool:
    """Return whether a request says its version itself, as requests do since 2026-07-28."""
    meta = params.get("_meta") if isinstance(params, dict) else None
    return isinstance(meta, dict) and PROTOCOL_VERSION_META_KEY in meta

"""A client of the SDK and an endpoint of the gateway in one process: messages pass through memory."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from truename.gateway.mcp.messages import encode
from truename.gateway.mcp.pipe import serve_pipe

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from truename.gateway.endpoint.endpoint import Endpoint

__all__ = ["in_memory"]


@asynccontextmanager
async def in_memory(endpoint: Endpoint) -> AsyncIterator[Any]:
    """Give the streams of a client to an endpoint, as the SDK's transports do."""
    to_client, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_server, from_client = anyio.create_memory_object_stream[SessionMessage](0)

    async def incoming() -> AsyncIterator[dict[str, Any]]:
        async for item in from_client:
            yield item.message.model_dump(by_alias=True, mode="json", exclude_unset=True)

    async def write(message: dict[str, Any]) -> None:
        await to_client.send(SessionMessage(jsonrpc_message_adapter.validate_json(encode(message), by_name=False)))

    async def serve() -> None:
        async with to_client:
            await serve_pipe(incoming(), write, endpoint.answer)

    async with anyio.create_task_group() as tasks, to_server, from_client, to_client, from_server:
        tasks.start_soon(serve)
        yield from_server, to_server
        tasks.cancel_scope.cancel()

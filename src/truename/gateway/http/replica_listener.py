"""Listen for the other replicas of a shared state, beside the address for clients."""

from __future__ import annotations

import logging
from contextlib import AsyncExitStack, asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import anyio

from truename.auth.network.listening import bind
from truename.errors import StoreError
from truename.gateway.background import background
from truename.gateway.http.response_stream import send_nothing
from truename.gateway.http.web_server import WebServer
from truename.gateway.replicas.client import host_and_port
from truename.gateway.replicas.receiving import RequestBounds
from truename.gateway.replicas.replicas import Replicas

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager

    from starlette.types import Receive, Scope, Send

    from truename.config import Config
    from truename.gateway.http.connection_limits import ConnectionLimits
    from truename.gateway.http.session_record import SessionRecord
    from truename.storage import StateLocation

__all__ = ["joined_replicas"]

log: Final = logging.getLogger("truename.gateway")

_PURPOSE: Final = b"replicas 1"
# Seconds for which a start waits for the server of the state, and between two attempts.
_PATIENCE: Final = 10.0
_PAUSE: Final = 0.2
_LOOPBACK: Final = "127.0.0.1:0"
_ALONE: Final = "This gateway serves without its replicas: sessions that they have are not found here. %s"


class _Listening:
    """The application of a listener that is bound before it is known what answers there."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.replicas: Replicas | None = None
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        connection = self._limits.connection_of(scope)
        if connection is not None and not await connection.drained():
            return
        if self.replicas is None:
            await send_nothing(send, HTTPStatus.SERVICE_UNAVAILABLE, [])
            return
        if connection is not None:
            send = self._limits.sending(connection, scope, send)
        await self.replicas.receiver(scope, receive, send)


@asynccontextmanager
async def joined_replicas(
    config: Config, record: SessionRecord, limits: ConnectionLimits
) -> AsyncIterator[Replicas | None]:
    """Be one of the replicas of a configuration's state while the block lasts, and listen for the others.

    None where the state is in memory, or its database cannot be used for this. A server may be away for a moment, so it
    is asked for some seconds; without an answer the record `is_alone`. Raises `ConfigError` for an address that cannot
    be listened on.
    """
    if not record.is_shared:
        yield None
        return
    host, port = host_and_port(config.settings.replica_address or _LOOPBACK)
    bound = bind(host, port)
    own_port = bound.getsockname()[1]
    address = f"[{host}]:{own_port}" if ":" in host else f"{host}:{own_port}"
    application = _Listening(limits)
    server = WebServer(application, limits)
    async with AsyncExitStack() as stack:
        stack.callback(bound.close)
        serving = await stack.enter_async_context(background())
        serving.start_soon(server.serve, [bound])
        stack.push_async_callback(server.finish)
        await server.listens.wait()
        key = record.derived_key(_PURPOSE)
        bounds = RequestBounds(config.settings.max_body, config.settings.max_incoming)
        where = config.state_location()
        application.replicas = await _joined(stack, where, lambda: Replicas.joined(where, address, key, bounds))
        record.is_alone = application.replicas is None and where.url is not None
        yield application.replicas


async def _joined(
    stack: AsyncExitStack, where: StateLocation, joining: Callable[[], AbstractAsyncContextManager[Replicas]]
) -> Replicas | None:
    """Be one of the replicas until the stack ends; None if the database cannot be used for that."""
    until = anyio.current_time() + (0.0 if where.url is None else _PATIENCE)
    while True:
        try:
            return await stack.enter_async_context(joining())
        except StoreError as error:
            if anyio.current_time() >= until:
                log.warning(_ALONE, error)
                return None
        await anyio.sleep(_PAUSE)

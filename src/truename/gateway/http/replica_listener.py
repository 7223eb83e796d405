"""Listen for the other replicas of a shared state, beside the address for clients."""

from __future__ import annotations

import logging
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import anyio

from truename.auth.network.listening import bind
from truename.errors import StoreError
from truename.gateway.background import background
from truename.gateway.http.response_stream import send_nothing
from truename.gateway.http.web_server import WebServer
from truename.gateway.replicas.client import host_and_port
from truename.gateway.replicas.receiving import PROVED, RequestBounds
from truename.gateway.replicas.registry import new_replica_id
from truename.gateway.replicas.replicas import Replicas

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager

    from starlette.types import Receive, Scope, Send

    from truename.config import Config
    from truename.gateway.http.connection_limits import ConnectionLimits
    from truename.gateway.http.session_record import SessionRecord

    Among = Callable[[Replicas], AbstractAsyncContextManager[None]]

__all__ = ["joined_replicas"]

log: Final = logging.getLogger("truename.gateway")

_PURPOSE: Final = b"replicas 1"
# Seconds for which a start waits for the state database, and between two attempts: until then, and afterwards.
_PATIENCE: Final = 10.0
_PAUSE: Final = 0.2
_PAUSE_ALONE: Final = 2.0
_LOOPBACK: Final = "127.0.0.1:0"
_ALONE: Final = (
    "This gateway serves without its replicas until it can join them: sessions that they have are not found here, and "
    "those that begin here end with it. %s"
)
_JOINED: Final = "This gateway has joined its replicas."


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
            scope[PROVED] = partial(self._limits.identified, connection)
            send = self._limits.sending(connection, scope, send)
        await self.replicas.receiver(scope, receive, send)


class _Joining:
    """Has this process be one of the replicas as soon as that is possible, until it `ends`.

    ``joins`` makes it one, and ``among`` is what it does as one; each lasts while its block does.
    """

    def __init__(
        self,
        record: SessionRecord,
        application: _Listening,
        joins: Callable[[], AbstractAsyncContextManager[Replicas]],
        among: Among,
        *,
        is_server: bool,
    ) -> None:
        self._record = record
        self._application = application
        self._joins = joins
        self._among = among
        self._is_server = is_server
        self._until = anyio.current_time() + _PATIENCE
        self.begun, self._ending, self._over = anyio.Event(), anyio.Event(), anyio.Event()
        self.refused: StoreError | None = None

    async def run(self) -> None:
        """Join, and stay. `begun` is set when that is done, or the start of the gateway waits no longer for it."""
        while self.refused is None and not self._ending.is_set():
            try:
                async with self._joins() as replicas:
                    self._application.replicas = replicas
                    async with self._among(replicas):
                        self._note_joined()
                        await self._ending.wait()
            except StoreError as error:
                self._note_failure(error)
                await anyio.sleep(_PAUSE_ALONE if self.begun.is_set() else _PAUSE)
        self._over.set()

    def _note_joined(self) -> None:
        if self.begun.is_set():
            log.warning(_JOINED)
        self._record.lone_owner = None
        self.begun.set()

    def _note_failure(self, error: StoreError) -> None:
        if self.begun.is_set():
            return
        if error.code == "newer":
            self.refused = error
        elif (self._is_server or error.code == "busy") and anyio.current_time() < self._until:
            return
        else:
            log.warning(_ALONE, error)
        self.begun.set()

    async def end(self) -> None:
        """Be a replica no more."""
        self._ending.set()
        if self._record.lone_owner is None:
            await self._over.wait()


@asynccontextmanager
async def joined_replicas(
    config: Config, record: SessionRecord, limits: ConnectionLimits, among: Among
) -> AsyncIterator[None]:
    """Be one of the replicas of a configuration's state while the block lasts, and listen for the others.

    ``among`` is entered with the replicas, and left before this process is none of them any more. That is before the
    block begins, or later: the database may be away, or locked by another process. Such a start waits for ten seconds;
    then the record has a `lone_owner`, until this process has joined. With a state in memory there are no replicas.

    Raises `ConfigError` for an address that cannot be listened on, and `StoreError` for tables of a later version.
    """
    if not record.is_shared:
        yield
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
        key, where, id = record.derived_key(_PURPOSE), config.state_location(), new_replica_id()
        bounds = RequestBounds(config.settings.max_body, config.settings.max_incoming)
        record.lone_owner = id
        joins = partial(Replicas.joined, where, address, key, bounds, id=id)
        joining = _Joining(record, application, joins, among, is_server=where.url is not None)
        tasks = await stack.enter_async_context(background())
        stack.push_async_callback(joining.end)
        tasks.start_soon(joining.run)
        await joining.begun.wait()
        if joining.refused is not None:
            raise joining.refused
        yield

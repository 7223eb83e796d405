"""The gateway over HTTP: paths to endpoints, and who may come in."""

from __future__ import annotations

import gc
import signal
from collections.abc import Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import anyio
from starlette.responses import JSONResponse

from truename.errors import ConfigError
from truename.gateway.background import background
from truename.gateway.contexts import CONTEXT_HEADER, ContextRefused
from truename.gateway.doorkeeper import Doorkeeper, is_loopback
from truename.gateway.sdk_server import Sessions
from truename.gateway.views import UnknownView
from truename.gateway.web_server import WebServer, bind

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator

    from anyio.abc import TaskGroup, TaskStatus
    from starlette.types import Receive, Scope, Send

    from truename.config import Config
    from truename.gateway.endpoint import Endpoint
    from truename.gateway.gateway import Gateway

__all__ = ["HttpApp", "OnAddress", "listening", "require_guard", "reserve", "serve_http"]

OnAddress = Callable[[str], None]

_HEALTH: Final = "/healthz"
_SPARE: Final = 64
_YOUNG: Final = 10_000


class HttpApp:
    """The ASGI application. Each endpoint's sessions are run by a task of their own, begun at the first request."""

    def __init__(self, gateway: Gateway, doorkeeper: Doorkeeper) -> None:
        self._gateway = gateway
        self._doorkeeper = doorkeeper
        self._tasks: TaskGroup | None = None
        self._managers: dict[Endpoint, Sessions] = {}
        self._lock = anyio.Lock()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Answer requests while the block lasts; at its end all streams are closed, which would else stay open."""
        async with background() as tasks:
            self._tasks = tasks
            try:
                yield
            finally:
                self._tasks = None
                for endpoint in self._managers:
                    endpoint.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        path = scope["path"]
        refusal = self._doorkeeper.refusal(scope, public=path == _HEALTH)
        if refusal is None and path == _HEALTH:
            refusal = JSONResponse({"status": "ok"})
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        if self._tasks is None:
            await JSONResponse({"error": "The gateway is not running."}, 503)(scope, receive, send)
            return
        try:
            endpoint = self._gateway.endpoint(path)
            endpoint.check_context(_context_headers(scope))
        except UnknownView as error:
            await JSONResponse({"error": str(error)}, 404)(scope, receive, send)
            return
        except ContextRefused as error:
            await JSONResponse({"error": str(error)}, error.status)(scope, receive, send)
            return
        manager = await self._sessions_of(endpoint, self._tasks)
        await manager.handle_request(scope, receive, send)

    async def _sessions_of(self, endpoint: Endpoint, tasks: TaskGroup) -> Sessions:
        if (running := self._managers.get(endpoint)) is not None:
            return running
        async with self._lock:
            if endpoint not in self._managers:
                settings = self._gateway.config.settings
                # Host and Origin are checked by the doorkeeper, for every path.
                manager = Sessions(
                    endpoint.server,
                    max_request_body_size=settings.max_body,
                    max_sessions=settings.max_sessions,
                )
                manager.beside = self._managers.values()
                await tasks.start(_run, manager)
                self._managers[endpoint] = manager
            return self._managers[endpoint]


def _context_headers(scope: Scope) -> tuple[str, ...]:
    wanted = CONTEXT_HEADER.encode()
    return tuple(value.decode("latin-1") for key, value in scope["headers"] if key == wanted)


async def _run(manager: Sessions, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
    async with manager.run():
        task_status.started()
        await anyio.sleep_forever()


def require_guard(config: Config, host: str) -> None:
    """Raise `ConfigError` for an address that other machines reach while no token is set."""
    if not is_loopback(host) and config.settings.token is None:
        raise ConfigError(
            file=str(config.path or "settings"),
            key="token",
            problem=f"{host} can be reached from other machines and no token is set",
            remedy="Set token (for example to ${TRUENAME_TOKEN}), or listen on 127.0.0.1.",
        )


def reserve(config: Config, host: str, port: int) -> socket.socket:
    """Take an address before anything is started, so that what is wrong with it is known early.

    Raises `ConfigError` if it can't be had, or is not a loopback one and no token is set.
    """
    require_guard(config, host)
    return bind(host, port)


@asynccontextmanager
async def listening(
    gateway: Gateway, host: str = "127.0.0.1", port: int = 0, *, bound: socket.socket | None = None
) -> AsyncIterator[str]:
    """Serve a running gateway over HTTP while the block lasts; gives the address, as ``http://127.0.0.1:8000``.

    ``bound`` is an address that was reserved before. Raises as `reserve` does.
    """
    settings = gateway.config.settings
    bound = bound or reserve(gateway.config, host, port)
    app = HttpApp(gateway, Doorkeeper.of(settings, bound.getsockname()[0]))
    # A session may have a stream open while it asks.
    server = WebServer(app, most=2 * settings.max_sessions + _SPARE)
    async with background() as serving:
        serving.start_soon(server.serve, [bound])
        try:
            await server.listens.wait()
            async with app.running():
                yield _address(bound)
        finally:
            await server.finish()


async def serve_http(gateway: Gateway, host: str = "127.0.0.1", port: int = 8000, *, on_address: OnAddress) -> None:
    """Serve a running gateway over HTTP until SIGINT or SIGTERM; ``on_address`` is told where.

    Raises as `listening` does.
    """
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with listening(gateway, host, port) as address:
            _rest()
            on_address(address)
            async for _ in signals:
                break


def _rest() -> None:
    """Have the collector look at what calls leave behind, and not at all that was there before them each time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, 20, 20)


def _address(bound: socket.socket) -> str:
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

"""The gateway over HTTP: paths to endpoints, and who may come in."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Final

import anyio
import uvicorn
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.responses import JSONResponse

from truename.errors import ConfigError
from truename.gateway.background import background
from truename.gateway.doorkeeper import Doorkeeper, is_loopback
from truename.gateway.views import UnknownView

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from anyio.abc import TaskGroup, TaskStatus
    from starlette.types import Receive, Scope, Send

    from truename.config import Config
    from truename.gateway.endpoint import Endpoint
    from truename.gateway.gateway import Gateway

__all__ = ["HttpApp", "OnAddress", "listening", "require_guard", "serve_http"]

OnAddress = Callable[[str], None]

_HEALTH: Final = "/healthz"
_SHUTDOWN_SECONDS: Final = 3


class HttpApp:
    """The ASGI application. Each endpoint's sessions are run by a task of their own, begun at the first request."""

    def __init__(self, gateway: Gateway, doorkeeper: Doorkeeper) -> None:
        self._gateway = gateway
        self._doorkeeper = doorkeeper
        self._tasks: TaskGroup | None = None
        self._managers: dict[Endpoint, StreamableHTTPSessionManager] = {}
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
        except UnknownView as error:
            await JSONResponse({"error": str(error)}, 404)(scope, receive, send)
            return
        manager = await self._sessions_of(endpoint, self._tasks)
        await manager.handle_request(scope, receive, send)

    async def _sessions_of(self, endpoint: Endpoint, tasks: TaskGroup) -> StreamableHTTPSessionManager:
        async with self._lock:
            if endpoint not in self._managers:
                settings = self._gateway.config.settings
                # Host and Origin are checked by the doorkeeper, for every path.
                manager = StreamableHTTPSessionManager(
                    endpoint.server,
                    max_request_body_size=settings.max_body,
                    max_sessions=settings.max_sessions,
                )
                await tasks.start(_run, manager)
                self._managers[endpoint] = manager
            return self._managers[endpoint]


async def _run(
    manager: StreamableHTTPSessionManager, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
) -> None:
    async with manager.run():
        task_status.started()
        await anyio.sleep_forever()


class _Server(uvicorn.Server):
    """Says when it listens and when it has ended, and leaves signals to the caller."""

    def __init__(self, app: HttpApp) -> None:
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            server_header=False,
            timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        )
        super().__init__(config)
        self.listens = anyio.Event()
        self._ended = anyio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then say so."""
        await super().startup(sockets)
        self.listens.set()

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve, then say that it is over."""
        try:
            await super().serve(sockets)
        finally:
            self._ended.set()

    async def finish(self) -> None:
        """Take no more requests and wait a moment for those that are being answered."""
        self.should_exit = True
        with anyio.CancelScope(shield=True):
            await self._ended.wait()


def require_guard(config: Config, host: str) -> None:
    """Raise `ConfigError` for an address that other machines reach while no token is set."""
    if not is_loopback(host) and config.settings.token is None:
        raise ConfigError(
            file=str(config.path or "settings"),
            key="token",
            problem=f"{host} can be reached from other machines and no token is set",
            remedy="Set token (for example to ${TRUENAME_TOKEN}), or listen on 127.0.0.1.",
        )


@asynccontextmanager
async def listening(gateway: Gateway, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[str]:
    """Serve a running gateway over HTTP while the block lasts; gives the address, as ``http://127.0.0.1:8000``.

    Raises `ConfigError` if the address can't be had, or is not a loopback one and no token is set.
    """
    settings = gateway.config.settings
    require_guard(gateway.config, host)
    app = HttpApp(gateway, Doorkeeper.of(settings, host))
    server, bound = _Server(app), _bind(host, port)
    async with background() as serving:
        serving.start_soon(server.serve, [bound])
        await server.listens.wait()
        try:
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
            on_address(address)
            async for _ in signals:
                break


def _bind(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind, protocol)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(address)
        except OSError:
            bound.close()
            raise
    except OSError as error:
        raise ConfigError(
            file="--http",
            key=f"{host}:{port}",
            problem=f"it can't be listened on ({error.strerror or error})",
            remedy="Choose another port or host.",
        ) from error
    return bound


def _address(bound: socket.socket) -> str:
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

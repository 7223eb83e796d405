"""What the gateway's tests share: fake servers, a running gateway, clients of both eras, raw HTTP."""

from __future__ import annotations

import json
import os
import sys
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
import pytest
import uvicorn
from mcp import Client, StdioServerParameters

from tests.support.tls import Authority
from truename.config import Config, ServerConfig, Settings
from truename.gateway import Gateway, GatewayEvent, ProgramSharing, listening

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator, Callable, Iterator

    from mcp.server.lowlevel.server import Server
    from starlette.types import ASGIApp

    from truename.ledger import Ledger

ROOT = Path(__file__).parents[2]
ERAS = ("legacy", "2026-07-28")
PATIENCE = 15.0


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class Lab:
    """A bench for gateways: everything that it starts ends with the block that started it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.events: list[GatewayEvent] = []
        # Settings of each gateway: the certificate, in tests over TLS.
        self.tls: dict[str, str] = {}
        self._happened = anyio.Event()

    def script(self, key: str, script: str, *args: str, **more: Any) -> ServerConfig:
        module = f"tests.gateway.servers.{script}"
        env = {"PYTHONPATH": str(ROOT)}
        return ServerConfig(key=key, command=sys.executable, args=("-m", module, *args), env=env, **more)

    def normal(self, key: str, *tools: str, **more: Any) -> ServerConfig:
        return self.script(key, "normal", key, *tools, **more)

    @staticmethod
    def at(key: str, url: str, **more: Any) -> ServerConfig:
        return ServerConfig(key=key, url=url, type="http", **more)

    def observe(self, event: GatewayEvent) -> None:
        self.events.append(event)
        self._happened.set()
        self._happened = anyio.Event()

    async def saw(self, kind: str, server: str, times: int = 1) -> GatewayEvent:
        """Wait until this happened to this server so many times."""
        with anyio.fail_after(PATIENCE):
            while True:
                found = [event for event in self.events if (event.kind, event.server) == (kind, server)]
                if len(found) >= times:
                    return found[-1]
                await self._happened.wait()

    @asynccontextmanager
    async def gateway(
        self, *servers: ServerConfig, ledger: Ledger | None = None, **settings: Any
    ) -> AsyncIterator[Gateway]:
        config = Config(servers=servers, settings=Settings(**{"startup_timeout": 20.0, **self.tls, **settings}))
        async with Gateway(config, on_event=self.observe, ledger=ledger) as gateway:
            yield gateway

    @asynccontextmanager
    async def serving(self, *servers: ServerConfig, **settings: Any) -> AsyncIterator[str]:
        async with self.gateway(*servers, **settings) as gateway, listening(gateway) as address:
            yield address

    @asynccontextmanager
    async def replica(self, *servers: ServerConfig, **settings: Any) -> AsyncIterator[str]:
        """Serve as one of the replicas of the state in this lab's folder, which share the programs of all servers."""
        shared = tuple(replace(server, instances="single") for server in servers)
        own = Settings(**{"startup_timeout": 20.0, "state": str(self.folder / "state.db"), **self.tls, **settings})
        gateway = Gateway(Config(servers=shared, settings=own), sharing=ProgramSharing(), is_early=True)
        async with gateway, listening(gateway) as address:
            await gateway.joined()
            await gateway.settle()
            yield address

    @asynccontextmanager
    async def behind_another(self, *servers: ServerConfig, **settings: Any) -> AsyncIterator[str]:
        """Serve by a replica of another one, which runs the programs of all servers."""
        async with self.replica(*servers, **settings):
            programs = children()
            async with self.replica(*servers, **settings) as address:
                assert children() == programs
                yield address

    def config_file(self, *servers: ServerConfig, **settings: Any) -> Path:
        entries = {
            server.key: {
                "command": server.command,
                "args": list(server.args),
                "env": dict(server.env),
                "isolation": server.isolation,
            }
            for server in servers
        }
        path = self.folder / "mcp.json"
        path.write_text(json.dumps({"mcpServers": entries, "truename": {"state": "memory", **settings}}))
        return path

    def over_stdio(self, *servers: ServerConfig, **settings: Any) -> StdioServerParameters:
        """Return how to start a real gateway as a child process."""
        config = str(self.config_file(*servers, **settings))
        args = ["-m", "tests.gateway.servers.gateway_stdio", config]
        # The gateway of this tree, wherever another one is installed.
        env = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "src")))}
        return StdioServerParameters(command=sys.executable, args=args, env=env)


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def over_tls(lab: Lab, authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the gateways of a test serve over TLS, and its clients trust them."""
    lab.tls = authority.issue().settings
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))


@pytest.fixture(params=["http", "https"])
def schemes(request: pytest.FixtureRequest) -> None:
    """Run a test without and with TLS towards clients."""
    if request.param == "https":
        request.getfixturevalue("over_tls")


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    if not Path("/proc/self/stat").exists():
        return True
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    # In a container nobody may reap orphans: a zombie is dead.
    return status.rpartition(")")[2].split()[0] != "Z"


def children() -> set[str]:
    """Return the processes that this one has started; on Linux only."""
    return {pid for path in Path("/proc/self/task").glob("*/children") for pid in path.read_text().split()}


class Raw:
    """An HTTP client that speaks JSON-RPC by hand, for what the SDK's client would never send or hides."""

    def __init__(self, http: httpx2.AsyncClient, address: str) -> None:
        self.http = http
        self.address = address

    async def post(
        self, method: str, params: dict[str, Any], *, path: str = "/mcp", headers: dict[str, str] | None = None
    ) -> httpx2.Response:
        """Post one request of the stateless era."""
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            **params.get("_meta", {}),
        }
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
        routing = {"mcp-protocol-version": "2026-07-28", "mcp-method": method}
        if "name" in params:
            routing["mcp-name"] = params["name"]
        accept = {"accept": "application/json, text/event-stream"}
        return await self.http.post(self.address + path, json=body, headers={**accept, **routing, **(headers or {})})

    async def result(self, method: str, params: dict[str, Any], **more: Any) -> dict[str, Any]:
        answer = (await self.post(method, params, **more)).json()
        assert "result" in answer, answer
        found: dict[str, Any] = answer["result"]
        return found


@asynccontextmanager
async def raw_client(address: str) -> AsyncIterator[Raw]:
    async with httpx2.AsyncClient(timeout=PATIENCE) as http:
        yield Raw(http, address)


@pytest.fixture
def raw() -> Callable[[str], Any]:
    return raw_client


def text_of(result: Any) -> str:
    return "\n".join(getattr(block, "text", "") for block in result.content)


@pytest.fixture
def said() -> Callable[[Any], str]:
    return text_of


@asynccontextmanager
async def connected(target: Any, era: str, **more: Any) -> AsyncIterator[Client]:
    is_over = False
    with anyio.fail_after(60):
        try:
            async with Client(target, mode=era, **more) as client:
                yield client
                is_over = True
        except* anyio.BrokenResourceError:
            # The SDK's client raises it for an answer that comes while it is closed.
            if not is_over:
                raise


@pytest.fixture
def connect() -> Callable[..., Any]:
    return connected


class _Quiet(uvicorn.Server):
    """Leaves signals alone, and ends when it is told to, where uvicorn looks and waits in tenths of a second."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._ending = anyio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def main_loop(self) -> None:
        await self.on_tick(0)
        await self._ending.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:  # noqa: ARG002 - the caller's word
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        # What was answered last leaves first.
        await anyio.sleep(0.01)

    def end(self) -> None:
        self._ending.set()


class Upstreams:
    """SDK servers over HTTP in this process, that can be stopped and started again on their port."""

    @asynccontextmanager
    async def serve(self, server: Server[Any], port: int = 0) -> AsyncIterator[str]:
        async with self.app(server.streamable_http_app(), port) as address:
            yield address + "/mcp"

    @asynccontextmanager
    async def app(self, app: ASGIApp, port: int = 0) -> AsyncIterator[str]:
        config = uvicorn.Config(
            app, port=port, log_config=None, access_log=False, ws="none", timeout_graceful_shutdown=1
        )
        running = _Quiet(config)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(running.serve)
            with anyio.fail_after(PATIENCE):
                while not running.started:
                    await anyio.sleep(0.01)
            bound = running.servers[0].sockets[0].getsockname()[1]
            try:
                yield f"http://127.0.0.1:{bound}"
            finally:
                running.end()

    async def hold(
        self, server: Server[Any], url: str = "http://x:0/mcp", *, task_status: anyio.abc.TaskStatus[Any]
    ) -> None:
        """Serve until the function that this starts with is called: gives (address, stop)."""
        stopping, stopped = anyio.Event(), anyio.Event()

        async def stop() -> None:
            stopping.set()
            await stopped.wait()

        async with self.serve(server, int(url.rpartition(":")[2].partition("/")[0])) as address:
            task_status.started((address, stop))
            await stopping.wait()
        stopped.set()


@pytest.fixture
def upstreams() -> Upstreams:
    return Upstreams()


@pytest.fixture
def streams_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every response of a session be a stream, also one whose answer comes soon."""
    monkeypatch.setattr("truename.gateway.http.sessions.PATIENCE", 0.0)

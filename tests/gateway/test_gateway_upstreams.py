"""Servers that misbehave: each is told of with its name, and none is in the way of another."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
import pytest
from mcp.server.lowlevel.server import Server

from tests.gateway.conftest import alive
from truename.config import Config, ServerConfig
from truename.gateway import fetch_catalog
from truename.gateway.rate_limited_log import RateLimitedLog
from truename.gateway.upstream.transports.stdio import open_stdio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from tests.gateway.conftest import Lab, Upstreams

pytestmark = pytest.mark.anyio

FAULTS = [
    ("missing", "cannot find the program 'no-such-program-anywhere'", "Install it"),
    ("nowhere", "cannot be started: No such file or directory", "Check command, cwd"),
    ("hanging", "did not answer within", "Its last output: thinking"),
    ("dying", "exited with status 7", "Its last output: no database \\x1b[31mhere"),
    ("crashing", "exited with status 1", "Its last output: bye"),
    ("error", "answers tools/list with error -32603: database \\x1b[31mdown", ""),
    ("shape", "answers tools/list without a list of tools", ""),
    ("down", "cannot be reached (ConnectError", "Check that it runs"),
    ("sse", "cannot be reached (ConnectError", "Check that it runs"),
]


async def test_faults_are_told_and_stop_nobody(lab: Lab, tmp_path: Path) -> None:
    servers = (
        ServerConfig(key="missing", command="no-such-program-anywhere"),
        ServerConfig(key="nowhere", command=sys.executable, cwd=str(tmp_path / "gone")),
        lab.script("hanging", "hanging"),
        lab.script("dying", "dying"),
        ServerConfig(key="crashing", command=sys.executable, args=("-c", "import sys; sys.exit('bye')")),
        lab.script("error", "erroring", "error"),
        lab.script("shape", "erroring", "shape"),
        lab.at("down", "http://127.0.0.1:9/mcp"),
        ServerConfig(key="sse", url="http://127.0.0.1:9/sse", type="sse"),
        lab.script("noisy", "noisy"),
        lab.script("strict", "strict"),
        lab.normal("fine", "get"),
    )
    async with lab.gateway(*servers, startup_timeout=3.0) as gateway:
        report = gateway.status()
        found = {server.key: server for server in report.servers}
        for key, problem, remedy in FAULTS:
            assert found[key].state == "failed", key
            said = found[key].error or ""
            assert f"{key!r} " in said
            assert problem in said
            assert remedy in said
            assert said.isprintable()
        assert list(report.names.values()) == ["noisy_shout", "strict_obey", "fine_get"]
        assert {event.kind for event in lab.events if event.server == "fine"} == {"start", "ready"}


async def test_lists_without_end_are_cut_off(lab: Lab) -> None:
    async with lab.gateway(lab.script("endless", "erroring", "endless"), max_tools=100) as gateway:
        assert len(gateway.catalog) == 100


async def test_an_answer_that_is_too_large_is_refused_and_the_rest_goes_on(
    lab: Lab, era: str, connect: Callable[..., Any], said: Callable[[Any], str]
) -> None:
    server = lab.normal("w", "big", "get")
    async with lab.serving(server, max_result=100_000) as address, connect(address + "/mcp", era) as client:
        result = await client.call_tool("big", {"size": 1_000_000})
        assert result.is_error
        assert "too large" in said(result)
        assert len(said(await client.call_tool("big", {"size": 50_000}))) == 50_000
        assert said(await client.call_tool("get", {})) == "w:get"


async def test_a_server_that_dies_is_restarted_and_meanwhile_its_list_is_served(
    lab: Lab, era: str, connect: Callable[..., Any], said: Callable[[Any], str]
) -> None:
    servers = lab.normal("mortal", "die", "get"), lab.normal("other", "get")
    async with lab.serving(*servers) as address, connect(address + "/mcp", era) as client:
        before = [tool.name for tool in (await client.list_tools()).tools]
        lost = await client.call_tool("mortal_die", {})
        assert lost.is_error
        assert "exited with status 3 before it answered" in said(lost)
        assert [tool.name for tool in (await client.list_tools(cache_mode="bypass")).tools] == before
        assert said(await client.call_tool("other_get", {})) == "other:get"
        assert said(await client.call_tool("mortal_get", {})) == "mortal:get"
        await lab.saw("ready", "mortal", times=2)


async def test_nothing_outlives_the_gateway(lab: Lab, tmp_path: Path) -> None:
    pid_file = tmp_path / "child.pid"
    async with lab.gateway(lab.script("family", "family", str(pid_file))):
        child = int(pid_file.read_text())
        os.kill(child, 0)
    with anyio.fail_after(5):
        while alive(child):
            await anyio.sleep(0.02)


async def test_the_environment_of_a_server_is_clean(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_ANOTHER", "x")
    code = "import os, sys; sys.exit(f\"{os.environ.get('SECRET_OF_ANOTHER')} {os.environ.get('MINE')}\")"
    server = ServerConfig(key="env", command=sys.executable, args=("-c", code), env={"MINE": "1"})
    async with lab.gateway(server) as gateway:
        assert "Its last output: None 1" in (gateway.status().servers[0].error or "")


async def test_a_program_beside_this_interpreter_is_found(lab: Lab) -> None:
    server = ServerConfig(key="uv", command="uvx", args=("--version",), env={"PATH": "/nonexistent"})
    async with lab.gateway(server) as gateway:
        assert "exited with status 0" in (gateway.status().servers[0].error or "")


async def test_a_catalogue_can_be_fetched_once(lab: Lab) -> None:
    config = Config(servers=(lab.normal("w", "get"), ServerConfig(key="gone", command="no-such-program-anywhere")))
    catalog = await fetch_catalog(config, lab.events.append)
    assert [str(id) for id in catalog] == ["w@1/get@1"]
    assert [event.kind for event in lab.events if event.server == "gone"] == ["start", "failed"]


def _sdk_server(label: str, slow: anyio.Event | None = None) -> Server[Any]:
    async def list_tools(ctx: object, params: object) -> types.ListToolsResult:
        names = ("get", "wait")
        return types.ListToolsResult(tools=[types.Tool(name=n, input_schema={"type": "object"}) for n in names])

    async def call_tool(ctx: object, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name == "wait" and slow is not None:
            await slow.wait()
        return types.CallToolResult(content=[types.TextContent(type="text", text=f"{label}:{params.name}")])

    return Server(label, on_list_tools=list_tools, on_call_tool=call_tool)


async def test_a_server_over_http_may_go_and_come_back(
    lab: Lab, era: str, connect: Callable[..., Any], said: Callable[[Any], str], upstreams: Upstreams
) -> None:
    async with anyio.create_task_group() as tasks:
        url, stop = await tasks.start(upstreams.hold, _sdk_server("first"))
        servers = lab.at("far", url), lab.normal("near", "get")
        async with lab.serving(*servers) as address, connect(address + "/mcp", era) as client:
            assert said(await client.call_tool("far_get", {})) == "first:get"
            await stop()
            assert (await client.call_tool("far_get", {})).is_error
            assert said(await client.call_tool("near_get", {})) == "near:get"
            _, stop = await tasks.start(upstreams.hold, _sdk_server("second"), url)
            with anyio.fail_after(15):
                while (result := await client.call_tool("far_get", {})).is_error:
                    await anyio.sleep(0.05)
            assert said(result) == "second:get"
        await stop()


async def test_one_reset_connection_takes_no_other_call_with_it(
    lab: Lab, connect: Callable[..., Any], said: Callable[[Any], str], upstreams: Upstreams
) -> None:
    release, carriers, results = anyio.Event(), _Carriers(), dict[str, Any]()
    async with (
        upstreams.serve(_sdk_server("far", release)) as url,
        _proxy(url, carriers) as proxied,
        lab.serving(lab.at("far", proxied)) as address,
        connect(address + "/mcp", "2026-07-28") as client,
    ):

        async def call(key: str) -> None:
            results[key] = await client.call_tool("wait", {"who": key})
            if key == "one":
                release.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call, "one")
            tasks.start_soon(call, "two")
            one, _ = await carriers.of("one"), await carriers.of("two")
            await one.aclose()
    assert results["one"].is_error
    assert "Whether the call took effect is unknown" in said(results["one"])
    assert said(results["two"]) == "far:wait"


class _Carriers:
    """Finds the connection that carried a word."""

    def __init__(self) -> None:
        self._found: dict[str, anyio.abc.SocketStream] = {}
        self._more = anyio.Event()

    def saw(self, chunk: bytes, stream: anyio.abc.SocketStream) -> None:
        for word in ("one", "two"):
            if f'"{word}"'.encode() in chunk:
                self._found[word] = stream
                self._more.set()
                self._more = anyio.Event()

    async def of(self, word: str) -> anyio.abc.SocketStream:
        with anyio.fail_after(10):
            while word not in self._found:
                await self._more.wait()
        return self._found[word]


@asynccontextmanager
async def _proxy(url: str, carriers: _Carriers) -> AsyncIterator[str]:
    """Pass bytes on, so that a test can break the connections that it chooses."""

    async def serve(client: anyio.abc.SocketStream) -> None:
        server = await anyio.connect_tcp("127.0.0.1", _port(url))
        async with client, server, anyio.create_task_group() as pumps:
            pumps.start_soon(_pump, client, server, pumps.cancel_scope, carriers)
            pumps.start_soon(_pump, server, client, pumps.cancel_scope, None)

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, serve)
        yield f"http://127.0.0.1:{listener.extra(anyio.abc.SocketAttribute.local_port)}/mcp"
        tasks.cancel_scope.cancel()


async def _pump(source: Any, sink: Any, scope: anyio.CancelScope, carriers: _Carriers | None) -> None:
    try:
        async for chunk in source:
            if carriers is not None:
                carriers.saw(chunk, source)
            await sink.send(chunk)
    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
        pass
    scope.cancel()


def _port(url: str) -> int:
    return int(url.rpartition(":")[2].partition("/")[0])


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (401, "refused the request (HTTP 401 Unauthorized)"),
        (500, "HTTP 500"),
        (302, "redirects to another address (HTTP 302: redirect to http://example.com/)"),
    ],
)
async def test_http_refusals_are_told_as_they_are(lab: Lab, status: int, expected: str) -> None:
    async def answer(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            await stream.receive()
            head = f"HTTP/1.1 {status} {'Unauthorized' if status == 401 else 'X'}\r\nlocation: http://example.com/\r\n"
            await stream.send(head.encode() + b"content-length: 2\r\nconnection: close\r\n\r\nno")

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, answer)
        url = f"http://127.0.0.1:{listener.extra(anyio.abc.SocketAttribute.local_port)}/mcp"
        async with lab.gateway(lab.at("guarded", url)) as gateway:
            assert expected in (gateway.status().servers[0].error or "")
        tasks.cancel_scope.cancel()


async def test_a_text_that_was_cut_inside_a_character_is_mended(
    lab: Lab, era: str, connect: Callable[..., Any], said: Callable[[Any], str]
) -> None:
    async with lab.serving(lab.normal("w", "broken")) as address, connect(address + "/mcp", era) as client:
        assert said(await client.call_tool("broken", {})) == "cut \ufffd whole \U0001f600"


@pytest.mark.parametrize("steps", [*range(1, 16, 2), 25, 50])
async def test_a_start_that_is_cut_off_at_any_step_leaves_no_program_behind(
    monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    monkeypatch.setattr("truename.gateway.upstream.transports.stdio.STOP_GRACE", 0.1)
    started: list[int] = []

    class Noted(subprocess.Popen[bytes]):
        def __init__(self, *args: Any, **more: Any) -> None:
            super().__init__(*args, **more)
            started.append(self.pid)

    monkeypatch.setattr(subprocess, "Popen", Noted)
    # It minds neither the end of its input nor a polite signal.
    script = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    server = ServerConfig(key="s", command=sys.executable, args=("-c", script))

    async def run() -> None:
        async with open_stdio(server, 1_000, RateLimitedLog()):
            await anyio.sleep_forever()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        for _ in range(steps):
            await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    assert not [pid for pid in started if alive(pid)]
    assert started or steps == 1

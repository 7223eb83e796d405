"""`truename serve --workers N`: several processes at one port that serve as one gateway, and a supervisor of them."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import sys
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
import pytest
from mcp import Client

from tests.gateway.conftest import Raw, alive
from tests.shared import ROOT
from tests.support.cli_ending import PATIENCE, until
from tests.support.cli_running import serving
from tests.support.cli_workers import Served
from truename.cli._supervisor import cores
from truename.config import Config, ServerConfig, Settings
from truename.config.division import DIVIDED, of_worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.cli.conftest import Run

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc")]
MANY = 24


@contextmanager
def workers(source: Path, *words: object, count: int = 2) -> Iterator[Served]:
    with serving(source, "--http", "127.0.0.1:0", "--workers", count, "--json", *words) as (process, out, err):
        # Of the first worker; the report follows when all of them serve.
        err.until("ready")
        out.until('"url"')
        url = json.loads("{" + out.seen[-1].rstrip(",") + "}")["url"]
        served = Served(process, url, out, err)
        try:
            yield served
        finally:
            if process.poll() is None:
                served.end()


def journal(file: Path, *tools: str) -> dict[str, Any]:
    args = ["-m", "tests.gateway.servers.journal", str(file), *tools]
    return {"command": sys.executable, "args": args, "cwd": str(ROOT)}


def witness(file: Path) -> dict[str, Any]:
    """Return the entry of a program that each worker starts for itself."""
    args = ["-m", "tests.gateway.servers.witness", str(file)]
    return {"command": sys.executable, "args": args, "cwd": str(ROOT), "instances": "worker"}


def running(file: Path) -> int:
    """Return how many calls the programs got."""
    return file.read_text().count(" tools/call") if file.exists() else 0


async def called(url: str, tool: str, number: int, *, heard: dict[int, str]) -> None:
    """Call a tool over a connection of its own, and note what became of it."""
    async with httpx2.AsyncClient(timeout=PATIENCE) as http:
        try:
            answer = await Raw(http, url.removesuffix("/mcp")).post("tools/call", {"name": tool, "arguments": {}})
            # One that took its time is a stream.
            heard[number] = "answered" if '"result"' in answer.text else answer.text
        except httpx2.TransportError as error:
            heard[number] = type(error).__name__


def test_a_killed_worker_fails_its_own_calls_only_and_comes_back(
    configure: Callable[..., Path], tmp_path: Path
) -> None:
    ran = tmp_path / "journal"
    heard: dict[int, str] = {}

    async def load(served: Served) -> None:
        async with anyio.create_task_group() as tasks:
            for number in range(MANY):
                tasks.start_soon(partial(called, served.url, "hold", number, heard=heard))
            await anyio.to_thread.run_sync(until, lambda: running(ran) == MANY)
            os.kill(served.workers()[1], signal.SIGKILL)
            await anyio.to_thread.run_sync(until, lambda: bool(heard))
            ran.with_suffix(".gate").touch()
        # The socket of one worker alone would refuse some of these.
        for number in range(MANY, 2 * MANY):
            await called(served.url, "hold", number, heard=heard)

    with workers(configure({}, servers={"w": witness(ran)}, truename={"max_concurrent": 1_000})) as served:
        first = served.workers()
        anyio.run(load, served)
        served.err.until('"ready": true')
        assert served.workers().keys() == {1, 2}
        assert served.workers()[1] != first[1]
        assert served.workers()[2] == first[2]
        assert served.end() == 0

    failed = {number: what for number, what in heard.items() if what != "answered"}
    assert 0 < len(failed) < MANY
    assert set(failed) < set(range(MANY))
    assert set(failed.values()) <= {"ReadError", "RemoteProtocolError"}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Serve ten tools of two servers by two workers, for the tests that only look."""
    folder = tmp_path_factory.mktemp("workers")
    tools = [f"tool.{number}" for number in range(5)]
    servers = {key: journal(folder / key, *tools) for key in ("a", "b")}
    source = folder / "mcp.json"
    settings = {"telemetry": {"metrics": True}, "state": str(folder / "state.db")}
    source.write_text(json.dumps({"mcpServers": servers, "truename": settings}))
    with workers(source, "--log-format", "json", "--log-level", "debug") as served:
        yield served
    # The workers shared the program of a server that was called.
    assert all(len(_processes(file)) == 1 for key in servers if (file := folder / key).exists())


def test_a_name_that_one_worker_shows_means_the_same_at_all(served: Served) -> None:
    async def look() -> tuple[set[tuple[str, ...]], str]:
        shown: set[tuple[str, ...]] = set()
        before = await _metrics(served.url)
        for _ in range(MANY):
            async with Client(served.url, mode="2026-07-28") as client:
                shown.add(tuple(tool.name for tool in (await client.list_tools()).tools))
                name = next(iter(shown))[0]
            async with Client(served.url, mode="2026-07-28") as client:
                await client.list_tools()
                assert not (await client.call_tool(name, {})).is_error
        assert "truename_calls_total{" not in before
        return shown, await _metrics(served.url)

    shown, metrics = anyio.run(look)

    assert len(shown) == 1
    assert len(next(iter(shown))) == 10
    # The metrics are those of all workers.
    assert re.findall(r'^truename_worker_up\{worker="(\d)"\} 1.0$', metrics, re.MULTILINE) == ["1", "2"]
    calls = re.findall(r'^truename_calls_total\{.*worker="(\d)".*\} (\S+)$', metrics, re.MULTILINE)
    assert sum(float(value) for _, value in calls) == MANY
    assert {worker for worker, _ in calls} == {"1", "2"}
    assert len(re.findall(r"^# TYPE truename_calls_total ", metrics, re.MULTILINE)) == 1


async def _metrics(url: str) -> str:
    async with httpx2.AsyncClient() as http:
        return (await http.get(url.removesuffix("/mcp") + "/metrics")).text


def test_a_port_is_not_shared_with_another_gateway(served: Served, configure: Callable[..., Path], run: Run) -> None:
    port = re.findall(r":(\d+)/", served.url)[0]

    refused = run("serve", configure({"one": ["search"]}), "--http", f"127.0.0.1:{port}", "--workers", 2)

    assert refused.status == 2
    assert "the port is in use" in refused.err


def test_a_second_signal_interrupts_the_calls_of_all_workers(configure: Callable[..., Path], tmp_path: Path) -> None:
    ran = tmp_path / "journal"
    heard: dict[int, str] = {}

    async def load(served: Served) -> None:
        async with AsyncExitStack() as stack:
            tasks = await stack.enter_async_context(anyio.create_task_group())
            for number in range(MANY):
                tasks.start_soon(partial(called, served.url, "hold", number, heard=heard))
            await anyio.to_thread.run_sync(until, lambda: running(ran) == MANY)
            served.supervisor.send_signal(signal.SIGTERM)
            await anyio.to_thread.run_sync(served.err.until, "worker 1: Shutting down")
            served.supervisor.send_signal(signal.SIGTERM)

    settings = {"max_concurrent": 1_000}
    with serving(
        configure({}, servers={"w": witness(ran)}, truename=settings),
        "--http",
        "127.0.0.1:0",
        "--workers",
        2,
    ) as (process, out, err):
        url = out.until("/mcp  ").split()[0]
        anyio.run(load, Served(process, url, out, err))
        status = process.wait(PATIENCE)
        err.rest()

    out.rest()
    assert status == 1
    assert len([line for line in out.seen if "/mcp  " in line]) == 1
    assert "2 workers serve it." in out.seen
    assert len([line for line in err.seen if "Ended." in line]) == 1
    assert err.seen[-1].startswith(f"Ended. {MANY} calls were interrupted, because a second signal arrived")


def _processes(file: Path) -> set[str]:
    return {line.split()[1] for line in file.read_text().splitlines() if " " in line}


def test_workers_end_when_their_supervisor_is_killed(configure: Callable[..., Path], tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    args = ["-m", "tests.gateway.servers.stubborn", str(pid_file)]
    server = {"command": sys.executable, "args": args, "cwd": str(ROOT)}
    with workers(configure({}, servers={"stubborn": server})) as served:
        pids = [*served.workers().values(), int(pid_file.read_text())]
        port = int(re.findall(r":(\d+)/", served.url)[0])
        served.supervisor.kill()
        served.supervisor.wait()

        until(lambda: not any(map(alive, pids)))

    with socket.socket() as again:
        again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        again.bind(("127.0.0.1", port))


def test_what_is_wrong_is_told_once_and_nobody_stays(configure: Callable[..., Path]) -> None:
    source = configure({"one": ["search"]})
    with serving(source, "--http", "0.0.0.0:0", "--workers", 2) as (process, _, err):
        status = process.wait(PATIENCE)
        err.rest()

    assert status == 2
    assert len([line for line in err.seen if line.startswith("error: ")]) == 1
    assert "no authentication is configured" in err.seen[0]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--workers", "2"], "--workers is for HTTP"),
        (["--http", "127.0.0.1:0", "--workers", "0"], "is not a number of processes"),
        (["--http", "127.0.0.1:0", "--workers", "-1"], "is not a number of processes"),
        (["--http", "127.0.0.1:0", "--workers", "two"], "is not a number of processes"),
        # Without this limit, the state in memory is refused.
        (
            ["--http", "127.0.0.1:0", "--workers", "257", "--state", "memory"],
            f"here the gateway may use {cores()} processor",
        ),
        (["--http", "127.0.0.1:0", "--workers", "9" * 5_000, "--state", "memory"], "is more than 256 processes"),
        (["--http", "127.0.0.1:0", "--workers", "2", "--state", "memory"], "cannot share a state in memory"),
    ],
)
def test_it_refuses_what_workers_cannot_do(
    configure: Callable[..., Path], run: Run, words: list[str], said: str
) -> None:
    refused = run("serve", configure({"one": ["search"]}), *words)

    assert refused.status == 2
    assert said in refused.err


def test_a_reload_reaches_all_workers_and_is_told_once(configure: Callable[..., Path]) -> None:
    source = configure({"one": ["search"]}, truename={"reload": "signal"})

    async def shown(url: str) -> set[tuple[str, ...]]:
        found = set()
        for _ in range(8):
            async with Client(url, mode="2026-07-28") as client:
                found.add(tuple(tool.name for tool in (await client.list_tools()).tools))
        return found

    with workers(source, "--log-format", "json", "--log-level", "debug") as served:
        configure({"one": ["search"], "two": ["send"]}, truename={"reload": "off"})
        served.supervisor.send_signal(signal.SIGHUP)
        served.err.until("reloaded")
        until(lambda: anyio.run(shown, served.url) == {("search", "send")})
        # By the new configuration nothing is reloaded, so it means the end.
        assert served.end(signal.SIGHUP) == 0

    assert len([line for line in served.err.seen if "reloaded" in line]) == 1
    written = [json.loads(line) for line in served.err.seen if '"logger"' in line]
    assert {line["worker"] for line in written} <= {1, 2}


def test_limits_of_workers_add_up_to_those_of_the_settings() -> None:
    servers = (ServerConfig(key="one", command="x", max_concurrent=5), ServerConfig(key="two", command="x"))
    config = Config(servers=servers, settings=Settings(max_sessions=10, max_held=1, replica_address="gw:8751"))

    part = of_worker(config, 3, 4)

    assert (part.settings.max_sessions, part.settings.max_held) == (3, 1)
    assert [server.max_concurrent for server in part.servers] == [2, None]
    assert part.settings.replica_address == "gw:8753"
    for name in DIVIDED:
        whole = getattr(config.settings, name)
        assert whole <= 4 * getattr(part.settings, name) < whole + 4


def test_auto_is_the_number_of_usable_processors() -> None:
    assert 1 <= cores() <= (os.cpu_count() or 1)

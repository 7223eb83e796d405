"""Limits of one server: how many calls run and wait, how long one may take, which are repeated, when none is sent."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from truename.config import ServerConfig, Settings
from truename.gateway.protocol.errors import MCPError
from truename.gateway.upstream.upstream import Upstream
from truename.gateway.upstream_errors import UpstreamError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.gateway.conftest import Lab
    from truename.gateway.upstream.limits import Calls

pytestmark = pytest.mark.anyio


class Bench:
    """An `Upstream` whose server does what a test says."""

    closed = False

    def __init__(self, *, config: dict[str, Any] | None = None, **settings: Any) -> None:
        self.sent: list[float] = []
        self.outcomes: list[Exception | None] = []
        self.release = anyio.Event()
        server = ServerConfig(key="s", command="x", **(config or {}))
        nothing: Any = None
        self.upstream = Upstream(
            server, Settings(**settings), {}, changed=lambda: None, on_event=lambda _: None, outside=nothing
        )
        connection: Any = self
        self.upstream._connection = connection

    @property
    def is_suspected(self) -> bool:
        return self.upstream._suspect.is_set()

    @property
    def calls(self) -> Calls:
        return self.upstream.calls

    async def request(self, _: str, __: Any, *, timeout: float, **___: Any) -> dict[str, Any]:
        """Answer as the connection would."""
        self.sent.append(timeout)
        if self.outcomes:
            if (outcome := self.outcomes.pop(0)) is not None:
                raise outcome
            return {}
        await self.release.wait()
        return {}

    async def call(self, name: str = "t", method: str = "tools/call") -> dict[str, Any]:
        return await self.upstream.request(method, {"name": name}, capabilities={}, on_progress=None)

    async def kind(self, name: str = "t", method: str = "tools/call") -> str:
        try:
            await self.call(name, method)
        except UpstreamError as error:
            return error.kind
        return ""


def _fault(kind: str) -> UpstreamError:
    return UpstreamError(server="s", kind=kind, problem="broke", remedy="")


async def test_so_many_run_so_many_wait_and_the_next_is_told_that_the_server_is_busy() -> None:
    bench = Bench(max_concurrent=2, max_waiting=3)
    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(bench.call)
        await anyio.wait_all_tasks_blocked()
        assert len(bench.sent) == 2
        with pytest.raises(UpstreamError, match="2 calls are running there and 3 are waiting") as caught:
            await bench.call()
        assert (caught.value.kind, caught.value.code) == ("busy", "upstream_unavailable")
        bench.release.set()
    assert len(bench.sent) == 5


async def test_nobody_waits_longer_for_a_place_than_a_call_may_take() -> None:
    bench = Bench(config={"max_concurrent": 1}, call_timeout=0.01)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bench.call)
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(UpstreamError, match=r"1 calls are running there, and none ended for 0\.01 seconds"):
            await bench.call()
        bench.release.set()


async def test_a_client_that_gives_up_takes_no_place_with_it() -> None:
    bench = Bench(max_concurrent=1, max_waiting=1)
    async with anyio.create_task_group() as tasks:
        for _ in range(2):
            tasks.start_soon(bench.call)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    bench.release.set()

    assert await bench.kind() == ""


@pytest.mark.parametrize(
    ("tool", "method", "seconds"),
    [
        ("plain", "tools/call", 20.0),
        ("slow", "tools/call", 900.0),
        ("slow", "prompts/get", 20.0),
        ("get_it", "tools/call", 5.0),
        ("get_slow", "tools/call", 60.0),
    ],
)
async def test_a_tool_may_have_a_timeout_of_its_own(tool: str, method: str, seconds: float) -> None:
    timeouts = {"slow": 900.0, "get_*": 5.0, "get_slow": 60.0}
    bench = Bench(config={"timeout": 20.0, "tool_timeouts": timeouts})
    bench.release.set()
    await bench.call(tool, method)
    assert bench.sent == [seconds]


@pytest.mark.parametrize(
    ("tool", "method", "kind", "sent"),
    [
        ("get_it", "tools/call", "lost", 3),
        ("get_it", "tools/call", "unreachable", 3),
        ("get_it", "tools/call", "timeout", 1),
        ("get_it", "tools/call", "too_large", 1),
        ("get_it", "prompts/get", "lost", 1),
        ("set_it", "tools/call", "lost", 1),
    ],
)
async def test_only_what_is_marked_is_sent_again_and_only_when_the_connection_went(
    tool: str, method: str, kind: str, sent: int
) -> None:
    bench = Bench(config={"idempotent": ("get_*",)})
    bench.outcomes = [_fault(kind)] * 3
    assert await bench.kind(tool, method) == kind
    assert len(bench.sent) == sent


async def test_the_second_attempt_may_be_the_good_one() -> None:
    bench = Bench(config={"idempotent": ("*",)})
    bench.outcomes = [_fault("lost"), None]
    assert await bench.call() == {}
    assert bench.is_suspected


async def test_a_server_that_fails_in_a_row_is_left_alone_and_the_call_says_why() -> None:
    bench = Bench(breaker_failures=3)
    bench.outcomes = [_fault("timeout")] * 3
    assert [await bench.kind() for _ in range(3)] == ["timeout"] * 3

    with pytest.raises(UpstreamError, match=r"failed 3 times in a row, .* not sent \(the last one: broke\)"):
        await bench.call()
    assert len(bench.sent) == 3

    bench.calls.breaker.revive()
    bench.outcomes = [None, None]
    assert [await bench.kind(), await bench.kind()] == ["", ""]


async def test_a_sign_of_life_that_never_comes_holds_no_later_one_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("truename.gateway.upstream.limits.CHECK_INTERVAL", 0.01)
    bench = Bench(breaker_failures=1)
    bench.outcomes = [_fault("timeout"), None]
    assert await bench.kind() == "timeout"
    asked, answered = 0, anyio.Event()

    class Returning:
        async def answers(self, within: float) -> bool:
            nonlocal asked
            asked += 1
            if asked == 1:
                await anyio.sleep(within)
                return False
            answered.set()
            return True

    connection: Any = Returning()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bench.calls.look_after, connection)
        with anyio.fail_after(1):
            await answered.wait()
        tasks.cancel_scope.cancel()
    assert await bench.kind() == ""


async def test_errors_that_a_server_sends_and_single_answers_that_are_wrong_are_signs_of_life() -> None:
    bench = Bench(breaker_failures=1)
    for outcome in (MCPError(code=-32000, message="no"), _fault("too_large")):
        bench.outcomes = [outcome, None]
        with pytest.raises(type(outcome)):
            await bench.call()
        await bench.call()


async def test_a_call_in_the_queue_is_not_sent_to_a_server_that_failed_meanwhile() -> None:
    bench = Bench(max_concurrent=1, breaker_failures=1)
    bench.outcomes = [_fault("lost"), None]
    found: list[str] = []

    async def call() -> None:
        found.append(await bench.kind())

    async with anyio.create_task_group() as tasks:
        for _ in range(2):
            tasks.start_soon(call)
    assert (found, len(bench.sent)) == (["lost", "unreachable"], 1)


async def test_a_tool_that_is_marked_is_run_again_by_the_server_that_was_restarted(
    lab: Lab, tmp_path: Path, connect: Callable[..., Any], said: Callable[[Any], str]
) -> None:
    journal = tmp_path / "journal"
    server = lab.script("j", "journal", str(journal), "once", "die", idempotent=("once",))
    async with lab.serving(server) as address, connect(address + "/mcp", "2026-07-28") as client:
        assert said(await client.call_tool("once", {})) == "journal:once"
        assert (await client.call_tool("die", {})).is_error
    ran = [line.split()[0] for line in journal.read_text().splitlines()]
    assert ran == ["once", "once", "die"]


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="there is no way to freeze a program")
async def test_a_frozen_server_is_left_alone_and_called_again_when_it_goes_on(
    lab: Lab, tmp_path: Path, connect: Callable[..., Any], said: Callable[[Any], str]
) -> None:
    journal = tmp_path / "journal"
    server = lab.script("j", "journal", str(journal), "get")
    settings = {"call_timeout": 0.2, "breaker_failures": 2, "breaker_seconds": 600.0}
    async with lab.serving(server, **settings) as address, connect(address + "/mcp", "2026-07-28") as client:
        assert said(await client.call_tool("get", {})) == "journal:get"
        pid = int(journal.read_text().split()[1])
        os.kill(pid, signal.SIGSTOP)
        try:
            texts = [said(await client.call_tool("get", {})) for _ in range(3)]
        finally:
            os.kill(pid, signal.SIGCONT)
        assert "did not answer within 0.2 seconds" in texts[1]
        assert "failed 2 times in a row, so its circuit breaker is open" in texts[2]
        with anyio.fail_after(10):
            while (result := await client.call_tool("get", {})).is_error:
                await anyio.sleep(0.05)
        assert said(result) == "journal:get"

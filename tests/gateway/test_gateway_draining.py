"""A gateway that is told to end lets its calls end first."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
import pytest
from anyio.lowlevel import checkpoint
from mcp.shared.exceptions import MCPError

from tests.gateway.conftest import ROOT, text_of
from tests.gateway.shelf import Shelf
from tests.gateway.streams import reader
from tests.support.gateway_holding import ANSWER, ASK
from tests.support.gateway_questions import Handshaking
from truename.gateway import listening
from truename.gateway.cancellation import Cancellation
from truename.gateway.drain import DrainTracker, OutgoingAnswers
from truename.gateway.upstream_errors import UpstreamError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from tests.gateway.conftest import Lab, Upstreams
    from truename.config import ServerConfig
    from truename.gateway import Gateway

pytestmark = pytest.mark.anyio


async def test_without_calls_there_is_nothing_to_wait_for() -> None:
    drain_tracker = DrainTracker()
    drain_tracker.begin("truename", Cancellation())()
    drain_tracker.close()
    with anyio.fail_after(1):
        await drain_tracker.drained()


async def test_no_call_begins_while_others_end() -> None:
    drain_tracker = DrainTracker()
    end = drain_tracker.begin("truename", Cancellation())
    drain_tracker.close()
    with pytest.raises(UpstreamError, match="'truename' is shutting down and accepts no more calls; this call"):
        drain_tracker.begin("truename", Cancellation())
    # What goes on with a call that is running already is another matter.
    drain_tracker.begin("truename", Cancellation(), goes_on=True)()
    assert drain_tracker.running == 1
    with anyio.move_on_after(0) as scope:
        await drain_tracker.drained()
    assert scope.cancelled_caught
    end()
    end()
    with anyio.fail_after(1):
        await drain_tracker.drained()


def test_what_is_to_be_done_when_an_answer_has_left_is_done_once() -> None:
    answers, done = OutgoingAnswers(), list[str]()
    answers.after(1, lambda: done.append("one"))
    answers.after(2, lambda: done.append("two"))
    answers.left(1)
    answers.left(1)
    assert done == ["one"]
    answers.over()
    answers.over()
    assert done == ["one", "two"]
    answers.after(3, lambda: done.append("three"))
    assert done == ["one", "two", "three"]


async def test_draining_ends_with_its_time(lab: Lab) -> None:
    async with lab.gateway(lab.normal("w", "get"), drain_timeout=0.01) as gateway:
        end = gateway.registry.drain_tracker.begin("truename", Cancellation())
        assert not await gateway.drain()
        end()
        assert await gateway.drain()


@pytest.mark.usefixtures("schemes")
@pytest.mark.parametrize("order", ["back first", "answered first"])
async def test_who_comes_back_for_a_broken_stream_is_waited_for(lab: Lab, tmp_path: Path, order: str) -> None:
    journal, drained = tmp_path / "ran", list[bool]()
    gate = journal.with_suffix(".gate")

    async def drain(gateway: Gateway) -> None:
        drained.append(await gateway.drain())

    async with (
        lab.gateway(lab.script("j", "journal", str(journal), "hold")) as gateway,
        listening(gateway) as address,
        reader(address) as client,
        anyio.create_task_group() as tasks,
    ):
        async with client.call("hold", 7) as stream:
            await stream.next()
        assert stream.last is not None
        while not journal.exists():
            await anyio.sleep(0.02)
        if order == "answered first":
            gate.touch()
        tasks.start_soon(drain, gateway)
        async with client.get(stream.last) as again:
            gate.touch()
            (answer,) = await again.rest()
            assert answer["id"] == 7
    assert drained == [True]


@pytest.mark.usefixtures("schemes")
@pytest.mark.parametrize("what", ["tool", "prompt"])
async def test_who_is_broken_off_is_told_so(
    lab: Lab, connect: Callable[..., Any], era: str, tmp_path: Path, upstreams: Upstreams, *, what: str
) -> None:
    journal, shelf, heard = tmp_path / "journal", Thoughtful(), list[str]()

    async def ask(client: Any) -> None:
        if what == "tool":
            heard.append(text_of(await client.call_tool("wait", {})))
        else:
            with pytest.raises(MCPError) as caught:
                await client.get_prompt("say", {})
            heard.append(caught.value.error.message)

    async with (
        upstreams.serve(shelf.server) as url,
        lab.gateway(lab.script("j", "journal", str(journal), "wait"), lab.at("a", url), style="on-conflict") as gateway,
        listening(gateway) as address,
        connect(address + "/mcp", era) as client,
        anyio.create_task_group() as tasks,
    ):
        await client.list_tools()
        tasks.start_soon(ask, client)
        if what == "prompt":
            await shelf.asked_for.wait()
        while what == "tool" and not journal.exists():
            await anyio.sleep(0.02)
        assert gateway.unfinished == 1
        assert not await gateway.drain(0.01)
        await gateway.break_off()
        assert gateway.unfinished == 0
    (told,) = heard
    assert told.startswith("Server 'truename' stopped before the call ended, and the call was cancelled.")


class Thoughtful(Shelf):
    """A shelf that answers when it is told to."""

    def __init__(self) -> None:
        super().__init__("a", prompts=("say",), uris=("test://x",), templates=("test://{a}",))
        self.asked_for, self.may = anyio.Event(), anyio.Event()
        self.server.middleware.append(self._think)
        self.server.add_request_handler("completion/complete", types.CompleteRequestParams, self._complete)

    async def _think(self, ctx: Any, call_next: Any) -> Any:
        if ctx.method in {"prompts/get", "resources/read", "completion/complete"}:
            self.asked_for.set()
            await self.may.wait()
        return await call_next(ctx)

    async def _complete(self, _: Any, __: Any) -> types.CompleteResult:
        return types.CompleteResult(completion=types.Completion(values=["a"]))


WAYS: dict[str, Callable[[Any], Awaitable[Any]]] = {
    "prompts": lambda client: client.get_prompt("say", {}),
    "resources": lambda client: client.read_resource("test://x"),
    "completion": lambda client: client.complete(types.PromptReference(name="say"), {"name": "a", "value": ""}),
}


@pytest.mark.parametrize("what", WAYS)
async def test_every_request_that_goes_to_a_server_is_let_end_and_no_other_begins(
    lab: Lab, connect: Callable[..., Any], era: str, upstreams: Upstreams, *, what: str
) -> None:
    shelf, drained = Thoughtful(), list[bool]()

    async def ask(client: Any) -> None:
        await WAYS[what](client)

    async def drain(gateway: Gateway) -> None:
        drained.append(await gateway.drain())

    async with (
        upstreams.serve(shelf.server) as url,
        lab.gateway(lab.at("a", url)) as gateway,
        listening(gateway) as address,
        connect(address + "/mcp", era) as client,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(ask, client)
        await shelf.asked_for.wait()
        tasks.start_soon(drain, gateway)
        await checkpoint()
        with pytest.raises(MCPError, match="is shutting down and accepts no more calls"):
            await WAYS[what](client)
        assert len((await client.list_prompts()).prompts) == 1
        assert drained == []
        shelf.may.set()
    assert drained == [True]


async def test_a_call_that_waits_for_its_client_is_waited_for(
    lab: Lab, raw: Callable[[str], Any], upstreams: Upstreams
) -> None:
    drained = list[bool]()

    async def drain(gateway: Gateway) -> None:
        drained.append(await gateway.drain())

    async with (
        upstreams.serve(Handshaking().server) as url,
        lab.gateway(lab.at("far", url)) as gateway,
        listening(gateway) as address,
        raw(address) as http,
        anyio.create_task_group() as tasks,
    ):
        asked = await http.result("tools/call", ASK)
        tasks.start_soon(drain, gateway)
        await anyio.wait_all_tasks_blocked()
        refused = await http.result("tools/call", ASK)
        assert "is shutting down and accepts no more calls" in refused["content"][0]["text"]
        assert drained == []
        again = {**ASK, "requestState": asked["requestState"], "inputResponses": ANSWER}
        assert (await http.result("tools/call", again))["structuredContent"] == ANSWER["q1"]
    assert drained == [True]


@asynccontextmanager
async def _served(lab: Lab, *servers: ServerConfig, http: bool = True) -> AsyncIterator[anyio.abc.Process]:
    config = lab.config_file(*servers)
    command = [sys.executable, "-m", "truename", "serve", str(config), *(["--http", "127.0.0.1:0"] if http else [])]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "src")))}
    async with await anyio.open_process([*command, "--json"], env=env, stderr=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()


async def _address(process: anyio.abc.Process) -> str:
    assert process.stdout is not None
    document = ""
    with anyio.fail_after(30):
        while not document.endswith("}\n"):
            document += (await process.stdout.receive()).decode()
    assert "url" in json.loads(document), document
    return str(json.loads(document)["url"])


async def test_a_signal_lets_the_running_call_end_and_refuses_the_next(
    lab: Lab, tmp_path: Path, connect: Callable[..., Any], era: str, said: Callable[[Any], str]
) -> None:
    journal = tmp_path / "journal"
    servers = lab.script("j", "journal", str(journal), "hold_large"), lab.normal("w", "get")
    results: list[Any] = []
    async with _served(lab, *servers) as process:
        async with connect(await _address(process), era) as client:
            # Known before, so that the client has no need to ask for them when the gateway is gone.
            await client.list_tools()

            async def hold() -> None:
                results.append(await client.call_tool("j_hold_large", {}))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(hold)
                while not journal.exists():
                    await anyio.sleep(0.02)
                process.send_signal(signal.SIGTERM)
                while not (refused := await client.call_tool("w_get", {})).is_error:
                    await anyio.sleep(0.02)
                journal.with_suffix(".gate").touch()
        assert "is shutting down and accepts no more calls" in said(refused)
        assert said(results[0]) == "large" * 100_000
        with anyio.fail_after(15):
            assert await process.wait() == 0


@pytest.mark.parametrize("signals", [1, 2])
async def test_who_serves_by_the_library_lets_calls_end_too(
    lab: Lab, tmp_path: Path, connect: Callable[..., Any], *, signals: int
) -> None:
    journal, heard = tmp_path / "journal", list[str]()
    config = lab.config_file(lab.script("j", "journal", str(journal), "hold"), lab.normal("w", "get"))
    command = [sys.executable, "-m", "tests.gateway.servers.gateway_http", str(config)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "src")))}

    async def hold(client: Any) -> None:
        heard.append(text_of(await client.call_tool("j_hold", {})))

    async with await anyio.open_process(command, env=env, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        with anyio.fail_after(30):
            address = (await process.stdout.receive()).decode().strip()
        async with connect(address + "/mcp", "2026-07-28") as client, anyio.create_task_group() as tasks:
            await client.list_tools()
            tasks.start_soon(hold, client)
            while not journal.exists():
                await anyio.sleep(0.02)
            process.send_signal(signal.SIGTERM)
            while "is shutting down" not in text_of(await client.call_tool("w_get", {})):
                await anyio.sleep(0.02)
            if signals == 1:
                journal.with_suffix(".gate").touch()
            else:
                process.send_signal(signal.SIGTERM)
        with anyio.fail_after(15):
            assert await process.wait() == 0
    assert heard[0].startswith("journal:hold" if signals == 1 else "Server 'truename' stopped before the call ended")


async def test_over_a_pipe_a_slow_client_gets_the_whole_answer(lab: Lab, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    async with _served(lab, lab.script("j", "journal", str(journal), "hold_large"), http=False) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        call = {"name": "hold_large", "arguments": {}}
        for id, method, params in ((0, "initialize", about), (1, "tools/call", call)):
            message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
            await process.stdin.send(json.dumps(message).encode() + b"\n")
        with anyio.fail_after(60):
            while not journal.exists():
                await anyio.sleep(0.02)
            process.send_signal(signal.SIGTERM)
            journal.with_suffix(".gate").touch()
            with anyio.move_on_after(1.5) as unread:
                await process.wait()
            assert unread.cancelled_caught
            text = b"".join([chunk async for chunk in process.stdout])
            assert await process.wait() == 0
    answers = [json.loads(line) for line in text.splitlines()]
    (answer,) = [one for one in answers if one.get("id") == 1]
    assert answer["result"]["content"][0]["text"] == "large" * 100_000

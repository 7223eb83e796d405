"""What passes between processes that share a program: many and large messages, and questions to the right client."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from tests.gateway.conftest import PATIENCE, ROOT, alive
from tests.gateway.speakers import speaking_http
from truename.config import ServerConfig
from truename.gateway.upstream.sharing.shared_program import SharedProgram

if TYPE_CHECKING:
    from collections.abc import Callable

    from anyio.abc import TaskStatus

    from tests.gateway.conftest import Lab

pytestmark = [pytest.mark.slow, pytest.mark.anyio]

MANY = 6
LARGE = 3_000_000


async def test_calls_at_once_may_each_be_as_large_as_a_request(lab: Lab, raw: Callable[[str], Any]) -> None:
    heard: list[int] = []

    async def call(client: Any, size: int) -> None:
        params = {"name": "echo", "arguments": {"text": "x" * size}}
        answer = await client.result("tools/call", params)
        heard.append(len(answer["structuredContent"]["params"]["arguments"]["text"]))

    async with (
        lab.behind_another(lab.normal("one", "echo")) as address,
        raw(address) as client,
        anyio.create_task_group() as tasks,
    ):
        for number in range(MANY):
            tasks.start_soon(call, client, LARGE + number)

    assert sorted(heard) == [LARGE + number for number in range(MANY)]


async def test_nobody_is_asked_once_clients_of_two_processes_have_called(lab: Lab) -> None:
    asking = lab.script("asking", "asking", "one")
    async with (
        lab.replica(asking) as first,
        lab.replica(asking) as second,
        speaking_http("2025-11-25", first + "/mcp") as ada,
        speaking_http("2025-11-25", second + "/mcp") as bob,
    ):
        alone = await bob.ask("tools/call", name="ask", arguments={})
        await ada.ask("tools/call", name="me", arguments={})
        mixed = await bob.ask("tools/call", name="ask", arguments={})

    assert alone["structuredContent"]["answer"]["content"] == {"name": "ada"}
    assert [question["method"] for question in bob.asked] == ["elicitation/create"]
    assert ada.asked == []
    assert "several clients use this connection" in mixed["structuredContent"]["error"]["message"]


async def test_a_program_for_which_there_is_no_pipe_fails_alone(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(_: object) -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr("truename.gateway.upstream.sharing.shared_program.GatedPipe", exhausted)
    async with (
        lab.replica(lab.normal("one", "echo"), startup_timeout=2.0) as address,
        speaking_http("2025-11-25", address + "/mcp") as client,
    ):
        assert (await client.ask("tools/list"))["tools"] == []


async def test_a_program_that_a_probe_spoils_is_started_anew_for_all_who_greet_it_at_once(
    lab: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    args = ("-m", "tests.conformance.fixture", "--stdio", "--without", "stateless")
    program = ServerConfig(key="old", command=sys.executable, args=args, env={"PYTHONPATH": str(ROOT)})
    served, over = list[str](), anyio.Event()

    async def serve() -> None:
        async with lab.replica(program) as address, speaking_http("2025-11-25", address + "/mcp") as client:
            while not (await client.ask("tools/list"))["tools"]:
                await anyio.sleep(0.02)
            served.append(address)
            await over.wait()

    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(serve)
        with anyio.fail_after(PATIENCE):
            while len(served) < 3:
                await anyio.sleep(0.02)
        over.set()
    # It would be tried again after five seconds.
    assert "handshake is not accepted" not in caplog.text


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return what was logged of programs that were lost."""
    return [message for message in caplog.messages if "being restarted" in message]


async def test_the_end_of_a_gateway_is_no_loss_to_itself(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    program = lab.normal("one", "echo")
    async with lab.replica(program) as first, lab.replica(program) as second:
        for address in (first, second):
            async with speaking_http("2025-11-25", address + "/mcp") as client:
                await client.ask("tools/call", name="echo", arguments={})
    # The second reached the program through the first, which ran it.
    assert told(caplog) == []


async def test_a_gateway_that_runs_a_program_and_ends_is_a_loss_to_the_others_once(
    lab: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    program, over, ended = lab.normal("one", "echo"), anyio.Event(), anyio.Event()

    async def run(*, task_status: TaskStatus[None]) -> None:
        async with lab.replica(program):
            task_status.started()
            await over.wait()
        ended.set()

    async with anyio.create_task_group() as tasks:
        await tasks.start(run)
        async with lab.replica(program) as address, speaking_http("2025-11-25", address + "/mcp") as client:
            over.set()
            with anyio.fail_after(PATIENCE):
                await ended.wait()
                await client.ask("tools/call", name="echo", arguments={})
    assert len(told(caplog)) == 1


async def test_a_gateway_that_ends_waits_for_the_calls_of_others_in_the_program_that_it_runs(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, over, waits = lab.folder / "journal", anyio.Event(), anyio.Event()
    program, drained = lab.script("one", "journal", str(file), "hold"), SharedProgram.drained

    async def noted(self: SharedProgram, *args: Any) -> None:
        waits.set()
        await drained(self, *args)

    async def run(*, task_status: TaskStatus[None]) -> None:
        async with lab.replica(program):
            task_status.started()
            await over.wait()

    monkeypatch.setattr(SharedProgram, "drained", noted)
    async with anyio.create_task_group() as tasks:
        await tasks.start(run)
        async with lab.replica(program) as address, speaking_http("2025-11-25", address + "/mcp") as client:

            async def end() -> None:
                while not file.exists() or "hold" not in file.read_text():
                    await anyio.sleep(0.02)
                over.set()
                await waits.wait()
                Path(f"{file}.gate").touch()

            tasks.start_soon(end)
            with anyio.fail_after(PATIENCE):
                answer = await client.ask("tools/call", name="hold", arguments={})
    assert not answer.get("isError"), answer


async def test_another_gateway_runs_a_program_only_when_that_of_one_that_ends_has_ended(
    lab: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    file, begun, over = lab.folder / "journal", anyio.Event(), anyio.Event()
    program = lab.script("one", "journal", str(file), "hold", "note")

    async def run(*, task_status: TaskStatus[None]) -> None:
        async with (
            lab.replica(program) as address,
            speaking_http("2025-11-25", address + "/mcp") as client,
            anyio.create_task_group() as calls,
        ):
            task_status.started()
            await begun.wait()
            # Its program is busy then, and does not end with its input.
            calls.start_soon(partial(client.ask, "tools/call", name="hold", arguments={}))
            await over.wait()
            calls.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        await tasks.start(run)
        async with lab.replica(program) as address, speaking_http("2025-11-25", address + "/mcp") as client:
            begun.set()
            with anyio.fail_after(PATIENCE):
                while not (file.exists() and file.read_text().endswith("\n")):
                    await anyio.sleep(0.02)
                over.set()
                first = int(file.read_text().split()[1])
                while not told(caplog):
                    await anyio.sleep(0.02)
                while (await client.ask("tools/call", name="note", arguments={})).get("isError"):
                    await anyio.sleep(0.02)
            assert not alive(first)


def pipes() -> int:
    """Return how many ends of pipes this process has open."""
    links = (str(path.readlink()) for path in Path("/proc/self/fd").iterdir() if path.is_symlink())
    return sum(link.startswith("pipe:") for link in links)


@pytest.mark.skipif(sys.platform != "linux", reason="open pipes are counted in /proc")
async def test_a_program_that_is_not_there_leaves_no_pipe_open(lab: Lab) -> None:
    before = pipes()
    async with lab.replica(ServerConfig(key="one", command="no-such-program-anywhere")):
        assert pipes() == before

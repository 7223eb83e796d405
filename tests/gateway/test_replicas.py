"""Sessions of the handshake versions at several real gateways, behind a balancer without affinity."""

from __future__ import annotations

import signal
import sys
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
import mcp_types as types
import pytest
from mcp import Client

from tests.gateway.conftest import ROOT, text_of
from tests.gateway.streams import Reader
from tests.support.replicas import Replicas, balancer
from tests.support.state_places import new_place
from truename.storage import StateLocation

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.anyio]

VERSIONS = ("2025-03-26", "2025-06-18", "2025-11-25")


class Fleet(Replicas):
    """Three gateways with the server `tests.gateway.servers.replicated`, and what that noted."""

    def __init__(self, folder: Path, place: StateLocation) -> None:
        self.notes = folder / "notes"
        server = {
            "command": sys.executable,
            "args": ["-m", "tests.gateway.servers.replicated", str(self.notes)],
            "env": {"PYTHONPATH": str(ROOT)},
        }
        # One that all clients share asks none of them.
        super().__init__(folder, place, {"r": server, "own": {**server, "isolation": "session"}}, 3)

    def noted(self, text: str) -> int:
        """How many calls with this text were run."""
        return self.notes.read_text().split("\n").count(text) if self.notes.exists() else 0

    async def until_noted(self, text: str) -> None:
        with anyio.fail_after(30):
            while not self.noted(text):
                await anyio.sleep(0.02)

    def let_go(self) -> None:
        self.notes.with_suffix(".go").touch()

    def hold(self) -> None:
        self.notes.with_suffix(".go").unlink(missing_ok=True)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def started(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    folder = tmp_path_factory.mktemp("fleet")
    if request.param == "sqlite":
        fleet = Fleet(folder, StateLocation(folder / "state.db"))
        try:
            fleet.start()
            yield fleet
        finally:
            fleet.end()
        return
    with new_place() as place:
        fleet = Fleet(folder, place)
        try:
            fleet.start()
            yield fleet
        finally:
            fleet.end()


@pytest.fixture
def fleet(started: Fleet) -> Fleet:
    started.restart_dead()
    started.hold()
    return started


@asynccontextmanager
async def session(fleet: Fleet, number: int, version: str = "2025-11-25", **capabilities: Any) -> AsyncIterator[Reader]:
    """Begin a session at one gateway; move it to another by its `url`."""
    async with httpx2.AsyncClient(timeout=30) as http:
        client = Reader(http, f"{fleet.address(number)}/mcp", version)
        await client.open(capabilities)
        own = dict(client.headers)
        yield client
        for url in (fleet.address(number) for number in range(3)):
            with suppress(httpx2.HTTPError):
                await http.delete(f"{url}/mcp", headers=own)


def at(client: Reader, fleet: Fleet, number: int) -> Reader:
    """Return the same session as a client that reaches another gateway."""
    found = Reader(client.http, f"{fleet.address(number)}/mcp", client.version)
    found.headers = client.headers
    return found


async def text(client: Reader, note: str, id: int | str = 1) -> dict[str, Any]:
    async with client.call("r_note", id, arguments={"text": note}) as stream:
        message: dict[str, Any] = await stream.message()
        return message


def run_by(answer: dict[str, Any]) -> int:
    return int(answer["result"]["content"][0]["text"].rpartition(" ")[2])


@pytest.mark.parametrize("version", VERSIONS)
async def test_the_owner_of_a_session_answers_wherever_its_client_asks(fleet: Fleet, version: str) -> None:
    async with session(fleet, 0, version) as client:
        for number in (0, 1, 2, 1, 0):
            answer = await text(at(client, fleet, number), f"{version} {number}")
            assert run_by(answer) == fleet.pid(0)
            async with at(client, fleet, number).post("ping", {}, "p") as stream:
                assert await stream.message() == {"jsonrpc": "2.0", "id": "p", "result": {}}
        # Every other id is not found anywhere.
        client.headers["mcp-session-id"] = client.headers["mcp-session-id"][:-2] + "AA"
        for number in range(3):
            body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
            url = f"{fleet.address(number)}/mcp"
            assert (await client.http.post(url, json=body, headers=client.headers)).status_code == 404


async def test_clients_of_the_sdk_behind_a_round_robin_get_all_that_is_theirs(fleet: Fleet) -> None:
    asked = list[str]()

    async def elicited(context: Any, params: Any) -> types.ElicitResult:
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"name": "Ann"})

    async with balancer(fleet) as address:
        with anyio.fail_after(60):
            async with Client(f"{address}/mcp", mode="legacy", elicitation_callback=elicited) as client:
                assert {"r_note", "own_ask"} <= {tool.name for tool in (await client.list_tools()).tools}
                for number in range(9):
                    said = text_of(await client.call_tool("r_note", {"text": f"sdk {number}"}))
                    assert said.startswith(f"sdk {number} by ")
                    assert fleet.noted(f"sdk {number}") == 1
                told = list[float]()

                async def progressed(progress: float, total: float | None, message: str | None) -> None:
                    told.append(progress)

                assert text_of(await client.call_tool("r_progress", {}, progress_callback=progressed)) == "told"
                assert told == [1, 2, 3]
                for _ in range(3):
                    answer = await client.call_tool("own_ask", {})
                    assert answer.structured_content is not None
                    accepted = {"action": "accept", "content": {"name": "Ann"}}
                    assert answer.structured_content["answer"] == accepted, answer
    assert asked == ["Server 'own' asks: Who?"] * 3


async def test_events_arrive_through_another_gateway_as_they_come(fleet: Fleet) -> None:
    async with session(fleet, 0) as client:
        far = at(client, fleet, 1)
        async with far.call("r_progress", 7, _meta={"progressToken": "t"}) as stream:
            messages = await stream.rest()
        assert [one["params"]["progress"] for one in messages[:-1]] == [1, 2, 3]
        assert messages[-1]["id"] == 7
        async with far.get() as listening:
            # A second one is refused, wherever it is asked for: there is one session.
            response = await client.http.get(at(client, fleet, 2).url, headers=client.headers)
            assert response.status_code == 409
            assert listening.response.headers["content-type"].startswith("text/event-stream")
        # The end of the client's connection ends the owner's.
        with anyio.fail_after(10):
            while True:
                async with client.http.stream("GET", client.url, headers=client.headers) as response:
                    if response.status_code == 200:
                        break


async def test_a_cancelled_call_is_cancelled_wherever_its_client_says_so(fleet: Fleet) -> None:
    async with session(fleet, 0) as client, anyio.create_task_group() as tasks:
        answers = list[dict[str, Any]]()

        async def call() -> None:
            async with at(client, fleet, 1).call("r_wait", 5, arguments={"text": "to cancel"}) as stream:
                answers.extend(await stream.rest())

        before = fleet.noted("cancelled")
        tasks.start_soon(call)
        await fleet.until_noted("wait to cancel")
        await at(client, fleet, 2).send({"method": "notifications/cancelled", "params": {"requestId": 5}})
        with anyio.fail_after(20):
            while fleet.noted("cancelled") == before:
                await anyio.sleep(0.02)
    assert [answer["error"]["code"] for answer in answers] == [-32800]


async def test_a_broken_stream_is_resumed_at_another_gateway(fleet: Fleet) -> None:
    async with session(fleet, 0) as client:
        last = None
        async with at(client, fleet, 1).call("r_wait", 6, arguments={"text": "to resume"}) as stream:
            assert (await stream.next()).message is None
            last = stream.last
        fleet.let_go()
        with anyio.fail_after(20):
            async with at(client, fleet, 2).get(last) as stream:
                answer = await stream.message()
    assert answer["result"]["content"][0]["text"] == "waited"
    assert answer["id"] == 6


async def test_a_session_that_is_ended_at_one_gateway_is_over_at_all(fleet: Fleet) -> None:
    async with session(fleet, 0) as client:
        ended = await client.http.delete(at(client, fleet, 1).url, headers=client.headers)
        assert ended.status_code == 200
        for number in range(3):
            body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
            url = at(client, fleet, number).url
            assert (await client.http.post(url, json=body, headers=client.headers)).status_code == 404


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25"])
async def test_when_its_owner_is_killed_a_session_goes_on_at_one_other(fleet: Fleet, version: str) -> None:
    async with session(fleet, 0, version) as client:
        await text(client, f"before the kill {version}")
        failed = list[dict[str, Any]]()

        async def running() -> None:
            async with at(client, fleet, 1).call("r_wait", 9, arguments={"text": f"in flight {version}"}) as stream:
                try:
                    while (told := await stream.next()).message is None:
                        continue
                    failed.append(told.message)
                except (httpx2.HTTPError, StopAsyncIteration):
                    async with at(client, fleet, 2).get(stream.last) as again:
                        failed.append(await again.message())

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(running)
            await fleet.until_noted(f"wait in flight {version}")
            fleet.kill(0)
            owners = set[int]()
            with anyio.fail_after(20):
                for number in (1, 2, 2, 1):
                    answer = await text(at(client, fleet, number), f"after the kill {version} {number}", number)
                    owners.add(run_by(answer))
        assert len(owners) == 1
        assert owners < {fleet.pid(1), fleet.pid(2)}
        # The call that ran fails in words, and is run by nobody else.
        assert ["Whether it took effect is unknown" in one["error"]["message"] for one in failed] == [True]
        assert fleet.noted(f"wait in flight {version}") == 1
        assert fleet.noted(f"after the kill {version} 1") == 2
        await_listening = at(client, fleet, 1)
        async with await_listening.get() as stream:
            assert (await stream.message())["method"] == "notifications/tools/list_changed"


async def test_a_stopped_owner_that_wakes_up_serves_nothing_of_a_session_that_was_taken_over(fleet: Fleet) -> None:
    async with session(fleet, 0) as client, anyio.create_task_group() as tasks:
        await text(client, "before the stop")
        stale = list[str]()

        async def held() -> None:
            """A call that was begun at the owner itself, whose answer would come after it woke up."""
            try:
                async with client.call("r_wait", 11, arguments={"text": "at the stopped"}) as stream:
                    while (told := await stream.next()).message is None:
                        continue
                    stale.append(str(told.message))
            except (httpx2.HTTPError, StopAsyncIteration):
                stale.append("broken off")

        tasks.start_soon(held)
        await fleet.until_noted("wait at the stopped")
        fleet.signal(0, signal.SIGSTOP)
        with anyio.fail_after(30):
            # What reaches the owner before others know that it stopped has no answer that is certain.
            while True:
                async with at(client, fleet, 1).call("r_note", "n", arguments={"text": "meanwhile"}) as stream:
                    answer = await stream.message()
                if "result" in answer:
                    break
                assert "Whether it took effect is unknown" in answer["error"]["message"]
        taken = run_by(answer)
        assert taken == fleet.pid(1)
        fleet.let_go()
        asked = list[int]()

        async def ask_owner() -> None:
            # Sent while it sleeps: it is the first that it reads.
            asked.append(run_by(await text(client, "asked at waking", "w")))

        tasks.start_soon(ask_owner)
        await anyio.lowlevel.checkpoint()
        fleet.signal(0, signal.SIGCONT)
        with anyio.fail_after(30):
            while not (asked and stale):
                await anyio.sleep(0.02)
    assert asked == [taken]
    assert stale == ["broken off"]
    for number in range(3):
        assert fleet.noted("asked at waking") == 1, fleet.log(number)


async def test_a_gateway_that_ends_hands_its_sessions_over_at_once(fleet: Fleet) -> None:
    async with session(fleet, 0) as client:
        await text(client, "before the end")
        fleet.signal(0, signal.SIGTERM)
        with anyio.fail_after(20):
            process = fleet.processes[0]
            assert process is not None
            while process.poll() is None:
                await anyio.sleep(0.02)
        begun = anyio.current_time()
        answer = await text(at(client, fleet, 1), "after the end")
        assert run_by(answer) == fleet.pid(1)
        # Nobody waits for a lease to run out.
        assert anyio.current_time() - begun < 1.4
        assert run_by(await text(at(client, fleet, 2), "after the end")) == fleet.pid(1)


async def test_a_gateway_that_waits_for_its_last_calls_hands_idle_sessions_over(fleet: Fleet) -> None:
    async with session(fleet, 0) as busy, session(fleet, 0) as idle, anyio.create_task_group() as tasks:
        answers = list[dict[str, Any]]()

        async def call() -> None:
            async with at(busy, fleet, 1).call("r_wait", 5, arguments={"text": "the last"}) as stream:
                answers.extend(await stream.rest())

        tasks.start_soon(call)
        await fleet.until_noted("wait the last")
        fleet.signal(0, signal.SIGTERM)
        with anyio.fail_after(20):
            while run_by(await text(at(idle, fleet, 1), "while it ends")) != fleet.pid(1):
                # The signal has not arrived yet.
                await anyio.sleep(0.02)
            for number in (2, 1, 2):
                assert run_by(await text(at(idle, fleet, number), "while it ends")) == fleet.pid(1)
            # Also whoever asks the one that ends.
            assert run_by(await text(idle, "while it ends")) == fleet.pid(1)
        process = fleet.processes[0]
        assert process is not None
        assert process.poll() is None
        fleet.let_go()
        with anyio.fail_after(20):
            while not answers or process.poll() is None:
                await anyio.sleep(0.02)
        (answer,) = (one for one in answers if one.get("id") == 5)
        assert "result" in answer, answer
        assert answer["result"]["content"][0]["text"] == "waited"
        assert run_by(await text(at(busy, fleet, 2), "afterwards")) == fleet.pid(2)
        assert process.returncode == 0

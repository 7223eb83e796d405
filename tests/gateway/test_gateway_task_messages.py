"""What servers ask and tell about tasks, and what it costs to wait for one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest
from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitResult

from tests.conformance.tasks import RELATED
from tests.gateway.conftest import PATIENCE
from tests.gateway.servers.tasking import Tasking
from tests.gateway.taskers import V1, speaking, two

if TYPE_CHECKING:
    from tests.gateway.conftest import Lab, Upstreams

pytestmark = [pytest.mark.slow, pytest.mark.anyio]


class _Person:
    """Answers with their name, and notes for which task they were asked."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.about: list[Any] = []

    async def __call__(self, _: Any, params: Any) -> ElicitResult:
        self.about.append((params.meta or {})[RELATED]["taskId"])
        return ElicitResult(action="accept", content={"name": self.name})


@pytest.mark.parametrize("transport", ["http", "stdio"])
async def test_questions_of_a_task_reach_who_waits_for_its_result(
    transport: str, lab: Lab, upstreams: Upstreams
) -> None:
    """Over stdio nothing but the task that it names tells whose a question is."""
    ada, bob = _Person("ada"), _Person("bob")
    outcomes: dict[str, Any] = {}

    async def wait(client: Any, id: str) -> None:
        outcomes[id] = (await client.outcome(id))["structuredContent"]["q0"]["content"]["name"]

    far = Tasking("far", refuses="stateless")
    async with upstreams.serve(far.server) as url:
        server = lab.at("far", url) if transport == "http" else lab.script("far", "tasking", "far", "handshake")
        async with (
            lab.serving(server) as address,
            speaking(V1, address, elicitation_callback=ada) as first,
            speaking(V1, address, elicitation_callback=bob) as second,
        ):
            hers, his = await first.begin("confirm_delete"), await second.begin("confirm_delete")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait, first, hers)
                tasks.start_soon(wait, second, his)
    assert outcomes == {hers: "ada", his: "bob"}
    assert (ada.about, bob.about) == ([hers], [his])


async def test_a_made_id_is_what_questions_say(lab: Lab, upstreams: Upstreams) -> None:
    ada = _Person("ada")
    async with (
        two(V1, lab, upstreams) as (_, b, address),
        speaking(V1, address, elicitation_callback=ada) as client,
    ):
        await client.begin("a_confirm_delete")
        id = await client.begin("b_confirm_delete")
        await client.outcome(id)
        assert id.startswith("task-1-")
        assert ada.about == [id]
        assert b.tasks["task-1"].answers["q0"]["content"] == {"name": "ada"}


async def test_how_a_task_stands_is_told_to_who_began_it(
    lab: Lab, upstreams: Upstreams, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[tuple[Any, Any]] = []
    came = anyio.Event()
    rest = ClientSession._on_notify

    async def hear(session: ClientSession, dctx: Any, method: str, params: Any) -> None:
        # The SDK drops what it has no model for.
        if method == "notifications/tasks/status":
            heard.append((session, params))
            came.set()
        await rest(session, dctx, method, params)

    monkeypatch.setattr(ClientSession, "_on_notify", hear)
    async with (
        two(V1, lab, upstreams) as (_, _, address),
        speaking(V1, address) as mine,
        speaking(V1, address) as others,
    ):
        await mine.begin("a_slow_compute")
        id = await mine.begin("b_slow_compute")
        await others.begin("b_slow_compute")
        await mine.ask("tools/call", name="b_finish", arguments={"task": "task-1"})
        with anyio.fail_after(PATIENCE):
            await came.wait()
        # What would be told to somebody else comes before this answer.
        await others.ask("tasks/list")
        assert [(who, one["taskId"], one["status"]) for who, one in heard] == [(mine.client.session, id, "completed")]
        assert heard[0][1]["vendor"] == [None]


async def test_who_waits_for_a_task_keeps_nobody_out(lab: Lab, upstreams: Upstreams) -> None:
    async with (
        two(V1, lab, upstreams, max_concurrent=1, breaker_failures=1) as (_, _, address),
        speaking(V1, address) as client,
        anyio.create_task_group() as tasks,
    ):
        id = await client.begin("a_slow_compute")
        tasks.start_soon(client.outcome, id)
        assert (await client.ask("tools/call", name="a_greet"))["content"][0]["text"] == "Hello, a!"
        await client.ask("tools/call", name="a_finish", arguments={"task": "task-1"})


async def test_a_result_that_is_not_there_in_time_can_be_asked_for_again(lab: Lab, upstreams: Upstreams) -> None:
    async with (
        two(V1, lab, upstreams, call_timeout=0.9, breaker_failures=1) as (_, _, address),
        speaking(V1, address) as client,
    ):
        id = await client.begin("a_slow_compute")
        with pytest.raises(MCPError, match="is still running"):
            await client.outcome(id)
        await client.ask("tools/call", name="a_finish", arguments={"task": "task-1"})
        assert (await client.outcome(id))["content"][0]["text"] == "a:slow_compute"


async def test_a_server_that_starts_anew_gives_nobodys_task_to_another(lab: Lab, upstreams: Upstreams) -> None:
    far = Tasking("far", refuses="stateless")
    async with (
        upstreams.serve(far.server) as url,
        lab.serving(lab.at("far", url)) as address,
        speaking(V1, address) as first,
        speaking(V1, address) as second,
    ):
        old = await first.begin("slow_compute")
        far.tasks.clear()
        new = await second.begin("slow_compute")
        assert old == new == "task-1"
        with pytest.raises(MCPError, match="Task not found"):
            await first.ask("tasks/get", taskId=old)
        assert (await second.ask("tasks/get", taskId=new))["status"] == "working"

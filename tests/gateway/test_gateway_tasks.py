"""Calls that become tasks: one id leads to one task of one server, for who began it alone, in the ways of both eras."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from mcp.shared.exceptions import MCPError

from tests.conformance.tasks import EXTENSION, RELATED
from tests.gateway.conftest import PATIENCE, children, raw_client
from tests.gateway.servers.tasking import Tasking
from tests.gateway.speakers import speaking_stdio
from tests.gateway.taskers import V1, V2, WAYS, New, refused_by, speaking, two
from truename.gateway import listening

if TYPE_CHECKING:
    from tests.gateway.conftest import Lab, Upstreams

pytestmark = [pytest.mark.slow, pytest.mark.anyio]

ON_LINUX = pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs its table of processes")


def _plain(result: Any) -> Any:
    """Return an answer without what the SDK's server stamps on those that are not put in raw."""
    return {key: value for key, value in result.items() if key != "_meta"} if isinstance(result, dict) else result


async def _told(client: Any, way: str) -> list[Any]:
    """Take tasks through all that the protocol has for them, and return what was answered."""
    said: list[Any] = [await client.call("slow_compute")]
    id = (said[0]["task"] if way == V1 else said[0])["taskId"]
    said.append(await client.ask("tasks/get", taskId=id))
    said.append(await client.ask("tools/call", name="finish", arguments={"task": "task-1"}))
    said.append(await client.ask("tasks/get", taskId=id))
    said.append(await client.outcome(id))
    said.append(await client.ask("tasks/cancel", taskId=await client.begin("slow_compute")))
    said += [
        await client.ask("tasks/get", taskId=await client.begin(tool)) for tool in ("failing_job", "protocol_error_job")
    ]
    if way == V1:
        said.append(await client.ask("tasks/list"))
    said.append(await client.ask("tools/call", name="greet"))
    return said


@pytest.mark.parametrize("way", WAYS)
async def test_tasks_are_told_of_as_their_server_tells(way: str, lab: Lab, upstreams: Upstreams) -> None:
    far = Tasking("far", refuses=refused_by(way))
    async with upstreams.serve(far.server) as alone, speaking(way, alone.removesuffix("/mcp")) as client:
        expected = await _told(client, way)
    async with (
        upstreams.serve(Tasking("far", refuses=refused_by(way)).server) as url,
        lab.serving(lab.at("far", url)) as address,
        speaking(way, address) as client,
    ):
        assert [_plain(one) for one in await _told(client, way)] == [_plain(one) for one in expected]
        if way == V1:
            begun = await client.call("slow_compute")
            assert begun["_meta"] == {"vendor/x": 1}
            await client.ask("tools/call", name="finish", arguments={"task": begun["task"]["taskId"]})
            outcome = await client.outcome(begun["task"]["taskId"])
            assert outcome["_meta"] == {RELATED: {"taskId": begun["task"]["taskId"]}}


@pytest.mark.parametrize("way", WAYS)
async def test_tasks_of_two_servers_with_one_id_are_told_apart(way: str, lab: Lab, upstreams: Upstreams) -> None:
    async with two(way, lab, upstreams) as (a, b, address), speaking(way, address) as client:
        first, second = await client.begin("a_slow_compute"), await client.begin("b_slow_compute")
        assert first == "task-1"
        assert second.startswith("task-1-")
        state = await client.ask("tasks/get", taskId=second)
        assert (state["taskId"], state["vendor"]) == (second, [None])
        assert b.asked[-1][1]["taskId"] == "task-1"
        await client.ask("tasks/cancel", taskId=second)
        assert (a.tasks["task-1"].status, b.tasks["task-1"].status) == ("working", "cancelled")
        await client.ask("tools/call", name="a_finish", arguments={"task": "task-1"})
        assert (await client.outcome(first))["content"][0]["text"] == "a:slow_compute"
        if way == V1:
            assert (await client.outcome(second))["_meta"] == {RELATED: {"taskId": second}}
            listed = (await client.ask("tasks/list"))["tasks"]
            assert [(one["taskId"], one["status"]) for one in listed] == [(first, "completed"), (second, "cancelled")]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("method", ["tasks/get", "tasks/cancel", "tasks/result", "tasks/update"])
async def test_an_id_of_no_task_reaches_no_server(way: str, method: str, lab: Lab, upstreams: Upstreams) -> None:
    async with two(way, lab, upstreams) as (a, b, address), speaking(way, address) as client:
        with pytest.raises(MCPError) as caught:
            await client.ask(method, taskId="task-1")
        is_there = method != ("tasks/update" if way == V1 else "tasks/result")
        assert caught.value.code == (-32602 if is_there else -32601)
        assert not [asked for asked in (*a.asked, *b.asked) if asked[0].startswith("tasks/")]


async def test_a_task_is_known_to_the_session_that_began_it_alone(lab: Lab, upstreams: Upstreams) -> None:
    async with (
        two(V1, lab, upstreams) as (a, _, address),
        speaking(V1, address) as mine,
        speaking(V1, address) as others,
    ):
        id = await mine.begin("a_slow_compute")
        asked = len(a.asked)
        for method in ("tasks/get", "tasks/cancel", "tasks/result"):
            with pytest.raises(MCPError, match="Task not found"):
                await others.ask(method, taskId=id)
        assert (await others.ask("tasks/list"))["tasks"] == []
        assert len(a.asked) == asked
        assert [one["taskId"] for one in (await mine.ask("tasks/list"))["tasks"]] == [id]


@pytest.mark.parametrize("way", WAYS)
async def test_a_path_knows_the_tasks_of_its_server_alone(way: str, lab: Lab, upstreams: Upstreams) -> None:
    async with (
        two(way, lab, upstreams) as (_, _, address),
        speaking(way, address, "/mcp/only/a") as a,
        speaking(way, address, "/mcp/only/b") as b,
    ):
        id = await a.begin("slow_compute")
        assert (await a.ask("tasks/get", taskId=id))["taskId"] == id
        with pytest.raises(MCPError, match="Task not found"):
            await b.ask("tasks/get", taskId=id)


async def test_a_long_list_of_tasks_comes_in_pages(lab: Lab, upstreams: Upstreams) -> None:
    async with two(V1, lab, upstreams) as (_, _, address), speaking(V1, address) as client:
        ids = [await client.begin(f"{'ab'[n % 2]}_slow_compute") for n in range(25)]
        first = await client.ask("tasks/list")
        second = await client.ask("tasks/list", cursor=first["nextCursor"])
        assert [len(page["tasks"]) for page in (first, second)] == [20, 5]
        assert [task["taskId"] for page in (first, second) for task in page["tasks"]] == ids
        assert "nextCursor" not in second
        for cursor in ("after-x", "after-²", "x", "after-", "after-9" + 30 * "9", 3):
            with pytest.raises(MCPError, match="Unknown cursor"):
                await client.ask("tasks/list", cursor=cursor)


async def test_a_list_goes_on_without_a_server_that_is_away(lab: Lab, upstreams: Upstreams) -> None:
    a, b = Tasking("a", refuses="stateless"), Tasking("b", refuses="stateless")
    async with upstreams.serve(a.server) as first, anyio.create_task_group() as tasks:
        second, stop = await tasks.start(upstreams.hold, b.server)
        async with (
            lab.serving(lab.at("a", first), lab.at("b", second)) as address,
            speaking(V1, address) as client,
        ):
            kept = await client.begin("a_slow_compute")
            await client.begin("b_slow_compute")
            await stop()
            assert [one["taskId"] for one in (await client.ask("tasks/list"))["tasks"]] == [kept]


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("/mcp", True, True),
        ("/mcp/only/one", True, False),
        ("/mcp/only/two", False, True),
        ("/mcp/only/none", False, False),
    ],
)
async def test_tasks_are_announced_where_a_server_has_them_in_this_way(
    path: str, old: bool, new: bool, lab: Lab, upstreams: Upstreams
) -> None:
    async with (
        upstreams.serve(Tasking("one", refuses="stateless").server) as one,
        upstreams.serve(Tasking("two", refuses="handshake").server) as two_,
        upstreams.serve(Tasking("none", says=False).server) as none,
        lab.serving(lab.at("one", one), lab.at("two", two_), lab.at("none", none)) as address,
        raw_client(address) as http,
    ):
        discovered = (await http.result("server/discover", {}, path=path))["capabilities"]
        assert discovered.get("extensions") == ({EXTENSION: {}} if new else None)
        assert "tasks" not in discovered
        for version, has_tasks in ((V1, old), ("2025-06-18", False), ("2024-11-05", False)):
            body = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
            message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": body}
            accept = {"accept": "application/json, text/event-stream"}
            answer = await http.http.post(address + path, json=message, headers=accept)
            said = answer.text.partition("data: ")[2] or answer.text
            assert ('"tasks":' in said) == has_tasks
            assert ('"extensions":' in said) is False


async def test_a_task_of_a_tool_whose_server_has_none_is_refused(lab: Lab, upstreams: Upstreams) -> None:
    a, b = Tasking("a", refuses="stateless"), Tasking("b", refuses="stateless", says=False)
    async with (
        upstreams.serve(a.server) as first,
        upstreams.serve(b.server) as second,
        lab.serving(lab.at("a", first), lab.at("b", second)) as address,
        speaking(V1, address) as client,
        speaking(V1, address, "/mcp/only/b") as alone,
    ):
        with pytest.raises(MCPError, match="cannot be run as a task") as caught:
            await client.call("b_slow_compute")
        assert caught.value.code == -32601
        assert b.asked == []
        # Where no tasks were announced, the server judges a field that it does not know.
        await alone.call("greet")
        assert b.asked[-1][1]["task"] == {"ttl": 60_000}


async def test_a_wish_for_a_task_that_was_not_announced_is_not_passed_on(lab: Lab, upstreams: Upstreams) -> None:
    a = Tasking("a", refuses="stateless")
    async with (
        upstreams.serve(a.server) as url,
        lab.serving(lab.at("a", url)) as address,
        speaking(V2, address) as client,
    ):
        done = await client.ask("tools/call", name="slow_compute", task={"ttl": 1})
        assert (done["resultType"], done["content"][0]["text"]) == ("complete", "a:slow_compute")
        assert "task" not in a.asked[-1][1]


@pytest.mark.parametrize("way", [V1, V2])
async def test_a_task_that_the_client_cannot_follow_is_told_as_an_error(
    way: str, lab: Lab, upstreams: Upstreams
) -> None:
    far = Tasking("far", refuses="handshake", rude=True)
    async with (
        upstreams.serve(far.server) as url,
        lab.serving(lab.at("far", url)) as address,
        speaking(way, address) as client,
    ):
        if way == V2:
            client.able = {}
        done = await client.ask("tools/call", name="slow_compute")
        assert done["isError"]
        assert "which this client does not support. Whether it takes effect is unknown" in done["content"][0]["text"]


async def test_the_extension_is_asked_for_as_it_is_written(lab: Lab, upstreams: Upstreams) -> None:
    async with two(V2, lab, upstreams) as (a, _, address), speaking(V2, address) as client, raw_client(address) as http:
        id = await client.begin("a_slow_compute")
        assert a.headers[-1]["mcp-name"] == "slow_compute"
        undeclared = New(http, extensions={})
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):
            with pytest.raises(MCPError) as caught:
                await undeclared.ask(method, taskId=id, inputResponses={})
            assert (caught.value.code, caught.value.data) == (
                -32021,
                {"requiredCapabilities": {"extensions": {EXTENSION: {}}}},
            )
            with pytest.raises(MCPError) as caught:
                await client.ask(method, taskId=id, header="task-2", inputResponses={})
            assert caught.value.code == -32020
        await client.ask("tasks/get", taskId=id)
        assert (a.headers[-1]["mcp-method"], a.headers[-1]["mcp-name"]) == ("tasks/get", "task-1")
        for gone in ("tasks/list", "tasks/result"):
            with pytest.raises(MCPError) as caught:
                await client.ask(gone)
            assert caught.value.code == -32601


async def test_questions_of_a_task_are_answered_by_an_update(lab: Lab, upstreams: Upstreams) -> None:
    async with two(V2, lab, upstreams) as (_, b, address), speaking(V2, address) as client:
        await client.begin("a_multi_input")
        id = await client.begin("b_multi_input")
        asked = await client.ask("tasks/get", taskId=id)
        assert (asked["status"], sorted(asked["inputRequests"])) == ("input_required", ["q0", "q1"])
        yes = {"action": "accept", "content": {"ok": True}}
        done = await client.ask("tasks/update", taskId=id, inputResponses={"q0": yes})
        assert (done["resultType"], "taskId" in done) == ("complete", False)
        assert sorted((await client.ask("tasks/get", taskId=id))["inputRequests"]) == ["q1"]
        await client.ask("tasks/update", taskId=id, inputResponses={"q1": yes})
        assert (await client.outcome(id))["structuredContent"] == {"q0": yes, "q1": yes}
        assert b.tasks["task-1"].answers == {"q0": yes, "q1": yes}


async def test_a_server_that_takes_anothers_place_has_none_of_its_tasks(lab: Lab, upstreams: Upstreams) -> None:
    old, new = Tasking("old", refuses="stateless"), Tasking("new", refuses="stateless")
    async with (
        upstreams.serve(old.server) as first,
        upstreams.serve(new.server) as second,
        lab.gateway(lab.at("far", first)) as gateway,
        listening(gateway) as address,
        speaking(V1, address) as client,
        speaking(V1, second.removesuffix("/mcp")) as beside,
    ):
        id = await client.begin("slow_compute")
        assert await beside.begin("slow_compute") == id
        await gateway.reload(replace(gateway.config, servers=(lab.at("far", second),)))
        await gateway.settle()
        with pytest.raises(MCPError, match="Task not found"):
            await client.ask("tasks/cancel", taskId=id)
        assert (await client.ask("tasks/list"))["tasks"] == []
        assert new.tasks[id].status == "working"


@pytest.mark.parametrize("is_killed", [pytest.param(True, marks=ON_LINUX), False])
async def test_a_program_that_is_started_anew_has_no_task_of_its_former_run(*, is_killed: bool, lab: Lab) -> None:
    before = children()
    far = lab.script("far", "tasking", "far", "handshake")
    async with (
        lab.gateway(far, breaker_failures=1_000) as gateway,
        listening(gateway) as address,
        speaking(V1, address) as ann,
        speaking(V1, address) as bob,
    ):
        hers = await ann.begin("slow_compute")
        if is_killed:
            (program,) = children() - before
            os.kill(int(program), signal.SIGKILL)
        else:
            other = replace(far, env={**far.env, "ANOTHER": "1"})
            await gateway.reload(replace(gateway.config, servers=(other,)))
            await gateway.settle()
        with anyio.fail_after(PATIENCE):
            while "task" not in (begun := await bob.call("slow_compute")):
                pass
        his = begun["task"]["taskId"]
        for method in ("tasks/get", "tasks/cancel", "tasks/result"):
            with pytest.raises(MCPError, match="another run of its server's program"):
                await ann.ask(method, taskId=hers)
            with pytest.raises(MCPError, match="Task not found"):
                await ann.ask(method, taskId=his)
        assert (await ann.ask("tasks/list"))["tasks"] == []
        assert (await bob.ask("tasks/get", taskId=his))["status"] == "working"


@pytest.mark.parametrize("isolation", ["session", "user"])
async def test_sessions_with_programs_of_their_own_have_tasks_of_their_own(isolation: Any, lab: Lab) -> None:
    far = lab.script("far", "tasking", "far", "handshake", isolation=isolation)
    async with (
        lab.serving(far) as address,
        speaking(V1, address) as first,
        speaking(V1, address) as second,
    ):
        hers, his = await first.begin("slow_compute"), await second.begin("slow_compute")
        assert hers != his
        await first.ask("tasks/cancel", taskId=hers)
        assert (await second.ask("tasks/get", taskId=his))["status"] == "working"
        assert (await first.ask("tasks/get", taskId=hers))["status"] == "cancelled"
        with pytest.raises(MCPError, match="Task not found"):
            await second.ask("tasks/get", taskId=hers)


@pytest.mark.parametrize("way", WAYS)
async def test_tasks_over_standard_input_and_output(way: str, lab: Lab) -> None:
    far = lab.script("far", "tasking", "far", "handshake" if way == V1 else "stateless")
    async with speaking_stdio(way, lab.over_stdio(far)) as client:
        client.able = {"extensions": {EXTENSION: {}}}
        capabilities = client.said["capabilities"]
        assert ("tasks" in capabilities, "extensions" in capabilities) == (way == V1, way == V2)
        wish = {"task": {"ttl": None}} if way == V1 else {}
        begun = await client.ask("tools/call", name="slow_compute", **wish)
        id = (begun["task"] if way == V1 else begun)["taskId"]
        assert (await client.ask("tasks/get", taskId=id))["status"] == "working"
        await client.ask("tools/call", name="finish", arguments={"task": id})
        said = await client.ask("tasks/result" if way == V1 else "tasks/get", taskId=id)
        assert (said if way == V1 else said["result"])["content"][0]["text"] == "far:slow_compute"
        await client.until(lambda: bool(client.told("notifications/tasks/status")) == (way == V1))


async def test_questions_are_no_tasks(lab: Lab) -> None:
    far = lab.script("far", "tasking", "far", "handshake")
    async with speaking_stdio(V1, lab.over_stdio(far)) as client:
        begun = await client.ask("tools/call", name="confirm_delete", task={})
        await client.ask("tasks/result", taskId=begun["task"]["taskId"])
        assert [question["params"].keys() & {"message", "task"} for question in client.asked] == [{"message"}]

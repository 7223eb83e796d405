"""A task that was begun at one gateway is followed at another one of the same state, and after a restart."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from mcp.shared.exceptions import MCPError

from tests.gateway.conftest import children
from tests.gateway.servers.tasking import Tasking
from tests.gateway.taskers import V2, New, refused_by
from tests.support.gateway_shares import people
from tests.support.gateway_tasks import OTHER_RUN, YES, begun_anew, persons, refused
from truename.errors import StoreError
from truename.gateway.views.task_record import TaskRecord

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.gateway.conftest import Lab, Upstreams
    from truename.storage import StateLocation

pytestmark = [pytest.mark.slow, pytest.mark.anyio]


async def test_a_task_is_followed_and_ended_at_another_gateway_and_after_a_restart(
    lab: Lab, raw: Callable[[str], Any], upstreams: Upstreams, place: StateLocation
) -> None:
    far = Tasking("far", refuses=refused_by(V2))
    async with upstreams.serve(far.server) as url:
        server, settings = lab.at("far", url), {"state": place.address}
        async with lab.serving(server, **settings) as there, raw(there) as second:
            async with lab.serving(server, **settings) as here, raw(here) as first:
                id = await New(first).begin("slow_compute")
                assert (await New(second).ask("tasks/get", taskId=id))["status"] == "working"
            await New(second).ask("tools/call", name="finish", arguments={"task": id})
        async with lab.serving(server, **settings) as anew, raw(anew) as third:
            assert (await New(third).ask("tasks/get", taskId=id))["status"] == "completed"


async def test_two_gateways_show_no_id_for_two_tasks(
    lab: Lab, raw: Callable[[str], Any], upstreams: Upstreams, place: StateLocation
) -> None:
    one, two = Tasking("one", refuses=refused_by(V2)), Tasking("two", refuses=refused_by(V2))
    async with upstreams.serve(one.server) as first_url, upstreams.serve(two.server) as second_url:
        servers = lab.at("a", first_url), lab.at("b", second_url)
        async with (
            lab.serving(*servers, state=place.address) as here,
            lab.serving(*servers, state=place.address) as there,
            raw(here) as first,
            raw(there) as second,
        ):
            mine, other = await New(first).begin("a_slow_compute"), await New(second).begin("b_slow_compute")
            assert (mine, other.startswith("task-1-")) == ("task-1", True)
            await New(first).ask("tasks/cancel", taskId=other)
            assert (one.tasks["task-1"].status, two.tasks["task-1"].status) == ("working", "cancelled")


async def test_a_task_is_its_principals_alone_at_every_gateway(
    lab: Lab, raw: Callable[[str], Any], upstreams: Upstreams, place: StateLocation
) -> None:
    access, headers = people("ann", "eve")
    far = Tasking("far", refuses=refused_by(V2))
    async with upstreams.serve(far.server) as url:
        settings: dict[str, Any] = {"state": place.address, "access": access}
        async with (
            lab.serving(lab.at("far", url), **settings) as here,
            lab.serving(lab.at("far", url), **settings) as there,
            raw(here) as first,
            raw(there) as second,
        ):
            id = await New(first, headers=headers["ann"]).begin("slow_compute")
            for http in (first, second):
                with pytest.raises(MCPError, match="Task not found"):
                    await New(http, headers=headers["eve"]).ask("tasks/get", taskId=id)
            assert (await New(second, headers=headers["ann"]).ask("tasks/get", taskId=id))["taskId"] == id


async def test_tasks_of_programs_that_count_alike_are_told_apart_at_every_gateway(
    lab: Lab, raw: Callable[[str], Any], place: StateLocation
) -> None:
    async with persons(lab, raw, place, lab.script("far", "tasking", "far")) as at:
        hers = await at.ann[0].begin("confirm_delete")
        his = await at.bob[1].begin("slow_compute")

        assert "Task not found" in await refused(at.bob[0], "tasks/get", hers)
        assert OTHER_RUN in await refused(at.bob[0], "tasks/update", his, inputResponses=YES)
        assert OTHER_RUN in await refused(at.ann[1], "tasks/cancel", hers)
        assert "Task not found" in await refused(at.ann[1], "tasks/cancel", his)
        assert (await at.ann[0].ask("tasks/get", taskId=hers))["status"] == "input_required"
        await at.ann[0].ask("tasks/update", taskId=hers, inputResponses=YES)
        assert (await at.ann[0].outcome(hers))["structuredContent"] == YES
        assert (await at.bob[1].ask("tasks/get", taskId=his))["status"] == "working"


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs the table of processes of Linux")
async def test_a_task_of_a_shared_program_ends_with_the_run_that_began_it(
    lab: Lab, raw: Callable[[str], Any], place: StateLocation
) -> None:
    before = children()
    async with persons(lab, raw, place, lab.script("far", "tasking", "far"), shared=True) as at:
        hers = await at.ann[0].begin("confirm_delete")
        assert (await at.ann[1].ask("tasks/get", taskId=hers))["status"] == "input_required"
        (program,) = children() - before
        os.kill(int(program), signal.SIGKILL)
        his = await begun_anew(at.bob[1])

        for client in at.ann:
            for method, more in (("tasks/get", {}), ("tasks/cancel", {}), ("tasks/update", {"inputResponses": YES})):
                assert OTHER_RUN in await refused(client, method, hers, **more)
        for client in at.bob:
            assert (await client.ask("tasks/get", taskId=his))["status"] == "working"
            assert "Task not found" in await refused(client, "tasks/cancel", hers)


async def test_an_id_that_a_server_gives_anew_is_its_last_owners_at_every_gateway(
    lab: Lab, raw: Callable[[str], Any], upstreams: Upstreams, place: StateLocation
) -> None:
    far = Tasking("far", refuses=refused_by(V2))
    async with upstreams.serve(far.server) as url, persons(lab, raw, place, lab.at("far", url)) as at:
        hers = await at.ann[0].begin("confirm_delete")
        for client in at.ann:
            assert (await client.ask("tasks/get", taskId=hers))["status"] == "input_required"
        far.tasks.clear()
        his = await at.bob[1].begin("slow_compute")
        assert list(far.tasks) == ["task-1"]

        for client in at.ann:
            for method, more in (("tasks/get", {}), ("tasks/cancel", {}), ("tasks/update", {"inputResponses": YES})):
                assert "Task not found" in await refused(client, method, hers, **more)
        for client in at.bob:
            assert (await client.ask("tasks/get", taskId=his))["status"] == "working"


async def test_a_task_is_asked_for_by_nobody_while_the_record_cannot_be_read(
    lab: Lab, raw: Callable[[str], Any], upstreams: Upstreams, place: StateLocation, monkeypatch: pytest.MonkeyPatch
) -> None:
    far = Tasking("far", refuses=refused_by(V2))
    async with upstreams.serve(far.server) as url, persons(lab, raw, place, lab.at("far", url)) as at:
        hers = await at.ann[0].begin("confirm_delete")
        await at.ann[0].ask("tasks/get", taskId=hers)
        asked = len(far.asked)
        with monkeypatch.context() as broken:
            broken.setattr(TaskRecord, "_opened", unusable)
            broken.setattr(TaskRecord, "_look", unusable)
            await at.bob[1].begin("slow_compute")
            for client in at.ann:
                if client is at.ann[1] or place.url is not None:
                    assert "cannot use its state now" in await refused(client, "tasks/get", hers)
            assert len(far.asked) == asked + 1
        assert (await at.ann[1].ask("tasks/get", taskId=hers))["status"] == "input_required"


def unusable(_: TaskRecord) -> Any:
    raise StoreError(file="state", key="", problem="it cannot be reached", remedy="", code="unusable")

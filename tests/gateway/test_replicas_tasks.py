"""A task that was begun at one gateway is followed at another one of the same state, and after a restart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from mcp.shared.exceptions import MCPError

from tests.gateway.servers.tasking import Tasking
from tests.gateway.taskers import V2, New, refused_by
from tests.support.gateway_shares import people

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.gateway.conftest import Lab, Upstreams
    from truename.storage import StateLocation

pytestmark = pytest.mark.anyio


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

"""Clients over a pipe whose ids look alike: each request is its own, whatever Python takes for equal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest

from truename.gateway.mcp.messages import notification
from truename.gateway.mcp.pipe import serve_pipe
from truename.gateway.stdio import OpenRequests

if TYPE_CHECKING:
    from truename.gateway.mcp.requests import Request

pytestmark = pytest.mark.anyio

# None of them is the id of a request, though True and 1.0 equal 1.
NO_IDS = (True, 1.0, [1], {"1": 1}, None)


def request(id: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "x"}}


@pytest.mark.parametrize(("cancelled", "goes_on"), [(1, "1"), ("1", 1)])
async def test_cancelling_one_id_leaves_the_request_alone_whose_id_looks_like_it(cancelled: Any, goes_on: Any) -> None:
    said: list[dict[str, Any]] = []
    gate = anyio.Event()
    to_gateway, incoming = anyio.create_memory_object_stream[dict[str, Any]](20)

    async def answer(_: Request) -> dict[str, Any]:
        await gate.wait()
        return {}

    async def write(message: dict[str, Any]) -> None:
        said.append(message)
        to_gateway.close()

    async with to_gateway, incoming:
        for id in (1, "1"):
            to_gateway.send_nowait(request(id))
        for wrong in (*NO_IDS, cancelled):
            to_gateway.send_nowait(notification("notifications/cancelled", {"requestId": wrong}))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve_pipe, incoming, write, answer)
            await anyio.wait_all_tasks_blocked()
            gate.set()
    assert [message["id"] for message in said] == [goes_on]


def test_a_cancellation_of_no_id_makes_no_room_for_another_request() -> None:
    intake = OpenRequests(most=1, most_bytes=1_000)
    assert intake.refusal(request(1), 10) is None
    for wrong in NO_IDS:
        assert intake.refusal(notification("notifications/cancelled", {"requestId": wrong}), 10) is None
        refused = intake.refusal(request(2), 10)
        assert refused is not None
        assert refused["id"] == 2

"""Deadlines of calls: one for each, which stands still while a person is asked, and nothing else ends a call."""

from __future__ import annotations

import asyncio
import json
import unittest.mock
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from tests.gateway.conftest import connected, text_of
from tests.support.gateway_broken_answers import JSON, Breaking
from truename.gateway.deadline import Deadline
from truename.gateway.http_connections import Connections, fields_of
from truename.gateway.upstream.addresses import ServerUrl

if TYPE_CHECKING:
    from starlette.types import Send

    from tests.gateway.conftest import Lab, Upstreams

pytestmark = pytest.mark.anyio


async def test_a_block_ends_when_its_time_is_over() -> None:
    with pytest.raises(TimeoutError), Deadline(0.01):
        await anyio.sleep_forever()
    with Deadline(60):
        await anyio.sleep(0)


async def test_a_clock_that_stands_still_ends_nothing_until_it_goes_on() -> None:
    went_on = False
    try:
        with Deadline(0.02) as deadline:
            deadline.stand_still()
            await anyio.sleep(0.05)
            went_on = True
            deadline.go_on()
            await anyio.sleep_forever()
    except TimeoutError:
        assert went_on
    else:
        pytest.fail("it has no end")


async def test_who_is_cancelled_from_without_is_cancelled_and_not_late() -> None:
    ended: list[str] = []

    async def wait() -> None:
        try:
            with Deadline(60):
                await anyio.sleep_forever()
        except TimeoutError:
            ended.append("late")
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    task = asyncio.ensure_future(wait())
    await anyio.wait_all_tasks_blocked()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == ["cancelled", "cancelled"]


async def test_a_scope_around_a_deadline_goes_on_after_it() -> None:
    with anyio.move_on_after(60) as scope:
        with pytest.raises(TimeoutError), Deadline(0.01):
            with anyio.move_on_after(60):
                await anyio.sleep_forever()
        await anyio.sleep(0)
    assert not scope.cancelled_caught


async def test_the_deadline_of_a_block_that_has_ended_cancels_nobody() -> None:
    with Deadline(0.01) as deadline:
        deadline.stand_still()
    deadline.go_on()
    await anyio.sleep(0.03)
    current: Any = asyncio.current_task()
    assert current.cancelling() == 0


class Slow(Breaking):
    """Takes its time over each call."""

    names = ("slow", "other")

    async def _post(self, message: dict[str, Any], send: Send) -> None:
        if message.get("method") == "tools/call":
            await anyio.sleep(0.5)
            body = {"jsonrpc": "2.0", "id": message["id"], "result": {"content": [{"type": "text", "text": "done"}]}}
            await self._send(send, 200, json.dumps(body).encode(), JSON)
        else:
            await super()._post(message, send)


async def test_a_tool_may_take_as_long_as_its_own_time_says_whatever_others_may(lab: Lab, upstreams: Upstreams) -> None:
    async with (
        upstreams.app(Slow()) as url,
        lab.serving(lab.at("far", url + "/mcp", tool_timeouts={"slow": 1_800.0}), call_timeout=0.1) as address,
        connected(address + "/mcp", "2026-07-28") as client,
    ):
        assert text_of(await client.call_tool("slow", {})) == "done"
        late = await client.call_tool("other", {})
        assert late.is_error
        assert "did not answer within 0.1 seconds" in text_of(late)


async def test_nothing_below_a_call_has_a_time_of_its_own(upstreams: Upstreams) -> None:
    async with upstreams.app(Slow()) as url:
        place = ServerUrl.of(url + "/mcp")
        connections = Connections()
        loop = asyncio.get_running_loop()
        body = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow"}}'
        warm = await connections.send(b"GET", place.origin, place.target, fields_of([(b"host", place.host)]), b"")
        while await warm.chunk() is not None:
            pass
        warm.close()
        before = loop.time()
        with unittest.mock.patch.object(loop, "call_later", side_effect=AssertionError("a timer was begun")):
            sending = asyncio.ensure_future(
                connections.send(b"POST", place.origin, place.target, fields_of([(b"host", place.host)]), body)
            )
            await asyncio.sleep(0)
        (await sending).close()
        assert loop.time() - before >= 0.4
        await connections.aclose()

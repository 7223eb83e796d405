"""A server tells one replica that its lists changed: the others read them too, and tell their clients."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import mcp_types as types
import pytest
from mcp.client.subscriptions import ToolsListChanged
from mcp.server.lowlevel.server import Server

from tests.conformance.fixture import refusing
from tests.gateway.conftest import PATIENCE, connected
from truename.gateway.replicas.client import PeerFailure
from truename.gateway.upstream import list_change_relay

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcp import Client

    from tests.gateway.conftest import Lab, Upstreams
    from truename.storage import StateLocation

pytestmark = pytest.mark.anyio


class Growing:
    """A server of 2025-11-25 that has one more tool after each call, and says so to the session of the caller alone.

    It is slow to list its tools to the others.
    """

    def __init__(self) -> None:
        self.tools, self.listed, self.caller = ["grow"], 0, object()
        self.server = Server("growing", on_list_tools=self._list, on_call_tool=self._call)
        self.server.middleware.append(refusing("stateless"))

    async def _list(self, context: Any, _: Any) -> types.ListToolsResult:
        self.listed += 1
        if context.session is not self.caller:
            await anyio.sleep(0.2)
        tools = [types.Tool(name=one, input_schema={"type": "object"}) for one in self.tools]
        return types.ListToolsResult(tools=tools)

    async def _call(self, context: Any, _: Any) -> types.CallToolResult:
        self.caller = context.session
        self.tools.append(f"tool_{len(self.tools)}")
        await context.session.send_tool_list_changed()
        return types.CallToolResult(content=[])


async def test_a_change_that_one_replica_is_told_of_is_seen_at_the_others(
    lab: Lab, place: StateLocation, upstreams: Upstreams
) -> None:
    growing = Growing()
    async with (
        upstreams.serve(growing.server) as url,
        lab.serving(lab.at("far", url), state=place.address) as here,
        lab.serving(lab.at("far", url), state=place.address) as there,
        connected(here + "/mcp", "2026-07-28") as caller,
        connected(there + "/mcp", "2026-07-28") as other,
        caller.listen(tools_list_changed=True) as here_told,
        other.listen(tools_list_changed=True) as there_told,
    ):
        for count in (2, 3, 4, 5):
            await caller.call_tool("grow", {})
            for events in (here_told, there_told):
                with anyio.fail_after(PATIENCE):
                    assert await anext(aiter(events)) == ToolsListChanged()
                # They know one another when the first change has come there. Then whoever is told finds it at each.
                if count > 2:
                    assert (await listed(caller), await listed(other)) == (count, count)
    # Both at the start, and both after each change.
    assert growing.listed <= 2 * (1 + 4)


async def listed(client: Client) -> int:
    return len((await client.list_tools(cache_mode="bypass")).tools)


async def test_a_replica_that_cannot_be_reached_for_long_is_told_when_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_change_relay, "_REMEMBERED", 0.0)
    monkeypatch.setattr(list_change_relay, "_PAUSE", 0.0)
    sent, told = list[Any](), anyio.Event()

    class Answer:
        async def body(self) -> AsyncIterator[bytes]:
            yield b""

        def close(self) -> None:
            told.set()

    async def send(_: object, kind: str, about: dict[str, Any], __: bytes) -> Answer:
        sent.append((kind, about))
        if len(sent) < 5:
            await anyio.lowlevel.checkpoint()
            raise PeerFailure("it cannot be reached", is_certain=True)
        return Answer()

    async def hear(_: str) -> None:
        raise AssertionError

    peer = SimpleNamespace(id="bob")
    registry = SimpleNamespace(own=SimpleNamespace(id="ann"), others=lambda: (peer,))
    client = SimpleNamespace(send=send)
    replicas: Any = SimpleNamespace(registry=registry, client=client, handle=print, on_change=print)
    relay = list_change_relay.ListChangeRelay(hear)
    async with relay.among(replicas):
        await anyio.wait_all_tasks_blocked()
        relay.announce("far")
        with anyio.fail_after(PATIENCE):
            await told.wait()
            await relay.told()
    assert [about for kind, about in sent if kind == "lists.changed"][-1] == {"servers": ["far"]}

"""What servers tell without being asked: changes of watched resources, log messages; to whom it concerns only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
import pytest
from anyio.lowlevel import checkpoint
from mcp.client.subscriptions import ResourceUpdated
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError

from tests.conformance.fixture import refusing
from tests.gateway.conftest import PATIENCE
from tests.gateway.ears import Ear
from tests.gateway.shelf import Shelf
from truename.gateway.upstream.following import Follower

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.gateway.conftest import Lab, Upstreams

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]

LOG_LEVEL = "io.modelcontextprotocol/logLevel"


@pytest.fixture(params=["stateless", "handshake"])
def refused(request: pytest.FixtureRequest) -> str:
    """The eras that the server does not speak."""
    return str(request.param)


async def test_a_session_is_told_of_the_resources_that_it_watches(
    lab: Lab, refused: str, connect: Callable[..., Any], upstreams: Upstreams
) -> None:
    shelf, other = (
        Shelf("a", uris=("test://x",), refuses=refused),
        Shelf("b", uris=("test://x",), refuses=refused),
    )
    ear, deaf = Ear(), Ear()
    async with (
        upstreams.serve(other.server) as first,
        upstreams.serve(shelf.server) as second,
        lab.serving(lab.at("b", first), lab.at("a", second)) as address,
        connect(address + "/mcp", "legacy", message_handler=ear) as client,
        connect(address + "/mcp", "legacy", message_handler=deaf) as unconcerned,
    ):
        await unconcerned.list_tools()
        await client.subscribe_resource("truename://a/test://x")
        await other.update("test://x")
        await shelf.update("test://x")
        (told,) = await ear.hears(types.ResourceUpdatedNotification)
        assert str(told.uri) == "truename://a/test://x"
        await client.unsubscribe_resource("truename://a/test://x")
        await shelf.update("test://x")
        await client.subscribe_resource("test://x")
        await other.update("test://x")
        told = await ear.hears(types.ResourceUpdatedNotification, 2)
        assert [str(one.uri) for one in told] == ["truename://a/test://x", "test://x"]
    assert deaf.all(types.ResourceUpdatedNotification) == []


async def test_a_stream_is_told_of_the_resources_that_it_names(
    lab: Lab, refused: str, connect: Callable[..., Any], upstreams: Upstreams
) -> None:
    shelf = Shelf("a", uris=("test://x", "test://y"), refuses=refused)
    async with (
        upstreams.serve(shelf.server) as url,
        lab.serving(lab.at("a", url)) as address,
        connect(address + "/mcp", "2026-07-28") as client,
        client.listen(resource_subscriptions=["test://y"]) as events,
    ):
        await shelf.update("test://x")
        await shelf.update("test://y")
        with anyio.fail_after(PATIENCE):
            assert await anext(aiter(events)) == ResourceUpdated(uri="test://y")


async def _a_while() -> None:
    for _ in range(300):
        await checkpoint()


async def test_a_subscription_is_confirmed_when_the_server_has_a_way_to_tell_of_changes(
    lab: Lab, connect: Callable[..., Any], era: str, upstreams: Upstreams
) -> None:
    shelf, ear = Shelf("a", uris=("test://y",), refuses="stateless"), Ear()
    application = shelf.server.streamable_http_app

    def with_late_streams(**more: Any) -> Any:
        inner = application(**more)

        async def serve(scope: Any, receive: Any, send: Any) -> None:
            if scope.get("method") == "GET":
                while "resources/subscribe" not in shelf.asked:
                    await anyio.sleep(0.01)
                await _a_while()
            await inner(scope, receive, send)

        return serve

    shelf.server.streamable_http_app = with_late_streams  # type: ignore[method-assign]
    async with (
        upstreams.serve(shelf.server) as url,
        lab.serving(lab.at("a", url)) as address,
        connect(address + "/mcp", era, message_handler=ear) as client,
    ):
        if era == "legacy":
            await client.subscribe_resource("test://y")
            await shelf.update("test://y")
            assert len(await ear.hears(types.ResourceUpdatedNotification)) == 1
            return
        async with client.listen(resource_subscriptions=["test://y"]) as events:
            await shelf.update("test://y")
            with anyio.fail_after(PATIENCE):
                assert await anext(aiter(events)) == ResourceUpdated(uri="test://y")


async def test_who_watches_just_after_a_start_is_told_too(
    lab: Lab, refused: str, connect: Callable[..., Any], upstreams: Upstreams, monkeypatch: pytest.MonkeyPatch
) -> None:
    follow = Follower.follow

    async def late(self: Follower, session: Any) -> None:
        await _a_while()
        await follow(self, session)

    monkeypatch.setattr(Follower, "follow", late)
    shelf = Shelf("a", uris=("test://y",), refuses=refused)
    async with (
        upstreams.serve(shelf.server) as url,
        lab.serving(lab.at("a", url)) as address,
        connect(address + "/mcp", "2026-07-28") as client,
        client.listen(resource_subscriptions=["test://y"]) as first,
        client.listen(resource_subscriptions=["test://y"]) as second,
    ):
        await shelf.update("test://y")
        with anyio.fail_after(PATIENCE):
            for events in (first, second):
                assert await anext(aiter(events)) == ResourceUpdated(uri="test://y")


async def test_what_leads_nowhere_cannot_be_watched(
    lab: Lab, connect: Callable[..., Any], upstreams: Upstreams
) -> None:
    a, b = Shelf("a", uris=("test://a",)), Shelf("b", uris=("test://b",))
    async with (
        upstreams.serve(a.server) as first,
        upstreams.serve(b.server) as second,
        lab.serving(lab.at("a", first), lab.at("b", second)) as address,
        connect(address + "/mcp", "legacy") as client,
    ):
        with pytest.raises(MCPError, match="No server lists the resource"):
            await client.subscribe_resource("test://other")


def _talkative(refused: str) -> Server[Any]:
    """A server that logs at three levels while its tool runs, and says which level it was told."""
    told: list[str] = []

    async def list_tools(ctx: Any, params: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool(name="talk", input_schema={"type": "object"})])

    async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        for level in ("debug", "info", "error"):
            text = (params.arguments or {}).get("text")
            await ctx.session.send_log_message(level, text, related_request_id=ctx.request_id)
        return types.CallToolResult(content=[], structured_content={"told": list(told)})

    async def set_level(ctx: Any, params: types.SetLevelRequestParams) -> types.EmptyResult:
        told.append(params.level)
        return types.EmptyResult()

    server = Server("talk", on_list_tools=list_tools, on_call_tool=call_tool, on_set_logging_level=set_level)
    server.middleware.append(refusing(refused))
    return server


async def test_a_session_gets_the_log_of_its_own_calls_at_its_level(
    lab: Lab, refused: str, connect: Callable[..., Any], upstreams: Upstreams
) -> None:
    ear, deaf = Ear(), Ear()
    async with (
        upstreams.serve(_talkative(refused)) as url,
        lab.serving(lab.at("a", url)) as address,
        connect(address + "/mcp", "legacy", message_handler=ear) as client,
        connect(address + "/mcp", "legacy", message_handler=deaf) as unconcerned,
    ):
        await unconcerned.list_tools()
        await client.set_logging_level("info")
        result = await client.call_tool("talk", {"text": "mine"})
        said = await ear.hears(types.LoggingMessageNotification, 2)
        assert [(one.level, one.data) for one in said] == [("info", "mine"), ("error", "mine")]
        assert result.structured_content == {"told": ["info"] if refused == "stateless" else []}
    assert deaf.all(types.LoggingMessageNotification) == []


async def test_over_http_two_sessions_each_get_their_own_log(
    lab: Lab, refused: str, connect: Callable[..., Any], upstreams: Upstreams
) -> None:
    ears = [Ear(), Ear()]
    async with (
        upstreams.serve(_talkative(refused)) as url,
        lab.serving(lab.at("a", url)) as address,
        connect(address + "/mcp", "legacy", message_handler=ears[0]) as first,
        connect(address + "/mcp", "legacy", message_handler=ears[1]) as second,
    ):
        await first.set_logging_level("info")
        await second.set_logging_level("debug")

        async def talk(client: Any, text: str) -> None:
            for _ in range(5):
                await client.call_tool("talk", {"text": text})

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(talk, first, "one")
            tasks.start_soon(talk, second, "two")
        one = await ears[0].hears(types.LoggingMessageNotification, 10)
        two = await ears[1].hears(types.LoggingMessageNotification, 15)
        assert [said.data for said in one] == ["one"] * 10
        assert [said.data for said in two] == ["two"] * 15


async def test_a_connection_of_ones_own_is_set_to_ones_level(
    lab: Lab, connect: Callable[..., Any], upstreams: Upstreams
) -> None:
    ears = [Ear(), Ear()]
    async with (
        upstreams.serve(_talkative("stateless")) as url,
        lab.serving(lab.at("a", url, isolation="session")) as address,
        connect(address + "/mcp", "legacy", message_handler=ears[0]) as first,
        connect(address + "/mcp", "legacy", message_handler=ears[1]) as second,
    ):
        await first.set_logging_level("error")
        told = (await first.call_tool("talk", {"text": "one"})).structured_content["told"]
        assert told[-1] == "error"
        await second.call_tool("talk", {"text": "two"})
        assert [said.data for said in await ears[0].hears(types.LoggingMessageNotification)] == ["one"]
        assert [said.data for said in await ears[1].hears(types.LoggingMessageNotification, 3)] == ["two"] * 3


async def test_a_request_gets_the_log_that_it_asks_for(
    lab: Lab, connect: Callable[..., Any], upstreams: Upstreams
) -> None:
    ear = Ear()
    async with (
        upstreams.serve(_talkative("handshake")) as url,
        lab.serving(lab.at("a", url)) as address,
        connect(address + "/mcp", "2026-07-28", message_handler=ear) as client,
    ):
        await client.call_tool("talk", {"text": "unasked"})
        await client.call_tool("talk", {"text": "asked"}, meta={LOG_LEVEL: "error"})
        (said,) = await ear.hears(types.LoggingMessageNotification)
        assert (said.level, said.data) == ("error", "asked")

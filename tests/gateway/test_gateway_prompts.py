"""Prompts behind the gateway: named as tools are, in a space of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest
from mcp.client.subscriptions import PromptsListChanged
from mcp.shared.exceptions import MCPError
from mcp_types import PromptListChangedNotification

from tests.gateway.conftest import PATIENCE
from tests.gateway.shelf import Shelf
from truename.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.gateway.conftest import Lab, Upstreams

pytestmark = pytest.mark.anyio


async def _names(client: Any) -> list[str]:
    return [prompt.name for prompt in (await client.list_prompts()).prompts]


async def test_prompts_of_several_servers_have_names_of_their_own(
    lab: Lab, era: str, connect: Callable[..., Any], upstreams: Upstreams
) -> None:
    a, b = Shelf("a", prompts=("greet", "part")), Shelf("b", prompts=("greet",))
    async with (
        upstreams.serve(a.server) as first,
        upstreams.serve(b.server) as second,
        lab.serving(lab.at("a", first), lab.at("b", second), lab.normal("w", "greet")) as address,
        connect(address + "/mcp", era) as client,
    ):
        assert await _names(client) == ["a_greet", "a_part", "b_greet"]
        said = await client.get_prompt("b_greet")
        assert said.messages[0].content.text == "b:greet"
        # A tool of that name is another thing.
        assert [tool.name for tool in (await client.list_tools()).tools] == ["w_greet"]


async def test_one_servers_own_address_has_its_own_prompt_names(
    lab: Lab, era: str, connect: Callable[..., Any], upstreams: Upstreams
) -> None:
    a, b = Shelf("a", prompts=("greet",)), Shelf("b", prompts=("greet", "part"))
    async with (
        upstreams.serve(a.server) as first,
        upstreams.serve(b.server) as second,
        lab.serving(lab.at("a", first), lab.at("b", second)) as address,
        connect(address + "/mcp/only/b", era) as client,
    ):
        assert await _names(client) == ["greet", "part"]
        assert (await client.get_prompt("greet")).messages[0].content.text == "b:greet"


async def test_the_name_of_no_prompt_is_refused_with_the_nearest(
    lab: Lab, era: str, connect: Callable[..., Any], upstreams: Upstreams
) -> None:
    a, b = Shelf("a", prompts=("summarize",)), Shelf("b", prompts=("translate",))
    async with (
        upstreams.serve(a.server) as first,
        upstreams.serve(b.server) as second,
        lab.serving(lab.at("a", first), lab.at("b", second)) as address,
        connect(address + "/mcp", era) as client,
    ):
        await client.list_prompts()
        with pytest.raises(MCPError) as caught:
            await client.get_prompt("a_sumarize")
    assert caught.value.code == -32602
    assert caught.value.message == "Prompt 'a_sumarize' does not exist. Did you mean 'a_summarize'?"
    assert "prompts/get" not in [*a.asked, *b.asked]


async def test_the_routing_header_says_the_servers_own_name(
    lab: Lab, raw: Callable[[str], Any], upstreams: Upstreams
) -> None:
    a, b = Shelf("a", prompts=("greet",)), Shelf("b", prompts=("greet",))
    async with (
        upstreams.serve(a.server) as first,
        upstreams.serve(b.server) as second,
        lab.serving(lab.at("a", first), lab.at("b", second)) as address,
        raw(address) as http,
    ):
        said = await http.result("prompts/get", {"name": "b_greet"})
        assert said["messages"][0]["content"]["text"] == "b:greet"
        wrong = await http.post("prompts/get", {"name": "b_greet"}, headers={"mcp-name": "a_greet"})
    assert {"mcp-protocol-version": "2026-07-28", "mcp-method": "prompts/get", "mcp-name": "greet"} in b.headers
    assert wrong.json()["error"]["code"] == -32020


async def test_a_server_without_prompts_is_not_asked_for_them(lab: Lab, upstreams: Upstreams) -> None:
    shelf = Shelf("a", uris=("test://a",))
    async with upstreams.serve(shelf.server) as url, lab.gateway(lab.at("a", url)):
        pass
    assert "resources/list" in shelf.asked
    assert "prompts/list" not in shelf.asked


async def test_lists_say_how_long_they_hold(lab: Lab, raw: Callable[[str], Any], upstreams: Upstreams) -> None:
    shelf = Shelf("a", prompts=("greet",), uris=("test://a",))
    async with upstreams.serve(shelf.server) as url, lab.serving(lab.at("a", url)) as address, raw(address) as http:
        for method in ("prompts/list", "resources/list", "resources/templates/list"):
            listed = await http.result(method, {})
            assert (listed["ttlMs"], listed["cacheScope"], listed["resultType"]) == (0, "private", "complete")


async def test_a_session_is_told_that_prompts_changed(
    lab: Lab, connect: Callable[..., Any], upstreams: Upstreams
) -> None:
    shelf, told = Shelf("a", prompts=("greet",)), anyio.Event()

    async def on_message(message: object) -> None:
        if isinstance(message, PromptListChangedNotification):
            told.set()

    async with (
        upstreams.serve(shelf.server) as url,
        lab.serving(lab.at("a", url)) as address,
        connect(address + "/mcp", "legacy", message_handler=on_message) as client,
    ):
        assert await _names(client) == ["greet"]
        shelf.prompts.append("part")
        await shelf.change()
        with anyio.fail_after(PATIENCE):
            await told.wait()
        assert await _names(client) == ["greet", "part"]


async def test_a_subscription_is_told_that_prompts_changed(
    lab: Lab, connect: Callable[..., Any], upstreams: Upstreams
) -> None:
    shelf = Shelf("a", prompts=("greet",))
    async with (
        upstreams.serve(shelf.server) as url,
        lab.serving(lab.at("a", url)) as address,
        connect(address + "/mcp", "2026-07-28") as client,
        client.listen(prompts_list_changed=True) as events,
    ):
        shelf.prompts.append("part")
        await shelf.change()
        with anyio.fail_after(PATIENCE):
            assert await anext(aiter(events)) == PromptsListChanged()
        assert await _names(client) == ["greet", "part"]


async def test_a_prompt_keeps_its_name_when_another_server_comes(
    lab: Lab, connect: Callable[..., Any], upstreams: Upstreams
) -> None:
    ledger = Ledger.memory()
    a, b = Shelf("a", prompts=("greet",)), Shelf("b", prompts=("greet",))
    async with upstreams.serve(a.server) as first, upstreams.serve(b.server) as second:
        for servers, expected in (
            ([lab.at("a", first)], ["greet"]),
            ([lab.at("b", second), lab.at("a", first)], ["greet", "b_greet"]),
        ):
            async with (
                lab.serving(*servers, ledger=ledger) as address,
                connect(address + "/mcp", "2026-07-28") as client,
            ):
                assert await _names(client) == expected
                assert (await client.get_prompt("greet")).messages[0].content.text == "a:greet"

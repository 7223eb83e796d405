"""Apps for each kind of client: over each transport, at each address, and what servers are told of who shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from mcp.client.extension import advertise

from tests.conformance.fixture import refusing
from tests.gateway.app_pages import APPS, asked, needs_node, pages_of, run_page
from tests.gateway.app_server import app_server

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp import Client

    from tests.gateway.conftest import Lab, Upstreams

pytestmark = pytest.mark.anyio

UPSTREAM_ERAS = ("handshake", "stateless")


def gated(era: str) -> Any:
    """Return a server of an era with apps for those who declare them."""
    server = app_server("a", is_gated=True, only_for_apps=("erase",))
    server.middleware.append(refusing({"handshake": "stateless", "stateless": "handshake"}[era]))
    return server


async def said_by(client: Client, name: str) -> str:
    text: str = (await client.call_tool(name, {})).content[0].text  # type: ignore[union-attr] # all answers are texts
    return text


@pytest.mark.parametrize("isolation", ["shared", "session", "user"])
@pytest.mark.parametrize("upstream", UPSTREAM_ERAS)
async def test_a_server_that_has_apps_for_those_who_declare_them_has_them_here(
    lab: Lab, era: str, connect: Callable[..., Any], upstreams: Upstreams, *, upstream: str, isolation: str
) -> None:
    async with (
        upstreams.serve(gated(upstream)) as first,
        lab.serving(lab.at("a", first, isolation=isolation)) as address,
        connect(address + "/mcp", era, extensions=[APPS]) as client,
    ):
        tools = {tool.name: tool.meta for tool in (await client.list_tools()).tools}
        assert tools["show"]["ui"]["resourceUri"].startswith("ui://truename/a/")
        assert await said_by(client, "show") == "a:show:True"
        assert await said_by(client, "erase") == "a:erase:True"


@pytest.mark.parametrize("upstream", UPSTREAM_ERAS)
async def test_a_client_without_apps_gets_the_text_of_a_server_that_asks_each_time(
    lab: Lab, era: str, connect: Callable[..., Any], upstreams: Upstreams, upstream: str
) -> None:
    async with (
        upstreams.serve(gated(upstream)) as first,
        lab.serving(lab.at("a", first)) as address,
        connect(address + "/mcp", era) as plain,
        connect(address + "/mcp", era, extensions=[APPS]) as host,
    ):
        assert {tool.name for tool in (await plain.list_tools()).tools} == {"refresh", "show"}
        assert {tool.name for tool in (await host.list_tools()).tools} == {"refresh", "show", "erase"}
        # One connection of the handshake eras is all clients': its server was told once that there are apps.
        assert await said_by(plain, "show") == f"a:show:{upstream == 'handshake'}"
        assert await said_by(host, "show") == "a:show:True"


@pytest.mark.parametrize(
    ("types", "has"),
    [({"mimeTypes": ["text/html;profile=mcp-app"]}, True), ({}, True), ({"mimeTypes": ["text/x-other"]}, False)],
)
async def test_a_client_that_shows_other_apps_is_none_that_shows_these(
    lab: Lab, era: str, connect: Callable[..., Any], upstreams: Upstreams, *, types: dict[str, Any], has: bool
) -> None:
    async with (
        upstreams.serve(app_server("a", only_for_apps=("erase",))) as first,
        lab.serving(lab.at("a", first)) as address,
        connect(address + "/mcp", era, extensions=[advertise("io.modelcontextprotocol/ui", types)]) as client,
    ):
        assert ("erase" in {tool.name for tool in (await client.list_tools()).tools}) is has


@pytest.mark.parametrize("announces", [True, False])
async def test_the_extension_is_announced_where_a_server_announces_it(
    lab: Lab, connect: Callable[..., Any], raw: Callable[[str], Any], upstreams: Upstreams, announces: bool
) -> None:
    server = app_server("a")
    if announces:
        server.extensions["io.modelcontextprotocol/ui"] = {}
    async with (
        upstreams.serve(server) as first,
        lab.serving(lab.at("a", first)) as address,
        connect(address + "/mcp", "legacy") as client,
        raw(address) as stateless,
    ):
        expected: dict[str, Any] | None = {"io.modelcontextprotocol/ui": {}} if announces else None
        assert client.server_capabilities.extensions == expected
        assert (await stateless.result("server/discover", {}))["capabilities"].get("extensions") == expected


PATHS = (
    *("/mcp", "/mcp/for/cursor", "/mcp/for/claude-code@2.1", "/mcp/servers/a,b", "/mcp/only/b", "/mcp/search"),
    *("/mcp/profile/board", "/mcp/in/desk", "/mcp/for/cursor/profile/board/in/desk/search/servers/a,b"),
)


@needs_node
@pytest.mark.parametrize("path", PATHS)
async def test_an_app_works_over_standard_input_and_output_at_every_address(
    lab: Lab, era: str, connect: Callable[..., Any], path: str
) -> None:
    settings: dict[str, Any] = {
        "profiles": {"board": {"tools": ["*/*"], "resources": ["*"], "everyone": True}},
        "contexts": {"desk": {"platform": "ios", "app": "other"}},
    }
    target = lab.over_stdio(lab.script("a", "app", "a"), lab.script("b", "app", "b"), **settings)
    target.args.append(path)
    async with connect(target, era, extensions=[APPS]) as client:
        pages = await pages_of(client)
        assert sorted(pages) == (["b"] if "only" in path else ["a", "b"])
        listed = {tool.name for tool in (await client.list_tools()).tools}
        for label, page in pages.items():
            (call,) = run_page(page, asked("tools/call", name="refresh", arguments={"x": 1}))["sent"]
            assert call["params"]["name"] in listed
            answer = await client.call_tool(call["params"]["name"], call["params"]["arguments"])
            assert answer.content[0].text == f"{label}:refresh"
            (read,) = run_page(page, asked("resources/read", uri="data://x"))["sent"]
            (content,) = (await client.read_resource(read["params"]["uri"])).contents
            assert content.text.endswith(f"{label}:data://x")


SEARCHED: tuple[dict[str, Any], ...] = ({"tool_search": "on"}, {"tool_search": "auto", "max_listed": 6})
MORE = tuple(f"more_{number}" for number in range(8))


def large(label: str) -> Any:
    return app_server(label, only_for_apps=("erase",), plain=MORE)


@pytest.mark.parametrize("settings", SEARCHED)
async def test_a_searched_list_has_what_apps_need(
    lab: Lab, era: str, connect: Callable[..., Any], upstreams: Upstreams, settings: dict[str, Any]
) -> None:
    async with (
        upstreams.serve(large("a")) as first,
        lab.serving(lab.at("a", first), **settings) as address,
        connect(address + "/mcp", era) as plain,
        connect(address + "/mcp", era, extensions=[APPS]) as host,
    ):
        own = {"search_tools", "describe_tools", "call_tool"}
        assert {tool.name for tool in (await plain.list_tools()).tools} == own
        assert {tool.name for tool in (await host.list_tools()).tools} == {*own, "refresh", "show", "erase"}


async def test_tools_that_open_apps_are_listed_as_long_as_the_client_takes_more(
    lab: Lab, era: str, connect: Callable[..., Any], upstreams: Upstreams
) -> None:
    async with (
        upstreams.serve(app_server("a", only_for_apps=("erase",), more=MORE)) as first,
        lab.serving(lab.at("a", first), tool_search="on", max_listed=5) as address,
        connect(address + "/mcp", era, extensions=[APPS]) as host,
    ):
        tools = (await host.list_tools()).tools
        # Models get five.
        assert len(tools) == 6
        assert "erase" in {tool.name for tool in tools}


@needs_node
@pytest.mark.parametrize("path", ["/mcp", "/mcp/search", "/mcp/only/a", "/mcp/search/only/a"])
async def test_an_app_calls_tools_that_are_not_listed_through_one_that_is(
    lab: Lab, era: str, connect: Callable[..., Any], upstreams: Upstreams, path: str
) -> None:
    async with (
        upstreams.serve(large("a")) as first,
        upstreams.serve(large("b")) as second,
        lab.serving(lab.at("a", first), lab.at("b", second), tool_search="on") as address,
        connect(address + path, era, extensions=[APPS]) as client,
    ):
        listed = {tool.name for tool in (await client.list_tools()).tools}
        page = (await pages_of(client))["a"]
        for name in ("refresh", "erase", "more_3"):
            (call,) = run_page(page, asked("tools/call", name=name, arguments={"x": 1}))["sent"]
            assert call["params"]["name"] in listed
            answer = await client.call_tool(call["params"]["name"], call["params"]["arguments"])
            assert answer.content[0].text == f"a:{name}"


async def test_a_model_does_not_reach_a_tool_for_apps_through_the_tool_that_calls_others(
    lab: Lab, era: str, connect: Callable[..., Any], upstreams: Upstreams
) -> None:
    async with (
        upstreams.serve(large("a")) as first,
        lab.serving(lab.at("a", first), tool_search="on") as address,
        connect(address + "/mcp", era, extensions=[APPS]) as client,
    ):
        refused = await client.call_tool("call_tool", {"name": "erase", "arguments": {}})
        found = await client.call_tool("search_tools", {"query": "erase"})
        described = await client.call_tool("describe_tools", {"names": ["erase"]})

        assert refused.is_error
        assert "for apps" in refused.content[0].text
        assert found.structured_content == {"tools": []}
        assert described.is_error
        assert (await client.call_tool("erase", {})).content[0].text == "a:erase"

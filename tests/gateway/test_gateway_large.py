"""Where there are too many tools, a few are listed and the rest is searched."""

from __future__ import annotations

import gc
import json
import re
import weakref
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from tests.shared import ROOT
from tests.support.gateway_memory import in_memory
from truename import Ledger, dialects
from truename.config import Config, Settings, load
from truename.config.trust import Trust
from truename.errors import ConfigError, LedgerError
from truename.gateway import listening
from truename.gateway.views.own_tools import MOST_DESCRIBED, MOST_FOUND
from truename.gateway.views.view import ViewSpec

if TYPE_CHECKING:
    from pathlib import Path

    from tests.gateway.conftest import Lab

pytestmark = pytest.mark.anyio

OWN = ["search_tools", "describe_tools", "call_tool"]
LOADED = "anthropic/alwaysLoad"
HIDDEN: dict[str, dict[str, Any]] = {"files/secret": {"is_for_llm": False}}


def names_in(listed: Any) -> list[str]:
    return [tool.name for tool in listed.tools]


def found(result: Any) -> list[str]:
    return [tool["name"] for tool in result.structured_content["tools"]]


# What is listed


@pytest.mark.parametrize(
    ("settings", "path", "is_large"),
    [
        ({}, "/mcp", False),
        ({"max_listed": 5}, "/mcp", False),
        ({"list_budget": 100}, "/mcp/only/files", False),
        ({"max_listed": 6, "tool_search": "auto"}, "/mcp", False),
        ({"max_listed": 5, "tool_search": "auto"}, "/mcp", True),
        ({"max_listed": 5, "tool_search": "auto"}, "/mcp/only/files", True),
        ({"list_budget": 300, "tool_search": "auto"}, "/mcp", False),
        ({"list_budget": 100, "tool_search": "auto"}, "/mcp", True),
        ({}, "/mcp/search", True),
        ({}, "/mcp/search/", True),
        ({}, "/mcp/search/only/files", True),
        ({}, "/mcp/for/cursor/search", True),
        ({"tool_search": "off"}, "/mcp/for/native/search", True),
        ({"tool_search": "on"}, "/mcp/for/cursor", True),
        ({"tool_search": "on"}, "/mcp/for/native", True),
    ],
)
async def test_a_list_that_would_be_too_long_is_a_pinned_selection_and_three_tools(
    lab: Lab, connect: Any, era: str, *, settings: dict[str, Any], path: str, is_large: bool
) -> None:
    server = lab.normal("files", *(f"tool{number}" for number in range(6)))
    more = {"pinned": ("files/tool3", "other/*"), **settings}
    async with lab.serving(server, **more) as address, connect(address + path, era) as client:
        tools = (await client.list_tools()).tools
        native = "files@1/tool3@1" if "native" in path else "tool3"
        assert [tool.name for tool in tools] == ([native, *OWN] if is_large else [f"tool{n}" for n in range(6)])
        assert all((LOADED in (tool.meta or {})) == is_large for tool in tools)


@pytest.mark.parametrize(
    ("settings", "path", "why"),
    [
        (
            {"max_listed": 5},
            "/mcp",
            "the list for universal uses tool search and contains few tools: it has 6 tools, and max_listed is 5",
        ),
        (
            {"max_listed": 5},
            "/mcp/for/cursor/only/files",
            "the list for cursor of server 'files' uses tool search and contains few tools: it has 6 tools",
        ),
        ({"list_budget": 9}, "/mcp", "and contains few tools: its definitions take about"),
    ],
)
async def test_a_list_that_is_searched_by_itself_is_logged(
    lab: Lab, connect: Any, caplog: pytest.LogCaptureFixture, *, settings: dict[str, Any], path: str, why: str
) -> None:
    server = lab.normal("files", *(f"tool{number}" for number in range(6)))
    async with (
        lab.serving(server, tool_search="auto", **settings) as address,
        connect(address + path, "legacy") as client,
    ):
        await client.list_tools()
        await client.list_tools()

    assert len([text for text in caplog.messages if why in text]) == 1


async def test_tools_are_searched_at_one_address_and_listed_at_another(lab: Lab, connect: Any) -> None:
    async with lab.serving(lab.normal("a", "one", "two")) as address:
        for _ in range(2):
            async with connect(address + "/mcp/search", "legacy") as searching:
                assert names_in(await searching.list_tools()) == OWN
                assert found(await searching.call_tool("search_tools", {"query": "two"})) == ["two"]
                assert not (await searching.call_tool("call_tool", {"name": "two"})).is_error
            async with connect(address + "/mcp", "legacy") as listing:
                assert names_in(await listing.list_tools()) == ["one", "two"]
                assert (await listing.call_tool("call_tool", {"name": "two"})).is_error


async def test_a_clients_own_limit_counts(lab: Lab, connect: Any) -> None:
    server = lab.script("many", "many", "90")
    async with (
        lab.serving(server, tool_search="auto", max_listed=500, pinned=("*",)) as address,
        connect(address + "/mcp/for/openai", "legacy") as client,
    ):
        assert len(names_in(await client.list_tools())) == 90
        async with connect(address + "/mcp/for/cursor", "legacy") as other:
            limited = names_in(await other.list_tools())
    assert limited[-3:] == OWN
    assert len(limited) <= 80


async def test_the_list_is_the_same_for_every_connection_and_what_a_client_has_done(
    lab: Lab, connect: Any, raw: Any
) -> None:
    servers = lab.normal("a", "one", "two"), lab.normal("b", "three")
    async with lab.serving(*servers, tool_search="on", pinned=("b/*",)) as address, raw(address) as http:
        lists = [(await http.result("tools/list", {}))["tools"]]
        async with connect(address + "/mcp", "legacy") as client:
            await client.call_tool("search_tools", {"query": "one"})
            await client.call_tool("a_one", {})
            lists.append((await http.result("tools/list", {}))["tools"])
    assert lists[0] == lists[1]
    assert [tool["name"] for tool in lists[0]] == ["b_three", *OWN]
    for tool in lists[0]:
        assert tool["_meta"][LOADED] is True
        assert tool["inputSchema"]["type"] == "object"
        assert {"openai_name", "canonical_name"} <= set(tool)


async def test_a_list_that_grows_becomes_searched_and_clients_are_told(lab: Lab, connect: Any) -> None:
    told = anyio.Event()

    async def on_message(message: Any) -> None:
        if type(message).__name__ == "ToolListChangedNotification":
            told.set()

    async with (
        lab.serving(lab.script("x", "changing"), tool_search="auto", max_listed=3) as address,
        connect(address + "/mcp", "legacy", message_handler=on_message) as client,
    ):
        assert names_in(await client.list_tools()) == ["grow", "shrink"]
        for name in ("third", "fourth"):
            await client.call_tool("grow", {"name": name})
            with anyio.fail_after(10):
                await told.wait()
            told = anyio.Event()
        assert names_in(await client.list_tools()) == OWN
        # What a client has seen goes on to work, whatever is listed now.
        assert not (await client.call_tool("fourth", {})).is_error
        await client.call_tool("shrink", {"name": "third"})
        with anyio.fail_after(10):
            await told.wait()
        assert names_in(await client.list_tools()) == ["grow", "shrink", "fourth"]
        assert found(await client.call_tool("search_tools", {"query": "fourth"})) == ["fourth"]


async def test_a_servers_own_search_goes_on_to_be_the_servers(lab: Lab, connect: Any, said: Any, era: str) -> None:
    server = lab.normal("mcp", "search_tools", "find_me")
    async with lab.serving(server, tool_search="on") as address, connect(address + "/mcp", era) as client:
        assert names_in(await client.list_tools()) == ["gateway_search_tools", "describe_tools", "call_tool"]
        assert said(await client.call_tool("search_tools", {})) == "mcp:search_tools"
        assert found(await client.call_tool("gateway_search_tools", {"query": "find"})) == ["find_me"]


# Searching and reading


async def test_tools_are_found_under_the_names_that_the_client_has(lab: Lab, connect: Any, era: str) -> None:
    servers = lab.normal("GitHub", "create_issue", "list"), lab.normal("Jira", "create_issue")
    async with lab.serving(*servers, tool_search="on") as address:
        for path, expected in [
            ("/mcp", ["github_create_issue", "jira_create_issue"]),
            ("/mcp/for/native", ["github@1/create_issue@1", "jira@1/create_issue@1"]),
            ("/mcp/only/Jira", ["create_issue"]),
        ]:
            async with connect(address + path, era) as client:
                result = await client.call_tool("search_tools", {"query": "create an issue"})
                assert (path, found(result)) == (path, expected)
                assert f"{expected[0]}: Does " in result.content[0].text
                assert len(found(await client.call_tool("search_tools", {"query": "create", "limit": 1}))) == 1
                assert found(await client.call_tool("search_tools", {"query": "create an issue", "limit": None}))


async def test_definitions_are_told_whole(lab: Lab, connect: Any, era: str) -> None:
    servers = lab.normal("a", "one"), lab.normal("b", "one", "two")
    async with lab.serving(*servers, tool_search="off") as address, connect(address + "/mcp", era) as client:
        tools = (await client.list_tools()).tools
        listed = {tool.name: tool.model_dump(by_alias=True, exclude_none=True) for tool in tools}
    async with lab.serving(*servers, tool_search="on") as address, connect(address + "/mcp", era) as client:
        result = await client.call_tool("describe_tools", {"names": ["b_one", "b/two", "b_one", "call_tool"]})
    told = [
        {key: value for key, value in tool.items() if key not in {"openai_name", "canonical_name"}}
        for tool in result.structured_content["tools"]
    ]
    assert [tool["name"] for tool in told] == ["b_one", "b_two", "call_tool"]
    assert [told[0], told[1]] == [listed["b_one"], listed["b_two"]]
    assert json.loads(result.content[0].text.split("\n\n")[0])["inputSchema"] == listed["b_one"]["inputSchema"]


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        ("search_tools", {}, "query must be a text"),
        ("search_tools", {"query": 7}, "query must be a text"),
        ("search_tools", {"query": "x", "limit": 0}, "limit must be a whole number from 1 to 50"),
        ("search_tools", {"query": "x", "limit": True}, "limit must be a whole number"),
        ("describe_tools", {"names": "one"}, "names must be a list of names"),
        ("describe_tools", {"names": []}, "names must be a list of names"),
        ("describe_tools", {"names": ["x"] * 21}, "names has more than 20 names"),
        ("describe_tools", {"names": ["twoo"]}, "Did you mean 'two'"),
        ("call_tool", {}, "name must be the name of a tool"),
        ("call_tool", {"name": ["one"]}, "name must be the name of a tool"),
        ("call_tool", {"name": "call_tool"}, "name cannot be call_tool itself"),
        ("call_tool", {"name": "one", "arguments": "{}"}, "arguments must be an object"),
    ],
)
async def test_wrong_arguments_are_answered_with_what_is_wrong(
    lab: Lab, connect: Any, said: Any, *, tool: str, arguments: dict[str, Any], expected: str
) -> None:
    async with (
        lab.gateway(lab.normal("a", "one", "two"), tool_search="on") as gateway,
        connect(in_memory(gateway.endpoint()), "legacy") as client,
    ):
        result = await client.call_tool(tool, arguments)
    assert result.is_error
    assert expected in said(result)


async def test_what_is_hidden_is_neither_found_nor_described_nor_suggested(lab: Lab, connect: Any, said: Any) -> None:
    server = lab.normal("files", "secret", "read")
    async with (
        lab.serving(server, tool_search="on", metadata=HIDDEN, pinned=("*",)) as address,
        connect(address + "/mcp", "legacy") as client,
    ):
        assert names_in(await client.list_tools()) == ["read", *OWN]
        assert found(await client.call_tool("search_tools", {"query": "secret files"})) == ["read"]
        result = await client.call_tool("describe_tools", {"names": ["secret", "secrt"]})
        assert result.is_error
        assert "inputSchema" not in said(result)
        assert "'secret'" not in said(await client.call_tool("describe_tools", {"names": ["secrt"]}))
        nothing = await client.call_tool("search_tools", {"query": "zzzz"})
        assert said(nothing).startswith("No tool has these words.")


async def test_a_search_follows_the_tools_that_come_and_go(lab: Lab, connect: Any) -> None:
    async with (
        lab.gateway(lab.normal("a", "one"), lab.normal("b", "zebra"), tool_search="on") as gateway,
        connect(in_memory(gateway.endpoint()), "legacy") as client,
    ):
        assert found(await client.call_tool("search_tools", {"query": "zebra"})) == ["b_zebra"]
        upstream = gateway.registry.pool["b"]
        upstream.tools, gateway.registry.stale = ({"name": "lion", "inputSchema": {"type": "object"}},), True
        assert found(await client.call_tool("search_tools", {"query": "zebra"})) == []
        assert found(await client.call_tool("search_tools", {"query": "lion"})) == ["b_lion"]


async def test_answers_are_bounded_and_short_names_come_with_their_own(lab: Lab, connect: Any, said: Any) -> None:
    async with (
        lab.gateway(lab.normal("a", "one"), tool_search="on", trust=Trust(rules={})) as gateway,
        connect(in_memory(gateway.endpoint("/mcp/for/cursor")), "legacy") as client,
    ):
        long = "an_endless_name_" * 6
        huge = [{"name": f"huge{n}", "description": "\U0001f600" + "x" * 300_000, "inputSchema": {}} for n in (1, 2)]
        gateway.registry.pool["a"].tools = (*huge, {"name": long, "description": "Long.", "inputSchema": {}})
        gateway.registry.stale = True
        result = await client.call_tool("describe_tools", {"names": ["huge1", "huge2", "search_tools"]})
        assert [tool["name"] for tool in result.structured_content["tools"]] == ["huge1", "search_tools"]
        assert result.structured_content["problems"] == [
            "'huge2' is omitted, because the result would be too long. Request it alone."
        ]
        searched = await client.call_tool("search_tools", {"query": "endless"})
        assert ": ('an_endless_name_" in said(searched)
        assert " of 'a') Long." in said(searched)
        assert len(said(await client.call_tool("search_tools", {"query": "huge"}))) < 1_000


async def test_however_many_views_there_are_each_is_decided_alike(lab: Lab) -> None:
    async with lab.gateway(lab.normal("a", "one", "two"), tool_search="on") as gateway:
        view = gateway.registry.view(ViewSpec("universal"))
        lists = [gateway.registry.tool_search.listed(view.without(frozenset())).tools for _ in range(300)]
        assert all(tools == lists[0] for tools in lists)
        assert gateway.registry.tool_search.listed(view) is gateway.registry.tool_search.listed(view)


async def test_a_list_that_changes_leaves_nothing_of_the_old_one_behind(lab: Lab) -> None:
    async with lab.gateway(lab.normal("files", "one"), tool_search="on") as gateway:
        await gateway.settle()
        view = gateway.registry.view(ViewSpec("universal"))
        assert gateway.registry.tool_search.listed(view) is not view
        old = weakref.ref(view)
        del view
        gateway.registry.rebuild()
        gc.collect()
        assert old() is None


async def test_without_it_there_are_no_such_tools(lab: Lab, connect: Any, said: Any) -> None:
    async with (
        lab.gateway(lab.normal("a", "one"), tool_search="off") as gateway,
        connect(in_memory(gateway.endpoint()), "legacy") as client,
    ):
        for name in OWN:
            assert "does not exist" in said(await client.call_tool(name, {}))


# The settings


@pytest.mark.parametrize(
    ("setting", "value", "expected"),
    [
        ("tool_search", "maybe", "is not one of: auto, on, off"),
        ("max_listed", 0, "a whole number above 0"),
        ("list_budget", "much", "a whole number above 0"),
        ("pinned", "github/*", "a list of texts"),
        ("pinned", ["create_*"], "'create_*' is not a glob on tool ids: it has no '/'"),
    ],
)
def test_a_setting_that_can_not_be_is_told(tmp_path: Path, setting: str, value: Any, expected: str) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {}, "truename": {setting: value}}))
    with pytest.raises((ConfigError, ExceptionGroup)) as caught:
        load(path)
    told = caught.value.exceptions if isinstance(caught.value, ExceptionGroup) else [caught.value]
    assert any(expected in str(error) for error in told)


def test_settings_are_read(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    settings = {"tool_search": "on", "max_listed": 40, "list_budget": 5_000, "pinned": ["github/create_*", "*"]}
    path.write_text(json.dumps({"mcpServers": {}, "truename": settings}))
    read = load(path).settings
    assert (read.tool_search, read.max_listed, read.list_budget) == ("on", 40, 5_000)
    assert read.pinned == ("github/create_*", "*")
    assert Settings().tool_search == "off"
    assert Config().settings.pinned == ()


def test_the_page_has_the_defaults_and_the_limits() -> None:
    page = (ROOT / "docs" / "gateway" / "large-catalogues.md").read_text("utf-8")
    said = dict(re.findall(r"^\| `(\w+)` \| `?([\w]+)`? \|", page, re.MULTILINE))
    default = Settings()
    for name in ("tool_search", "max_listed", "list_budget"):
        assert said[name] == str(getattr(default, name))
    assert said["pinned"] == "none"
    assert f"at most {MOST_FOUND})" in page
    assert f"`names`, at most {MOST_DESCRIBED}" in page
    assert f"Cursor {dialects.get('cursor').max_tools})" in page


# What cannot be written down


async def test_a_ledger_that_can_not_keep_our_names_costs_the_search_and_no_call(
    lab: Lab, connect: Any, said: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    remember = Ledger.remember

    def full(self: Ledger, settings: Any, claims: Any, origins: Any, *, since: int | None = None) -> bool:
        listed = list(claims)
        if any(claim.server.startswith("\0") for claim in listed):
            raise LedgerError(code="busy", path=lab.folder / "names")
        return remember(self, settings, listed, origins, since=since)

    monkeypatch.setattr(Ledger, "remember", full)
    server = lab.normal("files", "one", "two")
    async with (
        lab.gateway(server, tool_search="on") as gateway,
        listening(gateway) as address,
        connect(address + "/mcp", "2026-07-28") as client,
    ):
        assert said(await client.call_tool("one", {})) == "files:one"
        assert names_in(await client.list_tools()) == ["one", "two"]
        assert "tool search has no names" in caplog.text
        monkeypatch.undo()
        gateway.registry.rebuild()
        assert names_in(await client.list_tools()) == OWN
        assert said(await client.call_tool("two", {})) == "files:two"

"""Apps behind the gateway: each page calls its own server's tools, by the names that it was written with."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.gateway.app_pages import asked, needs_node, pages_of, run_page
from tests.gateway.app_server import PAGE, URI, app_server
from truename.gateway.views.app_bridge import bridged
from truename.policy import read_policy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.gateway.conftest import Lab, Upstreams

pytestmark = [pytest.mark.slow, pytest.mark.anyio]

ENDPOINTS = ("/mcp", "/mcp/for/cursor", "/mcp/for/claude-code", "/mcp/servers/a,b", "/mcp/only/a", "/mcp/only/b")


def page_of(names: Mapping[str, str], page: str = PAGE) -> str:
    return str(bridged({"text": page}, names, None)["text"])


@needs_node
@pytest.mark.parametrize("path", ENDPOINTS)
async def test_the_app_of_each_of_two_servers_reaches_its_own(
    lab: Lab, era: str, connect: Callable[..., Any], upstreams: Upstreams, path: str
) -> None:
    async with (
        upstreams.serve(app_server("a")) as first,
        lab.serving(lab.at("a", first), lab.script("b", "app", "b")) as address,
        connect(address + path, era) as client,
    ):
        pages = await pages_of(client)
        assert sorted(pages) == ([path[-1]] if "only" in path else ["a", "b"])
        for label, page in pages.items():
            (call,) = run_page(page, asked("tools/call", name="refresh", arguments={}))["sent"]
            answer = await client.call_tool(call["params"]["name"], call["params"]["arguments"])
            assert answer.content[0].text == f"{label}:refresh"

            (read,) = run_page(page, asked("resources/read", uri="data://x"))["sent"]
            (content,) = (await client.read_resource(read["params"]["uri"])).contents
            assert content.text.removesuffix("data://x").endswith(f"{label}:")


async def test_the_bare_name_alone_is_ambiguous(
    lab: Lab, era: str, connect: Callable[..., Any], upstreams: Upstreams
) -> None:
    async with (
        upstreams.serve(app_server("a")) as first,
        upstreams.serve(app_server("b")) as second,
        lab.serving(lab.at("a", first), lab.at("b", second), style="prefixed") as address,
        connect(address + "/mcp", era) as client,
    ):
        answer = await client.call_tool("refresh", {})

        assert answer.is_error
        assert "not unique" in answer.content[0].text


@needs_node
async def test_an_app_does_not_reach_another_servers_tool_by_a_name_that_its_own_lacks(
    lab: Lab, era: str, connect: Callable[..., Any], upstreams: Upstreams
) -> None:
    async with (
        upstreams.serve(app_server("a")) as first,
        upstreams.serve(app_server("b", more=("erase",))) as second,
        lab.serving(lab.at("a", first), lab.at("b", second)) as address,
        connect(address + "/mcp", era) as client,
    ):
        pages = await pages_of(client)
        refused = run_page(pages["a"], asked("tools/call", name="erase"))
        ran = run_page(pages["b"], asked("tools/call", name="erase"))

    assert refused["sent"] == []
    assert 'no tool \\"erase\\"' in json.dumps(refused["got"])
    assert all(is_host for _, is_host in refused["got"])
    assert len(ran["sent"]) == 1


@pytest.mark.parametrize("kind", ["text/html", "text/plain"])
async def test_what_is_no_app_is_read_as_it_is(
    lab: Lab, era: str, connect: Callable[..., Any], upstreams: Upstreams, kind: str
) -> None:
    async with (
        upstreams.serve(app_server("a", kind=kind)) as first,
        upstreams.serve(app_server("b")) as second,
        lab.serving(lab.at("a", first), lab.at("b", second)) as address,
        connect(address + "/mcp", era) as client,
    ):
        assert (await pages_of(client))["a"] == PAGE


async def test_a_server_alone_has_its_page_unchanged(
    lab: Lab, era: str, connect: Callable[..., Any], upstreams: Upstreams
) -> None:
    async with (
        upstreams.serve(app_server("a")) as first,
        upstreams.serve(app_server("b")) as second,
        lab.serving(lab.at("a", first), lab.at("b", second)) as address,
        connect(address + "/mcp/only/a", era) as client,
    ):
        assert (await pages_of(client)) == {"a": PAGE}
        assert (await client.read_resource(URI)).contents[0].text == PAGE


@pytest.mark.parametrize(
    ("page", "at"),
    [
        ("", 0),
        ("<p>a", 0),
        ("<!doctype html><p>", 15),
        ("\ufeff<!DOCTYPE html ><p>", 17),
        (" \n<!-- a --><!doctype html><p>", 27),
        ("<!--><!doctype html>", 20),
        ("<!---><!doctype html>", 21),
        ("<!-- a --!><!doctype html>", 26),
        ("<!-- <!doctype html> -->", 0),
        ("<?xml version='1.0'?><!doctype html>", 36),
        ("</ a><!doctype html>", 20),
        ("<!x><!doctype html>", 19),
        ("<html><!doctype html>", 0),
        ("<!doctype html PUBLIC 'a>b'>", 25),
        ("<!doctype", 0),
        ("<!-- a", 0),
    ],
)
def test_the_script_stands_after_the_document_type_as_a_browser_finds_it(page: str, at: int) -> None:
    found = page_of({}, page)

    assert found[:at] == page[:at]
    assert found[at:].startswith("<script>")
    assert found.endswith(page[at:])


async def test_a_tool_for_apps_alone_is_neither_listed_nor_run_for_a_client_that_shows_no_apps(
    lab: Lab, era: str, connect: Callable[..., Any], upstreams: Upstreams
) -> None:
    async with (
        upstreams.serve(app_server("a", only_for_apps=("erase",))) as first,
        lab.serving(lab.at("a", first)) as address,
        connect(address + "/mcp", era) as client,
    ):
        assert [tool.name for tool in (await client.list_tools()).tools] == ["refresh", "show"]
        answer = await client.call_tool("erase", {})

        assert answer.is_error
        assert "for apps" in answer.content[0].text
        assert (await client.call_tool("show", {})).content[0].text == "a:show"


async def test_a_client_that_shows_apps_gets_their_tools(lab: Lab, upstreams: Upstreams) -> None:
    said = {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}}
    async with (
        upstreams.serve(app_server("a", only_for_apps=("erase",))) as first,
        lab.serving(lab.at("a", first)) as address,
        httpx2.AsyncClient(base_url=address) as http,
    ):
        head = {"accept": "application/json, text/event-stream"}
        client = {"name": "host", "version": "1"}
        params = {"protocolVersion": "2025-11-25", "capabilities": said, "clientInfo": client}
        begun = await http.post("/mcp", json=asked("initialize", **params), headers=head)
        head |= {"mcp-session-id": begun.headers["mcp-session-id"], "mcp-protocol-version": "2025-11-25"}
        listed = await http.post("/mcp", json=asked("tools/list"), headers=head)
        called = await http.post("/mcp", json=asked("tools/call", name="erase", arguments={}), headers=head)

    assert '"name":"erase"' in listed.text
    assert "a:erase" in called.text


HOSTILE = ["</script><script>alert(1)//", "<!--<script>", "__proto__", "constructor", "\u2028", '"', "\\", "a\nb", "%s"]


@needs_node
def test_no_name_leaves_the_table() -> None:
    names = {name: f"wire_{number}" for number, name in enumerate(HOSTILE)}
    found = run_page(page_of(names), *(asked("tools/call", name=name) for name in (*HOSTILE, "toString")))

    assert [one["params"]["name"] for one in found["sent"]] == list(names.values())


@needs_node
def test_an_own_name_goes_before_the_shown_name_of_another_tool() -> None:
    names = {"get": "a_get", "a_get": "a_get_2"}
    found = run_page(page_of(names), *(asked("tools/call", name=name) for name in ("get", "a_get", "a_get_2")))

    assert [one["params"]["name"] for one in found["sent"]] == ["a_get", "a_get_2", "a_get_2"]


@needs_node
def test_everything_else_that_a_page_says_passes() -> None:
    said = [asked("ui/initialize", name="refresh"), {"jsonrpc": "2.0", "id": 1, "result": {"name": "x"}}, "text", 0]

    assert run_page(page_of({}), *said)["sent"] == said


def test_a_page_in_base64_is_bridged_unless_it_is_no_text() -> None:
    page = b64encode(PAGE.encode()).decode()
    found = bridged({"blob": page}, {"a": "b"}, None)

    assert "<script>" in b64decode(found["blob"]).decode()
    for blob in ("!", b64encode(b"\xff\xfe").decode()):
        assert bridged({"blob": blob}, {}, None) == {"blob": blob}
    assert bridged({"uri": "x"}, {}, None) == {"uri": "x"}


@given(st.text(alphabet="<!->doctype ? /\nx", max_size=40))
def test_a_page_loses_nothing(page: str) -> None:
    found = page_of({}, page)
    script = page_of({}, "")

    assert found.replace(script, "", 1) == page


@needs_node
async def test_a_page_does_not_know_what_its_reader_may_not_call(
    lab: Lab, era: str, connect: Callable[..., Any], upstreams: Upstreams
) -> None:
    rules = [{"name": "no erasing", "outcome": "deny", "tools": ["a/erase"]}]
    policy = read_policy({"default": "allow", "rules": rules})
    async with (
        upstreams.serve(app_server("a", more=("erase",))) as first,
        upstreams.serve(app_server("b", more=("erase",))) as second,
        lab.serving(lab.at("a", first), lab.at("b", second), policy=policy) as address,
        connect(address + "/mcp", era) as client,
    ):
        page = (await pages_of(client))["a"]
        assert "erase" not in page
        for name in ("erase", "a_erase", "b_erase"):
            assert run_page(page, asked("tools/call", name=name))["sent"] == []
        # A page is code of its server: what goes around the bridge is decided like any other call.
        assert (await client.call_tool("a_erase", {})).is_error


CROSSING = {
    "ui://truename/b/board/index.html": "ui://truename/a/truename/b/board/index.html",
    "truename://b/ui://board/index.html": "truename://a/truename://b/ui://board/index.html",
}


@pytest.mark.parametrize("link", CROSSING)
async def test_a_link_to_another_servers_page_leads_to_who_wrote_it(
    lab: Lab, era: str, connect: Callable[..., Any], upstreams: Upstreams, link: str
) -> None:
    async with (
        upstreams.serve(app_server("a", link=link)) as first,
        upstreams.serve(app_server("b")) as second,
        lab.serving(lab.at("a", first), lab.at("b", second)) as address,
        connect(address + "/mcp", era) as client,
    ):
        tools = {tool.name: tool.meta["ui"]["resourceUri"] for tool in (await client.list_tools()).tools}
        (content,) = (await client.read_resource(tools["a_show"])).contents

        assert tools["a_show"] == CROSSING[link]
        assert content.text.endswith(f"a:{link}")


def test_a_page_of_two_bytes_a_letter_stays_as_it_is() -> None:
    for encoding in ("utf-16", "utf-16-le", "utf-16-be", "utf-32"):
        blob = b64encode(PAGE.encode(encoding)).decode()
        assert bridged({"blob": blob}, {"a": "b"}, None) == {"blob": blob}

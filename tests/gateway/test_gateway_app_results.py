"""Links to apps in results lead to the server that gave them; pages in results have its bridge."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import mcp_types as types
import msgspec
import pytest

from tests.gateway.app_pages import asked, needs_node, run_page
from tests.gateway.app_server import PAGE, URI, app_server
from truename.gateway.views.app_links import AppLinks
from truename.gateway.views.view import ViewSpec

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.gateway.conftest import Lab, Upstreams

pytestmark = pytest.mark.anyio

APP = "text/html;profile=mcp-app"
LINK = types.ResourceLink(name="board", uri=URI)
EMBEDDED = types.EmbeddedResource(resource=types.TextResourceContents(uri=URI, mime_type=APP, text=PAGE))
OTHER = types.EmbeddedResource(resource=types.TextResourceContents(uri=URI, mime_type="text/plain", text=PAGE))
META = {"ui": {"resourceUri": URI, "x": 1}, "ui/resourceUri": URI, "openai/outputTemplate": URI}
RESULT = types.CallToolResult(
    content=[LINK, EMBEDDED, OTHER, types.TextContent(text=URI), types.ResourceLink(name="file", uri="file:///x")],
    structured_content={"uri": URI},
    _meta=META,
)


def board(label: str) -> Any:
    return app_server(label, results={"refresh": RESULT})


@needs_node
@pytest.mark.parametrize("path", ["/mcp", "/mcp/for/cursor", "/mcp/search"])
async def test_links_in_a_result_lead_to_the_server_that_gave_it(
    lab: Lab, era: str, connect: Callable[..., Any], upstreams: Upstreams, path: str
) -> None:
    async with (
        upstreams.serve(board("a")) as first,
        upstreams.serve(board("b")) as second,
        lab.serving(lab.at("a", first), lab.at("b", second), style="prefixed") as address,
        connect(address + path, era) as client,
    ):
        for label in ("a", "b"):
            result = await client.call_tool(f"{label}_refresh", {})
            link, page, other, text, file = result.content
            uri = f"ui://truename/{label}/board/index.html"

            assert result.meta["ui"] == {"resourceUri": uri, "x": 1}
            assert {result.meta[key] for key in ("ui/resourceUri", "openai/outputTemplate")} == {uri}
            assert (link.uri, page.resource.uri, other.resource.uri) == (uri, uri, uri)
            (call,) = run_page(page.resource.text, asked("tools/call", name="show"))["sent"]
            shown = await client.call_tool(call["params"]["name"], {"name": f"{label}_show"})
            assert shown.content[0].text == f"{label}:show"
            # What is no link is data.
            assert (other.resource.text, text.text, file.uri) == (PAGE, URI, "file:///x")
            assert result.structured_content == {"uri": URI}
            read = run_page((await client.read_resource(link.uri)).contents[0].text, asked("tools/call", name="show"))
            assert read["sent"] == [call]


async def test_a_server_alone_has_its_results_unchanged(
    lab: Lab, era: str, connect: Callable[..., Any], upstreams: Upstreams
) -> None:
    async with (
        upstreams.serve(board("a")) as first,
        upstreams.serve(board("b")) as second,
        lab.serving(lab.at("a", first), lab.at("b", second)) as address,
        connect(address + "/mcp/only/a", era) as client,
    ):
        result = await client.call_tool("refresh", {})

        assert result.content == RESULT.content
        assert result.meta["ui"] == META["ui"]


async def test_links_in_prompts_lead_to_the_server_that_gave_them(
    lab: Lab, era: str, connect: Callable[..., Any], upstreams: Upstreams
) -> None:
    server = app_server("a", prompt=types.PromptMessage(role="user", content=LINK))
    async with (
        upstreams.serve(server) as first,
        lab.serving(lab.at("a", first)) as address,
        connect(address + "/mcp", era) as client,
    ):
        (message,) = (await client.get_prompt("ask")).messages

        assert message.content.uri == "ui://truename/a/board/index.html"


class Nothing:
    """A search where nothing is searched."""

    def for_pages(self, _: object) -> None:
        return None


def links() -> AppLinks:
    def no_view() -> Any:
        raise AssertionError

    return AppLinks(ViewSpec("openai"), "a", no_view, Nothing())  # type: ignore[arg-type] # it searches nothing


@pytest.mark.parametrize("written", ["ui://x", r"ui:\/\/x", r"\u0075i://x", r"u\u0069\u003a\u002f\u002fx"])
def test_a_link_is_one_however_it_is_written(written: str) -> None:
    content = msgspec.Raw(f'[{{"type": "resource_link", "name": "n", "uri": "{written}"}}]'.encode())

    (found,) = links().result({"content": content})["content"]

    assert found["uri"] == "ui://truename/a/x"


@pytest.mark.parametrize(
    "content",
    [
        "5",
        "null",
        '"ui://x"',
        '{"uri": "ui://x"}',
        '[5, null, "ui://x", [], {}]',
        '[{"type": "resource_link", "uri": 5, "a": "ui://"}]',
        '[{"type": "resource", "resource": ["ui://x"]}]',
        '[{"type": "text", "text": "ui://x", "uri": "ui://x"}]',
        '[{"role": "user", "content": 5, "a": "ui://"}]',
    ],
)
def test_what_has_another_form_stays_as_it_is(content: str) -> None:
    for field in ("content", "messages"):
        found = links().result({field: msgspec.Raw(content.encode())})
        assert json.loads(msgspec.json.encode(found[field])) == json.loads(content)


def test_a_result_without_links_stays_the_bytes_that_came() -> None:
    result = {"content": msgspec.Raw(b'[{"type":"text","text":"1.0"}]'), "isError": False}

    assert links().result(result) is result


def test_the_result_of_a_task_that_is_over_is_a_result() -> None:
    found = links().result({"result": {"content": [{"type": "resource_link", "uri": "ui://x"}], "_meta": META}})

    assert found["result"]["content"][0]["uri"] == "ui://truename/a/x"
    assert found["result"]["_meta"]["ui"]["resourceUri"] == "ui://truename/a/board/index.html"


def test_a_block_says_what_it_links_to_in_its_own_meta_too() -> None:
    (found,) = links().result({"content": [{"type": "text", "text": "", "_meta": META}]})["content"]

    assert found["_meta"]["ui/resourceUri"] == "ui://truename/a/board/index.html"

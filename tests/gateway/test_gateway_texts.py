"""Names in texts: what a client reads of a server's tools are the names that it can call, and nothing else changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from truename import Catalog, project
from truename.gateway.views.texts import AS_THEY_ARE, ServerTexts
from truename.naming.mentions import MOST_READ

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.gateway.conftest import Lab

pytestmark = pytest.mark.anyio
SHORT = "See do_b."
SAID = "Call get_data before set_data."
READ = "Call w_get_data before w_set_data."
SCHEMA = {
    "type": "object",
    "properties": {"mode": {"type": "string", "description": "As get_data has it.", "enum": ["get_data"]}},
}


async def _tools(http: Any, path: str = "/mcp") -> dict[str, dict[str, Any]]:
    return {tool["name"]: tool for tool in (await http.result("tools/list", {}, path=path))["tools"]}


def _call(**arguments: str) -> dict[str, Any]:
    return {"name": "w_set_data", "arguments": arguments}


async def _message(http: Any, method: str, params: dict[str, Any]) -> tuple[str, Any]:
    error = (await http.post(method, params)).json()["error"]
    return error["message"], error.get("data")


async def test_titles_and_descriptions_are_read_under_the_shown_names_and_schemas_are_not(
    lab: Lab, raw: Callable[[str], Any]
) -> None:
    async with (
        lab.serving(lab.script("w", "talking", "w"), lab.normal("v", "get_data")) as address,
        raw(address) as http,
    ):
        tools = await _tools(http)
        native = await _tools(http, "/mcp/for/native")
        alone = await _tools(http, "/mcp/only/w")

    get = tools["w_get_data"]
    assert get["title"] == "w_get_data, or w_set_data"
    assert get["description"] == "Reads. Write with w_set_data; see https://example.com/set_data."
    assert get["annotations"] == {"title": "w_set_data's other half", "readOnlyHint": True}
    assert get["inputSchema"] == SCHEMA
    assert tools["w_set_data"]["description"] == 'Writes. {"tool": "get_data"}'
    # What is a parameter too is a tool where the text says so.
    assert tools["w_mode"]["description"] == "The mode of w_get_data. mode: the `w_mode` tool has it."
    assert tools["v_get_data"]["description"] == "Does v_get_data."
    assert native["w@1/get_data@1"]["title"] == "w@1/get_data@1, or w@1/set_data@1"
    # The server alone has its own names.
    assert alone["get_data"]["title"] == "get_data, or set_data"


async def test_the_text_of_an_error_is_read_so_and_nothing_else_of_it_changes(
    lab: Lab, raw: Callable[[str], Any]
) -> None:
    async with (
        lab.serving(lab.script("w", "talking", "w"), lab.normal("v", "x")) as address,
        raw(address) as http,
    ):
        failed = await http.result("tools/call", _call(mode="fail"))
        answered = await http.result("tools/call", _call(mode="answer"))
        refused = await _message(http, "tools/call", _call(mode="refuse"))

    assert failed["content"][:2] == [
        {"type": "text", "text": READ, "annotations": {"priority": 1}},
        {"type": "resource", "resource": {"uri": "x://get_data", "text": SAID}},
    ]
    # Of long errors the beginning is looked through.
    assert failed["content"][2]["text"].startswith("w_get_data w_get_data ")
    assert failed["content"][2]["text"].endswith(" get_data get_data ")
    assert failed["content"][3]["text"] == SAID
    assert failed["structuredContent"] == {"call": SAID}
    assert answered["content"] == [{"type": "text", "text": SAID}]
    assert refused == ("w_get_data has to be called first", {"why": "get_data"})


async def test_names_that_a_user_wrote_are_left_alone(lab: Lab, raw: Callable[[str], Any]) -> None:
    async with (
        lab.serving(lab.script("w", "talking", "w"), lab.normal("v", "x")) as address,
        raw(address) as http,
    ):
        failed = await http.result("tools/call", _call(mode="fail", file="./get_data"))
        long = await http.result("tools/call", _call(mode="fail", file="x" * MOST_READ))
        planned = await http.result("prompts/get", {"name": "w_plan", "arguments": {"about": "get_data"}})
        refused = await _message(http, "tools/call", _call(mode="refuse", file="get_data"))

    assert failed["content"][0]["text"] == "Call get_data before w_set_data."
    assert long["content"][0]["text"] == SAID
    assert planned["messages"][0]["content"]["text"] == "Call get_data before w_set_data. It is about get_data."
    assert refused[0] == "get_data has to be called first"


async def test_prompts_speak_of_tools_under_the_shown_names(lab: Lab, raw: Callable[[str], Any]) -> None:
    async with (
        lab.serving(lab.script("w", "talking", "w"), lab.normal("v", "x")) as address,
        raw(address) as http,
    ):
        (listed,) = (await http.result("prompts/list", {}))["prompts"]
        planned = await http.result("prompts/get", {"name": listed["name"], "arguments": {"about": "all"}})
        refused = await _message(http, "prompts/get", {"name": listed["name"], "arguments": {"about": "nothing"}})

    assert (listed["title"], listed["description"]) == ("Plan w_get_data", READ)
    assert listed["arguments"] == [{"name": "about"}]
    assert planned["description"] == READ
    assert [message["content"] for message in planned["messages"]] == [
        {"type": "text", "text": f"{READ} It is about all."},
        {"type": "resource", "resource": {"uri": "x://y", "text": SAID}},
    ]
    assert refused[0] == "Nothing for w_get_data"


async def test_texts_stay_as_they_are_by_setting(lab: Lab, raw: Callable[[str], Any]) -> None:
    servers = lab.script("w", "talking", "w"), lab.normal("v", "x")
    async with lab.serving(*servers, names_in_texts=False) as address, raw(address) as http:
        tools = await _tools(http)
        failed = await http.result("tools/call", _call(mode="fail"))
        refused = await _message(http, "tools/call", _call(mode="refuse"))
        (listed,) = (await http.result("prompts/list", {}))["prompts"]
        planned = await http.result("prompts/get", {"name": listed["name"], "arguments": {}})

    assert tools["w_get_data"]["title"] == "get_data, or set_data"
    assert failed["content"][0]["text"] == SAID
    assert refused[0] == "get_data has to be called first"
    assert (listed["description"], planned["description"]) == (SAID, SAID)


ODD: list[dict[str, Any]] = [
    {},
    {"isError": True},
    {"isError": True, "content": None, "messages": 1},
    {
        "isError": True,
        "content": ["get_data", {"type": "text"}, {"type": "text", "text": 3}, {"type": "image", "text": SAID}],
    },
    {"isError": "yes", "content": [{"type": "text", "text": SAID}]},
    {"messages": ["get_data", {"role": "user"}, {"content": None}, {"content": [1, {"type": "text", "text": 1}]}]},
]


@pytest.mark.parametrize("answer", ODD, ids=str)
async def test_answers_of_no_shape_pass_as_they_are(answer: dict[str, Any]) -> None:
    async def answering() -> dict[str, Any]:
        return answer

    catalog = Catalog.from_mcp({"w": ["get_data"], "v": ["x"]})
    texts = ServerTexts.under(project(catalog, "universal"))
    for params in ({}, {"arguments": None}, {"arguments": [1]}):
        assert texts.outcome("w", params, answer) == answer
        assert await texts.prompt("w", params, answering()) == answer
        assert texts.outcome("unknown", params, answer) == answer


async def test_a_definition_is_read_anew_and_the_servers_own_stays_as_it_is() -> None:
    odd = {"name": "odd", "title": 3, "description": None, "annotations": [], "inputSchema": [], "outputSchema": {}}
    one = {
        "name": "get_data",
        "description": "With get_data and odd_one.",
        "inputSchema": {"properties": {"odd_one": {}}},
    }
    catalog = Catalog.from_mcp({"w": [one, {"name": "odd_one"}, odd], "v": ["x"]})
    texts = ServerTexts.under(project(catalog, "universal"))
    tools = {tool.origin.name: tool for tool in catalog.values()}
    digests = {name: tool.digest for name, tool in tools.items()}

    assert texts.definition(tools["get_data"]) == {**one, "description": "With w_get_data and odd_one."}
    assert texts.definition(tools["odd"]) is tools["odd"].definition
    assert {name: tool.digest for name, tool in tools.items()} == digests
    assert AS_THEY_ARE.definition(tools["get_data"]) is tools["get_data"].definition


async def test_no_text_names_a_tool_that_the_reader_must_not_see(
    lab: Lab, raw: Callable[[str], Any], connect: Callable[..., Any], said: Callable[[Any], str]
) -> None:
    hidden = {"w/get_data": {"is_for_llm": False}}
    async with (
        lab.serving(lab.script("w", "talking", "w"), lab.normal("v", "get_data"), metadata=hidden) as address,
        raw(address) as http,
    ):
        tools = await _tools(http)
        failed = await http.result("tools/call", _call(mode="fail"))
        (listed,) = (await http.result("prompts/list", {}))["prompts"]
        planned = await http.result("prompts/get", {"name": "w_plan", "arguments": {"about": "x"}})

    assert "w_get_data" not in tools
    # A server's own word stays; other tools are called as ever.
    assert tools["w_mode"]["description"] == "The mode of get_data. mode: the `w_mode` tool has it."
    assert failed["content"][0]["text"] == "Call get_data before w_set_data."
    assert planned["messages"][0]["content"]["text"].startswith("Call get_data before w_set_data.")
    assert "w_get_data" not in str((tools, listed, failed["content"][0], planned))


def test_a_server_has_so_much_text_looked_through_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("truename.gateway.views.texts.MAX_OF_SERVER", 100)
    long = f"Call do_b. {'x' * 60}"
    listed = {
        "evil": [
            {"name": name, "description": text} for name, text in (("do_a", long), ("do_b", long), ("do_c", SHORT))
        ],
        "good": [{"name": "do_b", "description": SHORT}],
    }
    catalog = Catalog.from_mcp(listed)
    texts = ServerTexts.under(project(catalog, "universal", style="prefixed"))
    read = {str(id): texts.definition(tool)["description"] for id, tool in catalog.items()}
    assert read["evil@1/do_a@1"].startswith("Call evil_do_b.")
    assert read["evil@1/do_b@1"] == long
    assert read["evil@1/do_c@1"] == "See evil_do_b."
    assert read["good@1/do_b@1"] == "See good_do_b."

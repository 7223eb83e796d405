"""The scripted model: four APIs say the same, and a script's place is the number of results."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.request import Request, urlopen

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.model import ModelServer, Offered, Script, Step, Turn, anthropic, chat, gemini, responses
from lab.model.approaches import APPROACHES, approach

if TYPE_CHECKING:
    from types import ModuleType

_DESCRIPTION = "[lab:7] awkward tool"
_REQUESTS: dict[str, tuple[ModuleType, str, dict[str, Any]]] = {
    "chat": (
        chat,
        "/v1/chat/completions",
        {
            "tools": [{"type": "function", "function": {"name": "t", "description": _DESCRIPTION}}],
            "messages": [
                {"role": "user", "content": "go"},
                {"role": "assistant", "tool_calls": [{"function": {"name": "t"}}]},
                {"role": "tool", "content": "came"},
            ],
        },
    ),
    "responses": (
        responses,
        "/v1/responses",
        {
            "tools": [{"type": "function", "name": "t", "description": _DESCRIPTION}],
            "input": [
                {"role": "user", "content": [{"type": "input_text", "text": "go"}]},
                {"type": "function_call", "name": "t", "call_id": "1"},
                {"type": "function_call_output", "call_id": "1", "output": "came"},
            ],
        },
    ),
    "anthropic": (
        anthropic,
        "/v1/messages",
        {
            "tools": [{"name": "t", "description": _DESCRIPTION}],
            "messages": [
                {"role": "user", "content": "go"},
                {"role": "assistant", "content": [{"type": "tool_use", "name": "t"}]},
                {"role": "user", "content": [{"type": "tool_result", "content": "came"}]},
            ],
        },
    ),
    "gemini": (
        gemini,
        "/v1beta/models/m:generateContent",
        {
            "tools": [{"functionDeclarations": [{"name": "t", "description": _DESCRIPTION}]}],
            "contents": [
                {"parts": [{"text": "go"}]},
                {"parts": [{"functionCall": {"name": "t"}}]},
                {"parts": [{"functionResponse": {"name": "t", "response": "came"}}]},
            ],
        },
    ),
}
APIS = pytest.mark.parametrize("api", _REQUESTS)


@APIS
def test_every_api_is_read_into_the_same_turn(api: str) -> None:
    module, path, body = _REQUESTS[api]
    turn = module.read(body, path)
    assert [(tool.shown, tool.mark) for tool in turn.tools] == [("t", 7)]
    assert (turn.results, turn.history) == (("came",), ("t",))
    assert "go" in turn.text


@APIS
@pytest.mark.parametrize("streaming", [False, True])
def test_every_api_says_each_call_that_is_planned(api: str, streaming: bool) -> None:
    steps = [Step(name="a/b", number=3), Step(name="天気", number=4)]
    reply = _REQUESTS[api][0].reply(steps, Turn(streaming=streaming), 1)
    text = json.dumps([reply.document, reply.events])
    for step in steps:
        assert json.dumps(step.name)[1:-1] in text.replace("\\\\", "\\")
        assert f"k{step.number}" in text
    assert (reply.document is None) == streaming


@APIS
def test_without_a_step_the_model_says_that_all_is_done(api: str) -> None:
    assert "all done" in json.dumps(_REQUESTS[api][0].reply((), Turn(), 1).document)


@APIS
def test_a_request_over_http_is_answered_by_the_api_of_its_path(api: str) -> None:
    _, path, body = _REQUESTS[api]
    script = Script(approach("direct"), lambda offered: [Step(name=tool.name, mark=tool.mark) for tool in offered])
    with ModelServer(script) as model, urlopen(Request(model.url + path, json.dumps(body).encode())) as answer:
        assert "k0" in json.dumps(json.load(answer))
    assert [request.api for request in model.requests] == [api]


def test_namespaces_and_tools_that_a_search_brought_are_tools_like_the_others() -> None:
    member = {"type": "function", "name": "T", "description": _DESCRIPTION, "defer_loading": True}
    space = {"type": "namespace", "name": "mcp__lab", "tools": [member]}
    body = {"tools": [{"type": "tool_search"}], "input": [{"type": "tool_search_output", "tools": [space]}]}
    turn = responses.read(body, "/v1/responses")
    assert [tool.shown for tool in turn.tools] == ["tool_search", "mcp__lab.T"]
    assert turn.tools[1].deferred


def _turn(marks: int, results: int) -> Turn:
    tools = tuple(Offered(name=f"t{mark}", description=f"[lab:{mark}]") for mark in range(1, marks + 1))
    return Turn(tools=tools, results=("told",) * results)


def _sweep(batch: int = 1) -> Script:
    return Script(approach("direct"), lambda offered: [Step(name=tool.name, mark=tool.mark) for tool in offered], batch)


@given(count=st.integers(1, 30), batch=st.integers(1, 8), repeats=st.integers(1, 3))
def test_each_tool_is_called_once_however_often_a_request_is_repeated(count: int, batch: int, repeats: int) -> None:
    script = _sweep(batch)
    called: list[str] = []
    while True:
        turn = _turn(count, len(called))
        steps = [script.next(turn) for _ in range(repeats)][-1]
        if not steps:
            break
        called += [step.name for step in steps]
    assert called == [f"t{mark}" for mark in range(1, count + 1)]
    assert script.finished


def test_a_request_without_tools_of_a_server_does_not_begin_the_plan() -> None:
    script = _sweep()
    assert script.next(Turn(tools=(Offered(name="own"),))) == ()
    assert script.next(_turn(1, 0)) != ()


@pytest.mark.parametrize("name", APPROACHES)
def test_every_approach_leaves_side_requests_alone(name: str) -> None:
    assert not approach(name).concerns(Turn(text="Write a title"))


def test_a_program_and_a_bridge_say_which_tool_they_mean_and_carry_the_number() -> None:
    plain = Step(name="mcp__lab__T", mark=1)
    coded = approach("codex-code").call(plain).numbered(5)
    assert (coded.sent_name, coded.shown, "k5" in coded.code) == ("exec", "mcp__lab__T", True)
    bridged = approach("qwen-search").call(plain).numbered(5)
    assert (bridged.sent_name, bridged.shown) == ("tool_call", "mcp__lab__T")
    assert bridged.sent == {"name": "mcp__lab__T", "arguments": {"q": "k5"}}


def test_names_of_a_reminder_are_searched_for_before_they_are_called() -> None:
    tools = (Offered(name="ToolSearch"),)
    turn = Turn(tools=tools, text="Available:\nmcp__lab__a\nmcp__lab__b\n")
    script = Script(approach("claude-search"), lambda offered: [Step(name=tool.name) for tool in offered])
    assert [step.sent["query"] for step in script.next(turn)] == ["select:mcp__lab__a,mcp__lab__b"]
    found = Turn(tools=(*tools, Offered(name="mcp__lab__a", description="[lab:1]")), results=("found",), text=turn.text)
    assert [step.name for step in script.next(found)] == ["mcp__lab__a"]

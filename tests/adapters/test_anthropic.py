"""Anthropic Messages: shapes that the library's own types accept, and answers that are damaged."""

from __future__ import annotations

from typing import Any

import pytest

from tests.adapters.model_apis import ANTHROPIC, accepts_anthropic_choice, accepts_anthropic_tools, awkward_catalog
from truename import Catalog, ToolId, project
from truename.adapters import anthropic
from truename.errors import InvalidCall

NAMES = project(Catalog.of("a@1/b@1", "a@1/c@1"), "anthropic")
USE: dict[str, Any] = {"type": "tool_use", "id": "toolu_1", "name": "a_b", "input": {"q": 1}}


def message(*content: Any, stop: Any = "tool_use") -> dict[str, Any]:
    return {"role": "assistant", "content": list(content), "stop_reason": stop}


def test_tools_are_what_the_library_knows() -> None:
    accepts_anthropic_tools(anthropic.tools(ANTHROPIC.names(awkward_catalog())))
    deferred = anthropic.tools(NAMES, defer=[ToolId.parse("a/c")])
    accepts_anthropic_tools(deferred)
    assert [tool.get("defer_loading") for tool in deferred] == [None, True]


@pytest.mark.parametrize(
    ("choice", "parallel", "made"),
    [
        ("auto", True, {"type": "auto"}),
        ("required", False, {"type": "any", "disable_parallel_tool_use": True}),
        ("none", False, {"type": "none"}),
        ("a/b", True, {"type": "tool", "name": "a_b"}),
    ],
)
def test_choices(choice: Any, parallel: bool, made: Any) -> None:
    assert anthropic.tool_choice(choice, NAMES, parallel=parallel) == made
    accepts_anthropic_choice([made])


def test_what_the_api_runs_itself_is_no_call() -> None:
    server = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}

    assert [call.call_id for call in anthropic.calls(message({"type": "text", "text": "x"}, server, USE), NAMES)] == [
        "toolu_1"
    ]


@pytest.mark.parametrize(
    ("answer", "field"),
    [
        (3, "the response"),
        ({}, "content"),
        ({"content": "x"}, "content"),
        (message("x"), "content[0]"),
        (message({}), "content[0].type"),
        (message({**USE, "id": 3}), "content[0].id"),
        (message({**USE, "id": None}), "content[0].id"),
        (message({**USE, "name": ""}), "content[0].name"),
        (message({**USE, "input": None}), "content[0].input"),
        (message({**USE, "input": '{"q": 1}'}), "content[0].input"),
        (message({**USE, "input": [1]}), "content[0].input"),
        (message({**USE, "input": {"q": float("nan")}}), "content[0].input.q"),
        (message({**USE, "surprise": 1}), "content[0].surprise"),
        (message(USE, USE), "content[1].id"),
        (message(USE, stop="max_tokens"), "content[0].input"),
        (message(USE, stop={}), "stop_reason"),
    ],
)
def test_a_damaged_answer_is_refused_with_the_field_that_is_wrong(answer: Any, field: str) -> None:
    with pytest.raises(InvalidCall) as caught:
        anthropic.calls(answer, NAMES)

    assert caught.value.field == field


START = {"type": "content_block_start", "index": 1, "content_block": {**USE, "input": {}}}
STOP = {"type": "content_block_stop", "index": 1}
END = {"type": "message_delta", "delta": {"stop_reason": "tool_use"}}


def delta(text: Any, index: int = 1) -> dict[str, Any]:
    return {
        "type": "content_block_delta",
        "index": index,
        "delta": {"type": "input_json_delta", "partial_json": text},
    }


def test_streamed_calls_are_put_together() -> None:
    text = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    said = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x"}}
    second = {
        "type": "content_block_start",
        "index": 2,
        "content_block": {**USE, "id": "toolu_2", "input": {"all": True}},
    }
    stream = [{"type": "message_start"}, text, said, {**STOP, "index": 0}, START, delta('{"q"'), delta(": 2}"), STOP]
    stream += [second, {**STOP, "index": 2}, END, {"type": "message_stop"}]

    calls = anthropic.calls(iter(stream), NAMES)

    assert [dict(call.arguments) for call in calls] == [{"q": 2}, {"all": True}]


@pytest.mark.parametrize(
    ("stream", "field"),
    [
        ([START, delta("{}")], "events"),
        ([START, delta("{}"), END], "events"),
        ([START, delta("{}"), STOP], "events"),
        ([START, delta("{}x"), STOP, END], "content[0].input"),
        ([START, delta(3)], "events[1].delta.partial_json"),
        ([START, START], "events[1].content_block"),
        ([{**START, "content_block": {**USE, "id": 3}}], "events[0].content_block.id"),
        ([{**START, "content_block": {**USE, "surprise": 3}}], "events[0].content_block.surprise"),
        ([{**START, "index": None}], "events[0].index"),
        ([{"no": "type"}], "events[0].type"),
    ],
)
def test_a_stream_that_is_cut_or_contradicts_itself_is_no_call(stream: list[Any], field: str) -> None:
    with pytest.raises(InvalidCall) as caught:
        anthropic.calls(stream, NAMES)

    assert caught.value.field == field


def test_results_carry_texts_images_and_the_failure() -> None:
    (call,) = anthropic.calls(message(USE), NAMES)
    image = {"type": "image", "data": "aGk=", "mimeType": "image/png"}

    made = [anthropic.result(call, [image, {"type": "text", "text": "b"}], is_error=True), anthropic.result(call, [1])]

    ANTHROPIC.accepts([{"role": "user", "content": made}])
    assert [block.get("is_error") for block in made] == [True, None]
    assert made[1]["content"] == [{"type": "text", "text": "[1]"}]

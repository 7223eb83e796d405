"""OpenAI Chat Completions: shapes that the library's own types accept, and answers that are damaged."""

from __future__ import annotations

from typing import Any

import pytest

from tests.adapters.model_apis import (
    CHAT,
    RESPONSES,
    accepts_chat_choice,
    accepts_chat_tools,
    awkward_catalog,
    definition,
)
from truename import Catalog, ToolId, project
from truename.adapters import openai_chat
from truename.adapters.layout import NamespaceLayout
from truename.errors import InvalidCall, InvalidName, InvalidPayload, UnknownTool
from truename.policy import Caller

NAMES = project(Catalog.of("a@1/b@1", "a@1/auto@1"), "openai")
CALL: dict[str, Any] = {"id": "c", "type": "function", "function": {"name": "a_b", "arguments": '{"q": 1}'}}
FUNCTION: dict[str, Any] = CALL["function"]


def completion(*calls: Any, finish: Any = "tool_calls") -> dict[str, Any]:
    message = {"role": "assistant", "content": None, "tool_calls": list(calls)}
    return {"choices": [{"index": 0, "message": message, "finish_reason": finish}]}


def chunk(*pieces: Any, finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"tool_calls": list(pieces)}, "finish_reason": finish}]}


def piece(place: int, text: str = "", **more: Any) -> dict[str, Any]:
    name = more.pop("name", None)
    return {"index": place, **more, "function": {"arguments": text, **({"name": name} if name else {})}}


def test_tools_are_what_the_library_knows() -> None:
    accepts_chat_tools(openai_chat.tools(CHAT.names(awkward_catalog())))
    accepts_chat_tools(openai_chat.tools(NAMES, strict=True))


def test_a_tool_keeps_its_description_and_its_schema() -> None:
    names = CHAT.names(Catalog.from_mcp({"a": [definition("b", 3)]}))

    (tool,) = openai_chat.tools(names)

    assert tool["function"]["description"] == "[lab:3] does b"
    assert tool["function"]["parameters"] == definition("b", 3)["inputSchema"]


@pytest.mark.parametrize("schema", [None, [], "x", {}, {"properties": {}}])
def test_a_schema_that_is_none_takes_no_arguments_and_spoils_nothing(schema: Any) -> None:
    names = CHAT.names(Catalog.from_mcp({"a": [{"name": "b", "inputSchema": schema}, definition("c", 1)]}))

    tools = openai_chat.tools(names)

    accepts_chat_tools(tools)
    assert tools[0]["function"]["parameters"]["type"] == "object"


def test_names_made_for_looser_rules_are_refused_all_at_once() -> None:
    fitting = project(Catalog.of("a@1/b@1", "a@1/c@1"), "google-gemini")
    loose = project(Catalog.of("a@1/x.y@1", "a@1/x.z@1"), "google-gemini", style="declared")

    assert openai_chat.tools(fitting)
    with pytest.raises(ExceptionGroup) as caught:
        openai_chat.tools(loose)
    assert [type(error) for error in caught.value.exceptions] == [InvalidName, InvalidName]


@pytest.mark.parametrize(
    ("choice", "made"),
    [
        ("auto", "auto"),
        ("none", "none"),
        ("required", "required"),
        ("a_b", {"type": "function", "function": {"name": "a_b"}}),
        ("A@v1/B", {"type": "function", "function": {"name": "a_b"}}),
        (ToolId.parse("a/auto"), {"type": "function", "function": {"name": "a_auto"}}),
    ],
)
def test_a_choice_is_a_mode_or_a_tool_by_any_of_its_names(choice: Any, made: Any) -> None:
    assert openai_chat.tool_choice(choice, NAMES) == made
    accepts_chat_choice([made])


def test_a_choice_of_a_tool_that_is_not_there_is_an_error() -> None:
    with pytest.raises(UnknownTool, match="Did you mean 'a_b'"):
        openai_chat.tool_choice("a_bb", NAMES)


def test_a_call_is_bound_to_its_tool_and_keeps_the_caller() -> None:
    caller = Caller(principal="ann", session="s")

    (call,) = openai_chat.calls(completion(CALL), NAMES, caller, endpoints={"a": "digest"})

    assert (str(call.id), call.call_id, dict(call.arguments)) == ("a@1/b@1", "c", {"q": 1})
    assert (call.caller, call.endpoint, call.wire_name) == (caller, "digest", "a_b")


@pytest.mark.parametrize("answer", [completion(), {"role": "assistant", "content": "hello"}, [chunk(finish="stop")]])
def test_an_answer_without_calls_has_none(answer: Any) -> None:
    assert openai_chat.calls(answer, NAMES) == ()


def test_a_custom_tool_s_call_is_none_of_ours() -> None:
    custom = {"id": "d", "type": "custom", "custom": {"name": "own", "input": "x"}}

    assert [call.call_id for call in openai_chat.calls(completion(custom, CALL), NAMES)] == ["c"]


WHERE = "choices[0].message.tool_calls[0]"
FAULTS: list[tuple[Any, str]] = [
    (12, "the response"),
    ("text", "the response"),
    ({}, "choices"),
    ({"choices": 3}, "choices"),
    ({"choices": []}, "choices"),
    ([], "choices"),
    ({"choices": [{"message": {"role": "assistant"}}] * 2}, "choices"),
    ({"choices": [{"index": 0}]}, "choices[0].message"),
    ({"choices": ["x"]}, "choices[0]"),
    ({"role": "assistant", "function_call": {"name": "a_b", "arguments": "{}"}}, "function_call"),
    (completion("x"), WHERE),
    (completion({**CALL, "id": None}), f"{WHERE}.id"),
    (completion({**CALL, "id": 12}), f"{WHERE}.id"),
    (completion({**CALL, "id": ""}), f"{WHERE}.id"),
    (completion({**CALL, "type": "tool"}), f"{WHERE}.type"),
    (completion({**CALL, "surprise": 1}), f"{WHERE}.surprise"),
    (completion({**CALL, "function": None}), f"{WHERE}.function"),
    (completion({**CALL, "function": {**FUNCTION, "name": ["a_b"]}}), f"{WHERE}.function.name"),
    (completion({**CALL, "function": {"arguments": "{}"}}), f"{WHERE}.function.name"),
    (completion({**CALL, "function": {"name": "a_b"}}), f"{WHERE}.function.arguments"),
    (completion({**CALL, "function": {**FUNCTION, "surprise": "x"}}), f"{WHERE}.function.surprise"),
    (completion({**CALL, "function": {**FUNCTION, "arguments": {"q": 1}}}), f"{WHERE}.function.arguments"),
    (completion({**CALL, "function": {**FUNCTION, "arguments": '{"q": '}}), f"{WHERE}.function.arguments"),
    (completion({**CALL, "function": {**FUNCTION, "arguments": "[1]"}}), f"{WHERE}.function.arguments"),
    (completion({**CALL, "function": {**FUNCTION, "arguments": '{"q": 1, "q": 2}'}}), f"{WHERE}.function.arguments.q"),
    (completion({**CALL, "function": {**FUNCTION, "arguments": '{"q": NaN}'}}), f"{WHERE}.function.arguments"),
    (completion(CALL, CALL), "choices[0].message.tool_calls[1].id"),
    (completion(CALL, finish="length"), f"{WHERE}.function.arguments"),
    (completion(CALL, finish=["stop"]), "choices[0].finish_reason"),
]


@pytest.mark.parametrize(("answer", "field"), FAULTS)
def test_a_damaged_answer_is_refused_with_the_field_that_is_wrong(answer: Any, field: str) -> None:
    with pytest.raises(InvalidCall) as caught:
        openai_chat.calls(answer, NAMES)

    assert caught.value.field == field


def test_streamed_calls_are_put_together_however_they_are_mixed() -> None:
    stream = [
        chunk(piece(0, id="c", type="function", name="a_b")),
        chunk(piece(1, id="d", name="a_auto")),
        chunk(piece(1, '{"x"'), piece(0, '{"q"')),
        chunk(piece(0, ": 1}"), piece(1, ": 2}")),
        chunk(piece(0, id="c", name="a_b")),
        chunk(finish="tool_calls"),
        {"choices": [], "usage": {}},
    ]

    calls = openai_chat.calls(iter(stream), NAMES)

    assert [(call.call_id, call.wire_name, dict(call.arguments)) for call in calls] == [
        ("c", "a_b", {"q": 1}),
        ("d", "a_auto", {"x": 2}),
    ]


BEGUN = chunk(piece(0, id="c", name="a_b"))
STREAMS: list[tuple[list[Any], str]] = [
    ([BEGUN], "choices[0]"),
    ([BEGUN, chunk(piece(0, "{}"))], "choices[0]"),
    ([BEGUN, chunk(piece(0, id="other"), finish="stop")], "chunks[1].choices[0].delta.tool_calls[0].id"),
    ([BEGUN, chunk(piece(0, name="x"), finish="stop")], "chunks[1].choices[0].delta.tool_calls[0].function.name"),
    ([chunk({"id": "c"})], "chunks[0].choices[0].delta.tool_calls[0].index"),
    ([chunk({"index": True, "id": "c"})], "chunks[0].choices[0].delta.tool_calls[0].index"),
    ([chunk({"index": 0, "surprise": 1})], "chunks[0].choices[0].delta.tool_calls[0].surprise"),
    ([chunk(piece(0, name="a_b"), finish="stop")], "choices[0].message.tool_calls[0].id"),
    ([chunk(piece(0, id="c"), finish="stop")], "choices[0].message.tool_calls[0].function.name"),
    ([chunk(piece(0, 12, id="c"))], "chunks[0].choices[0].delta.tool_calls[0].function.arguments"),  # type: ignore[arg-type]
    (["x"], "chunks[0]"),
    ([{"choices": [{"index": 0, "finish_reason": 3}]}], "chunks[0].choices[0].finish_reason"),
    ([chunk(*(piece(n, id=f"c{n}") for n in range(1001)))], "chunks[0].choices[0].delta.tool_calls[1000]"),
]


@pytest.mark.parametrize(("stream", "field"), STREAMS)
def test_a_stream_that_is_cut_or_contradicts_itself_is_no_call(stream: list[Any], field: str) -> None:
    with pytest.raises(InvalidCall) as caught:
        openai_chat.calls(stream, NAMES)

    assert caught.value.field == field


def test_results_are_one_text_or_several_and_failures_are_marked() -> None:
    (call,) = openai_chat.calls(completion(CALL), NAMES)
    blocks = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]

    assert openai_chat.result(call)["content"] == ""
    assert openai_chat.result(call, {"n": 1})["content"] == '{"n": 1}'
    assert openai_chat.result(call, "no", is_error=True)["content"] == "[tool error] no"
    for made in (openai_chat.result(call, blocks), openai_chat.result(call, blocks, is_error=True)):
        CHAT.accepts([made])
    with pytest.raises(InvalidPayload, match="image"):
        openai_chat.result(call, [{"type": "image", "data": "aGk=", "mimeType": "image/png"}])


def test_namespaces_are_refused() -> None:
    layout = NamespaceLayout.by_server(RESPONSES.names(Catalog.of("a@1/b@1")))

    for ask in (openai_chat.tools, lambda names: openai_chat.calls(completion(CALL), names)):
        with pytest.raises(InvalidPayload, match="has namespaces or deferred tools"):
            ask(layout)

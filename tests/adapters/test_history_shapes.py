"""The smaller shapes of recorded conversations: texts, images, thoughts, other kinds of tools."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.adapters.model_apis import BENCHES, obeys_provider
from truename import Catalog, project
from truename.adapters.history import RewrittenHistory, rewrite
from truename.errors import InvalidPayload

CATALOG = Catalog.of("a@1/b@1")
PNG = base64.b64encode(b"hello").decode()
CHAT_CALL = {"id": "c", "type": "function", "function": {"name": "a_b", "arguments": ""}}


def rewritten(messages: Any, source: str, target: str, **more: Any) -> RewrittenHistory:
    names, now = BENCHES[source].names(CATALOG), BENCHES[target].names(CATALOG)
    return rewrite(messages, source, target, names, now, **more)  # type: ignore[arg-type]


def carried(messages: Any, source: str, target: str, **more: Any) -> RewrittenHistory:
    told = rewritten(messages, source, target, **more)
    BENCHES[target].accepts(told.messages)
    obeys_provider(BENCHES[target], told.messages)
    return told


def test_the_input_of_responses_may_be_one_text() -> None:
    assert carried("hello", "openai_responses", "gemini").messages == [{"role": "user", "parts": [{"text": "hello"}]}]


def test_a_system_text_beside_the_messages_comes_first_where_it_stands_among_them() -> None:
    history = [{"role": "user", "content": "x"}]

    told = carried(history, "anthropic", "openai_chat", system="Be brief.")

    assert told.messages[0] == {"role": "system", "content": "Be brief."}
    assert told.system is None
    assert carried(history, "anthropic", "anthropic", system="Be brief.").system == "Be brief."


@pytest.mark.parametrize(
    ("source", "messages", "texts"),
    [
        ("openai_chat", [{"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}], ["no"]),
        ("openai_chat", [{"role": "assistant", "content": None, "refusal": "no"}], ["no"]),
        ("openai_responses", [{"role": "user", "content": [{"type": "input_text", "text": "x"}]}], ["x"]),
        (
            "openai_responses",
            [{"type": "message", "role": "assistant", "id": "m", "content": [{"type": "output_text", "text": "x"}]}],
            ["x"],
        ),
        ("openai_responses", [{"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}], ["no"]),
        ("anthropic", [{"role": "user", "content": "x"}], ["x"]),
        ("anthropic", [{"role": "user", "content": ""}], []),
        ("gemini", [{"parts": [{"text": "x"}]}], ["x"]),
        ("bedrock", [{"role": "user", "content": [{"text": "x"}, {"text": "y"}]}], ["x", "y"]),
    ],
)
def test_texts_are_carried_from_each_shape(source: str, messages: Any, texts: list[str]) -> None:
    told = carried(messages, source, "anthropic" if source != "anthropic" else "gemini")

    found = [part["text"] for message in told.messages for part in message.get("content") or message["parts"]]
    assert found == texts


@pytest.mark.parametrize(
    ("source", "part"),
    [
        ("openai_responses", {"type": "input_image", "detail": "auto", "image_url": f"data:image/png;base64,{PNG}"}),
        ("anthropic", {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}),
        ("gemini", {"inline_data": {"mime_type": "image/png", "data": b"hello"}}),
        ("bedrock", {"image": {"format": "png", "source": {"bytes": b"hello"}}}),
    ],
)
@pytest.mark.parametrize("target", BENCHES)
def test_an_image_is_carried_from_each_shape_to_each(source: str, part: Any, target: str) -> None:
    messages = [{"role": "user", "parts" if source == "gemini" else "content": [part]}]

    told = carried(messages, source, target)
    back = carried(told.messages, target, "bedrock")

    assert back.messages == [{"role": "user", "content": [{"image": {"format": "png", "source": {"bytes": b"hello"}}}]}]


@pytest.mark.parametrize("target", ["openai_chat", "openai_responses", "gemini"])
def test_the_address_of_an_image_is_carried_where_the_api_takes_one(target: str) -> None:
    source = {"type": "url", "url": "https://a.example/b.png"}

    told = carried([{"role": "user", "content": [{"type": "image", "source": source}]}], "anthropic", target)

    assert "https://a.example/b.png" in repr(told.messages)


@pytest.mark.parametrize(
    ("source", "messages", "where"),
    [
        (
            "openai_chat",
            [{"role": "assistant", "content": "x", "reasoning_content": "hm"}],
            "messages[0].reasoning_content",
        ),
        ("openai_responses", [{"type": "reasoning", "id": "r", "summary": []}], "messages[0]"),
        (
            "anthropic",
            [{"role": "assistant", "content": [{"type": "redacted_thinking", "data": "x"}]}],
            "messages[0].content[0]",
        ),
        ("gemini", [{"role": "model", "parts": [{"text": "hm", "thought": True}]}], "messages[0].parts[0]"),
        (
            "gemini",
            [{"role": "model", "parts": [{"text": "x", "thought_signature": b"s"}]}],
            "messages[0].parts[0].thought_signature",
        ),
        (
            "bedrock",
            [{"role": "user", "content": [{"cachePoint": {"type": "default"}}]}],
            "messages[0].content[0].cachePoint",
        ),
    ],
)
def test_what_is_of_use_to_one_provider_only_stays_there_and_is_told(source: str, messages: Any, where: str) -> None:
    told = carried(messages, source, "anthropic" if source != "anthropic" else "bedrock")

    assert [(one.code, one.where) for one in told.notices] == [("dropped", where)]
    assert rewritten(messages, source, source).messages == messages


def test_calls_of_other_kinds_of_tools_are_left_alone_under_their_api_and_bound_to_their_results() -> None:
    custom = {"id": "own", "type": "custom", "custom": {"name": "a_b", "input": "x"}}
    chat = [
        {"role": "assistant", "content": None, "tool_calls": [custom]},
        {"role": "tool", "tool_call_id": "own", "content": "x"},
    ]
    items = [
        {"type": "custom_tool_call", "call_id": "own", "name": "a_b", "input": "x"},
        {"type": "custom_tool_call_output", "call_id": "own", "output": "x"},
        {"type": "function_call", "call_id": "c", "name": "a_b", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "name": "a_b", "output": "x"},
    ]

    assert rewritten(chat, "openai_chat", "openai_chat").messages == chat
    assert rewritten(items, "openai_responses", "openai_responses").messages == items
    for source, messages in (("openai_chat", chat), ("openai_responses", items)):
        with pytest.raises(InvalidPayload, match="which other APIs do not support"):
            carried(messages, source, "anthropic")


def test_tools_that_a_search_of_responses_brought_are_renamed() -> None:
    names = BENCHES["openai_responses"].names(CATALOG)
    now = BENCHES["openai_responses"].names(CATALOG, style="server-prefix")
    tool: dict[str, Any] = {"type": "function", "name": "a_b", "parameters": {}, "strict": None}
    item = {"type": "tool_search_output", "call_id": "s", "tools": [tool, {"type": "custom", "name": "own"}]}

    told = rewrite([item], "openai_responses", "openai_responses", names, now)

    assert [one["name"] for one in told.messages[0]["tools"]] == [now["a@1/b@1"], "own"]


def test_a_gemini_response_without_an_id_belongs_to_a_call_without_one() -> None:
    calls = [{"name": "docs_search", "id": "A", "args": {"n": 1}}, {"name": "docs_search", "args": {"n": 2}}]
    answers = [
        {"name": "docs_search", "response": {"output": "two"}},
        {"name": "docs_search", "id": "A", "response": {"output": "one"}},
    ]
    history = [
        {"role": "model", "parts": [{"functionCall": call} for call in calls]},
        {"role": "user", "parts": [{"functionResponse": answer} for answer in answers]},
    ]
    names = project(Catalog.of("docs@1/search@1"), "gemini")

    told = rewrite(history, "gemini", "openai_chat", names, project(names.catalog, "openai"))

    assert rewrite(history, "gemini", "gemini", names, names).messages == history
    asked = {one["id"]: one["function"]["arguments"] for one in told.messages[0]["tool_calls"]}
    assert {asked[one["tool_call_id"]]: one["content"] for one in told.messages[1:]} == {
        '{"n": 1}': "one",
        '{"n": 2}': "two",
    }


def test_results_of_every_shape_are_carried() -> None:
    use = {"toolUseId": "c", "name": "a_b", "input": {}}
    image = {"image": {"format": "png", "source": {"bytes": b"hello"}}}
    result = {"toolUseId": "c", "content": [{"json": {"n": 1}}, {"text": "x"}], "status": "success"}
    history = [
        {"role": "assistant", "content": [{"toolUse": use}]},
        {"role": "user", "content": [{"text": "and"}, {"toolResult": result}]},
    ]
    pictured = [history[0], {"role": "user", "content": [{"toolResult": {**result, "content": [image]}}]}]

    chat = carried(history, "bedrock", "openai_chat").messages
    claude = carried(history, "bedrock", "anthropic").messages

    assert chat[1]["content"] == [{"type": "text", "text": '{"n": 1}'}, {"type": "text", "text": "x"}]
    assert [block["type"] for block in claude[1]["content"]] == ["tool_result", "text"]
    for target in ("openai_responses", "anthropic", "gemini"):
        there = carried(pictured, "bedrock", target).messages
        assert carried(there, target, "anthropic").messages[1]["content"][0]["content"][-1]["type"] == "image"
    with pytest.raises(InvalidPayload, match=r"messages\[0\] has content that this API does not support"):
        carried(pictured, "bedrock", "openai_chat")


def test_a_failure_without_words_stays_a_failure() -> None:
    history = [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "a_b", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "is_error": True}]},
    ]

    there = carried(history, "anthropic", "openai_chat")
    back = carried(there.messages, "openai_chat", "anthropic")

    assert back.messages[1]["content"][0]["is_error"] is True


def test_two_ids_that_would_become_one_are_refused() -> None:
    calls = [{**CHAT_CALL, "id": id} for id in ("é", "tn-e-_c3_a9")]

    with pytest.raises(InvalidPayload, match="becomes the same id as"):
        carried([{"role": "assistant", "tool_calls": calls}], "openai_chat", "anthropic")


def test_results_that_come_late_or_mixed_are_put_behind_their_calls() -> None:
    def call(id: str) -> dict[str, Any]:
        return {"type": "function_call", "call_id": id, "name": "a_b", "arguments": "{}"}

    def output(id: str) -> dict[str, Any]:
        return {"type": "function_call_output", "call_id": id, "output": id}

    history = [call("a"), call("b"), output("a"), call("c"), output("c"), output("b"), {"role": "user", "content": "x"}]

    told = carried(history, "openai_responses", "anthropic")

    assert [
        (one["role"], [part.get("tool_use_id") or part.get("id") for part in one["content"]]) for one in told.messages
    ] == [
        ("assistant", ["a", "b"]),
        ("user", ["a", "b"]),
        ("assistant", ["c"]),
        ("user", ["c", None]),
    ]

"""Hostile and damaged histories: a typed error that names the field, and nothing is half rewritten."""

from __future__ import annotations

import copy
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.adapters.model_apis import BENCHES
from tests.support.adapters_history_faults import JSON
from truename import Catalog
from truename.adapters.history import CALL_IDS, CallIds, rewrite
from truename.adapters.layout import NamespaceLayout
from truename.errors import InvalidPayload, TruenameError

CATALOG = Catalog.of("a@1/b@1")
CHAT_CALL = {"id": "c", "type": "function", "function": {"name": "a_b", "arguments": "{}"}}
ITEM = {"type": "function_call", "call_id": "c", "name": "a_b", "arguments": "{}"}
USE = {"type": "tool_use", "id": "c", "name": "a_b", "input": {}}
PART = {"id": "c", "name": "a_b", "args": {}}
BLOCK = {"toolUseId": "c", "name": "a_b", "input": {}}


def chat(*calls: Any, **more: Any) -> list[Any]:
    return [{"role": "assistant", "content": None, "tool_calls": list(calls), **more}]


def blocks(*content: Any, role: str = "assistant") -> list[Any]:
    return [{"role": role, "content": list(content)}]


def parts(*given: Any) -> list[Any]:
    return [{"role": "model", "parts": list(given)}]


def without(entry: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key != name}


def using(**more: Any) -> dict[str, Any]:
    return {"toolUse": {**BLOCK, **more}}


CHAT_RESULT = {"role": "tool", "tool_call_id": "c", "content": "x"}
# The API it was recorded under, the history, and the field that the error names.
FAULTS: list[tuple[str, Any, str]] = [
    ("openai_chat", 12, "messages"),
    ("openai_chat", ["x"], "messages[0]"),
    ("openai_chat", [{"content": "x"}], "messages[0].role"),
    ("openai_chat", [{"role": "robot", "content": "x"}], "messages[0].role"),
    ("openai_chat", [{"role": "user", "content": 12}], "messages[0].content"),
    ("openai_chat", [{"role": "user", "content": [12]}], "messages[0].content[0]"),
    ("openai_chat", [{"role": "user", "content": [{"text": "x"}]}], "messages[0].content[0].type"),
    ("openai_chat", [{"role": "user", "content": [{"type": "video"}]}], "messages[0].content[0]"),
    ("openai_chat", [{"role": "user", "content": "x", "surprise": 1}], "messages[0].surprise"),
    ("openai_chat", chat(without(CHAT_CALL, "id")), "messages[0].tool_calls[0].id"),
    ("openai_chat", chat({**CHAT_CALL, "id": 12}), "messages[0].tool_calls[0].id"),
    ("openai_chat", chat({**CHAT_CALL, "id": ""}), "messages[0].tool_calls[0].id"),
    ("openai_chat", chat({**CHAT_CALL, "extra": 1}), "messages[0].tool_calls[0].extra"),
    ("openai_chat", chat({**CHAT_CALL, "function": None}), "messages[0].tool_calls[0].function"),
    ("openai_chat", chat({**CHAT_CALL, "function": {"arguments": "{}"}}), "messages[0].tool_calls[0].function.name"),
    (
        "openai_chat",
        chat({**CHAT_CALL, "function": {"name": "a_b", "arguments": {}}}),
        "messages[0].tool_calls[0].function.arguments",
    ),
    ("openai_chat", chat(CHAT_CALL, CHAT_CALL), "messages[0].tool_calls[1].id"),
    ("openai_chat", chat(CHAT_CALL) + chat(CHAT_CALL), "messages[1].tool_calls[0].id"),
    ("openai_chat", [CHAT_RESULT], "messages[0].tool_call_id"),
    ("openai_chat", [CHAT_RESULT, *chat(CHAT_CALL)], "messages[0].tool_call_id"),
    ("openai_chat", [*chat(CHAT_CALL), CHAT_RESULT, CHAT_RESULT], "messages[2].tool_call_id"),
    ("openai_chat", [*chat(CHAT_CALL), without(CHAT_RESULT, "tool_call_id")], "messages[1].tool_call_id"),
    ("openai_chat", chat(function_call={"name": "a_b", "arguments": "{}"}), "messages[0].function_call"),
    ("openai_chat", [{"role": "function", "name": "a_b", "content": "x"}], "messages[0].role"),
    ("openai_chat", [{"role": "assistant", "tool_calls": {"0": CHAT_CALL}}], "messages[0].tool_calls"),
    ("openai_responses", [without(ITEM, "call_id")], "messages[0].call_id"),
    ("openai_responses", [{**ITEM, "call_id": ["c"]}], "messages[0].call_id"),
    ("openai_responses", [{**ITEM, "namespace": 3}], "messages[0].namespace"),
    ("openai_responses", [{**ITEM, "surprise": 3}], "messages[0].surprise"),
    ("openai_responses", [ITEM, ITEM], "messages[1].call_id"),
    ("openai_responses", [{"type": "function_call_output", "call_id": "d", "output": "x"}], "messages[0].call_id"),
    ("openai_responses", [{"type": "web_search_call", "id": "w"}], "messages[0]"),
    ("openai_responses", [{"type": 5}], "messages[0].type"),
    ("anthropic", blocks(without(USE, "id")), "messages[0].content[0].id"),
    ("anthropic", blocks({**USE, "name": None}), "messages[0].content[0].name"),
    ("anthropic", blocks({**USE, "input": "{}"}), "messages[0].content[0].input"),
    ("anthropic", blocks(without(USE, "input")), "messages[0].content[0].input"),
    ("anthropic", blocks({**USE, "surprise": 1}), "messages[0].content[0].surprise"),
    ("anthropic", blocks(USE, USE), "messages[0].content[1].id"),
    (
        "anthropic",
        blocks({"type": "tool_result", "tool_use_id": "d"}, role="user"),
        "messages[0].content[0].tool_use_id",
    ),
    ("anthropic", blocks({"type": "container_upload"}), "messages[0].content[0]"),
    ("anthropic", blocks(7), "messages[0].content[0]"),
    ("gemini", parts({"functionCall": without(PART, "name")}), "messages[0].parts[0].functionCall.name"),
    ("gemini", parts({"functionCall": {**PART, "id": 3}}), "messages[0].parts[0].functionCall.id"),
    ("gemini", parts({"functionCall": {**PART, "args": []}}), "messages[0].parts[0].functionCall.args"),
    ("gemini", parts({"function_call": {**PART, "surprise": 1}}), "messages[0].parts[0].function_call.surprise"),
    ("gemini", parts({"functionResponse": {"name": "a_b"}}), "messages[0].parts[0].functionResponse.name"),
    ("gemini", parts({"functionResponse": {"id": "c", "name": "a_b"}}), "messages[0].parts[0].functionResponse.id"),
    ("gemini", parts({"executableCode": {"code": "x"}}), "messages[0].parts[0]"),
    ("gemini", parts({"functionCall": 3}), "messages[0].parts[0].functionCall"),
    ("bedrock", blocks({"toolUse": without(BLOCK, "toolUseId")}), "messages[0].content[0].toolUse.toolUseId"),
    ("bedrock", blocks(using(input="{}")), "messages[0].content[0].toolUse.input"),
    ("bedrock", blocks(using(surprise=1)), "messages[0].content[0].toolUse.surprise"),
    ("bedrock", blocks(using(), using()), "messages[0].content[1].toolUse.toolUseId"),
    ("bedrock", blocks({"text": "x", "image": {}}), "messages[0].content[0]"),
    ("bedrock", blocks({"video": {}}), "messages[0].content[0].video"),
    ("bedrock", [{"role": "user", "content": "x"}], "messages[0].content"),
]


@pytest.mark.parametrize(
    ("api", "messages", "field"), FAULTS, ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_damaged_history_is_refused_with_the_field_that_is_wrong(api: str, messages: Any, field: str) -> None:
    names, before = BENCHES[api].names(CATALOG), copy.deepcopy(messages)
    other = "anthropic" if api != "anthropic" else "openai_chat"

    with pytest.raises(InvalidPayload) as caught:
        rewrite(messages, api, other, names, BENCHES[other].names(CATALOG))  # type: ignore[arg-type]

    assert caught.value.field == field
    assert caught.value.code == "invalid_history"
    assert field.rpartition(".")[2] in str(caught.value)
    assert messages == before


def test_a_history_that_is_nested_too_deep_is_refused() -> None:
    names = BENCHES["openai_chat"].names(CATALOG)
    deep: Any = "x"
    for _ in range(5000):
        deep = [deep]

    with pytest.raises(InvalidPayload, match="nested deeper than 100"):
        rewrite([{"role": "user", "content": deep}], "openai_chat", "gemini", names, names)


def test_a_layout_with_namespaces_is_refused_where_the_api_has_none() -> None:
    layout = NamespaceLayout.by_server(BENCHES["openai_responses"].names(CATALOG))

    with pytest.raises(InvalidPayload) as caught:
        rewrite([], "openai_responses", "openai_chat", layout, layout)

    assert (caught.value.field, caught.value.code) == ("tools", "invalid_request")


SEEDS = [(api, messages) for api, messages, _ in FAULTS if isinstance(messages, list)]


@given(st.sampled_from(SEEDS), JSON, st.data(), st.sampled_from(sorted(BENCHES)))
def test_whatever_stands_in_a_history_the_error_is_typed(
    seed: tuple[str, list[Any]], junk: Any, data: st.DataObject, target: str
) -> None:
    api, messages = seed[0], copy.deepcopy(seed[1])
    place: Any = messages
    while isinstance(place, list | dict) and place:
        key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        if data.draw(st.booleans()) or not isinstance(place[key], list | dict):
            place[key] = junk
            break
        place = place[key]

    with suppress(TruenameError):
        rewrite(messages, api, target, BENCHES[api].names(CATALOG), BENCHES[target].names(CATALOG))  # type: ignore[arg-type]


@given(st.lists(st.text(min_size=1, max_size=80), unique=True, max_size=6), st.sampled_from(sorted(CALL_IDS)))
def test_call_ids_are_carried_one_to_one_and_back(ids: list[str], api: str) -> None:
    there = CallIds(api)
    carried = [there.carried(id) for id in ids]
    back = CallIds("gemini", there.record)

    assert all(CALL_IDS[api].fullmatch(id) for id in carried)
    assert len(set(carried)) == len(ids)
    for id, new in zip(ids, carried, strict=True):
        assert back.carried(new) == id or not CALL_IDS["gemini"].fullmatch(id)


@pytest.mark.parametrize(
    ("id", "api", "carried"),
    [
        ("call_abc", "anthropic", "call_abc"),
        ("toolu_01A-b", "openai_chat", "toolu_01A-b"),
        ("functions.get:0", "bedrock", "tn-e-functions_2eget_3a0"),
        ("functions.get:0", "openai_chat", "functions.get:0"),
        ("é", "anthropic", "tn-e-_c3_a9"),
        ("tn-e-functions_2eget_3a0", "openai_chat", "functions.get:0"),
        ("tn-e-_zz", "openai_chat", "tn-e-_zz"),
        ("tn-e-_ff", "openai_chat", "tn-e-_ff"),
    ],
)
def test_an_id_is_changed_only_where_it_has_to_be(id: str, api: str, carried: str) -> None:
    assert CallIds(api).carried(id) == carried


def test_an_id_that_is_too_long_becomes_a_digest_which_the_record_undoes() -> None:
    there = CallIds("openai_chat")

    carried = there.carried("x" * 53)

    assert carried.startswith("tn-h-")
    assert CallIds("anthropic", there.record).carried(carried) == "x" * 53
    assert CallIds("anthropic").carried(carried) == carried

"""Recorded conversations go on after a rename and under another provider; every call keeps its result and its tool."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from anthropic.types import ToolUseBlock
from google.genai.types import Content, FunctionCall, Part
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionMessage

from tests.adapters.conversations import (
    CATALOG,
    DELETE,
    IDS,
    LIST,
    OTHERS,
    SEARCH,
    WEATHER,
    accepted,
    call,
    chat_names,
    recorded,
)
from tests.adapters.model_apis import BENCHES, awkward_catalog, obeys_provider
from tests.support.adapters_model_apis import model
from truename.adapters import anthropic, openai_chat
from truename.adapters.history import rewrite
from truename.adapters.layout import NamespaceLayout
from truename.errors import ApprovalRequired, CallRepeated
from truename.identity.keys import call_id
from truename.policy import Approvals, Caller, Policy


@pytest.mark.parametrize("other", OTHERS)
def test_a_conversation_goes_from_openai_to_another_provider_and_back_unchanged(other: str) -> None:
    then, now, bench = chat_names(), BENCHES[other].names(CATALOG), BENCHES[other]

    there = rewrite(recorded(then), "openai_chat", other, then, now)  # type: ignore[arg-type]
    back = rewrite(there.messages, other, "openai_chat", now, then, system=there.system, ids=there.ids)  # type: ignore[arg-type]

    accepted(bench, there)
    accepted(BENCHES["openai_chat"], back)
    assert [one.id for one in there.calls] == [one.id for one in back.calls] == list(IDS)
    assert all(one.is_answered for one in there.calls + back.calls)
    assert plainly(back.messages) == plainly(recorded(then))
    assert there.notices == back.notices == ()


def plainly(messages: list[dict[str, Any]]) -> list[Any]:
    """Return messages with results in the order of their calls and arguments as values, which is what they mean."""
    found: list[Any] = []
    results: dict[str, Any] = {one["tool_call_id"]: one["content"] for one in messages if one["role"] == "tool"}
    for message in messages:
        if message["role"] == "tool":
            continue
        found.append((message["role"], message.get("content")))
        for one in message.get("tool_calls") or ():
            function = one["function"]
            try:
                arguments = json.loads(function["arguments"])
            except ValueError:
                arguments = function["arguments"]
            found.append((one["id"], function["name"], arguments, results[one["id"]]))
    return found


@pytest.mark.parametrize("source", BENCHES)
@pytest.mark.parametrize("target", BENCHES)
def test_the_real_client_of_each_api_sends_what_was_recorded_under_any_other(source: str, target: str) -> None:
    chat, first, second = chat_names(), BENCHES[source].names(CATALOG), BENCHES[target].names(CATALOG)
    there = rewrite(recorded(chat), "openai_chat", source, chat, first)  # type: ignore[arg-type]

    told = rewrite(there.messages, source, target, first, second, system=there.system)  # type: ignore[arg-type]

    accepted(BENCHES[target], told)
    assert [one.id for one in told.calls] == list(IDS)
    with model(BENCHES[target]) as server:
        BENCHES[target].ask(server.url, BENCHES[target].adapter.tools(second), told.messages, False)


def test_a_call_that_waits_for_an_approval_is_carried_and_told() -> None:
    then, now = chat_names(), BENCHES["anthropic"].names(CATALOG)
    history = recorded(then)[:3]

    told = rewrite(history, "openai_chat", "anthropic", then, now)

    assert [one.is_answered for one in told.calls] == [False, False]
    assert [one.code for one in told.notices] == ["open", "open"]
    accepted(BENCHES["anthropic"], told)


def test_namespaces_are_written_for_responses_and_left_behind_elsewhere() -> None:
    layout = NamespaceLayout.by_server(BENCHES["openai_responses"].names(CATALOG))
    chat = chat_names()

    there = rewrite(recorded(chat), "openai_chat", "openai_responses", chat, layout)
    back = rewrite(there.messages, "openai_responses", "openai_chat", layout, chat)

    calls = [item for item in there.messages if item.get("type") == "function_call"]
    assert [(item["namespace"], item["name"]) for item in calls[:2]] == [("docs", "search"), ("web", "search")]
    assert plainly(back.messages) == plainly(recorded(chat))
    accepted(BENCHES["openai_responses"], there)


def test_a_deferred_tool_is_called_with_its_own_name_as_namespace() -> None:
    chat = chat_names()
    layout = NamespaceLayout.of(BENCHES["openai_responses"].names(CATALOG)).deferring([SEARCH])

    there = rewrite(recorded(chat), "openai_chat", "openai_responses", chat, layout)
    back = rewrite(there.messages, "openai_responses", "openai_responses", layout, chat)

    first = next(item for item in there.messages if item.get("type") == "function_call")
    assert first["namespace"] == first["name"] == layout.keys[IDS[0]].name
    assert back.calls[0].id == IDS[0]
    assert all("namespace" not in item for item in back.messages)


def test_tools_that_a_search_brought_are_renamed_with_the_rest() -> None:
    then, now = BENCHES["anthropic"].names(CATALOG), BENCHES["anthropic"].names(CATALOG, style="server-prefix")
    content = {
        "type": "tool_search_tool_search_result",
        "tool_references": [{"type": "tool_reference", "tool_name": then[LIST]}],
    }
    block = {"type": "tool_search_tool_result", "tool_use_id": "s", "content": content}

    told = rewrite([{"role": "assistant", "content": [block]}], "anthropic", "anthropic", then, now)

    assert told.messages[0]["content"][0]["content"]["tool_references"][0]["tool_name"] == now[LIST]


def test_what_only_one_api_has_is_left_behind_and_told() -> None:
    names = BENCHES["anthropic"].names(CATALOG)
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    history = [
        {"role": "user", "content": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}]},
        {"role": "assistant", "content": [thought, {"type": "text", "text": "y"}]},
    ]

    told = rewrite(history, "anthropic", "openai_chat", names, chat_names())

    assert [(one.code, one.where) for one in told.notices] == [
        ("dropped", "messages[0].content[0].cache_control"),
        ("dropped", "messages[1].content[0]"),
    ]
    assert told.messages == [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]


def test_a_system_text_in_the_middle_is_moved_where_the_api_has_one_place_for_it() -> None:
    history = [
        {"role": "system", "content": "a"},
        {"role": "user", "content": "b"},
        {"role": "developer", "content": "c"},
    ]

    told = rewrite(history, "openai_chat", "gemini", chat_names(), BENCHES["gemini"].names(CATALOG))

    assert told.system == "a\n\nc"
    assert [(one.code, one.where) for one in told.notices] == [("moved", "messages[2]")]
    assert told.messages == [{"role": "user", "parts": [{"text": "b"}]}]


def test_images_are_carried_and_an_image_that_an_api_can_not_have_is_an_error_that_names_the_message() -> None:
    url = "data:image/png;base64,aGVsbG8="
    picture = {"type": "image_url", "image_url": {"url": url}}
    history = [{"role": "user", "content": [{"type": "text", "text": "what is it?"}, picture]}]
    chat = chat_names()

    for name in OTHERS:
        names = BENCHES[name].names(CATALOG)
        there = rewrite(history, "openai_chat", name, chat, names)  # type: ignore[arg-type]
        accepted(BENCHES[name], there)
        assert rewrite(there.messages, name, "openai_chat", names, chat).messages == history  # type: ignore[arg-type]
    with pytest.raises(
        ValueError, match=r"messages\[0\] has content that this API does not support: it is not an image in a format"
    ):
        rewrite(
            [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://a.example/b.png"}}]}],
            "openai_chat",
            "bedrock",
            chat,
            BENCHES["bedrock"].names(CATALOG),
        )


def test_a_gemini_history_without_ids_is_bound_by_order_and_gets_none_back() -> None:
    names, chat = BENCHES["gemini"].names(CATALOG), chat_names()
    history = [
        {"role": "user", "parts": [{"text": "x"}]},
        {
            "role": "model",
            "parts": [
                {"functionCall": {"name": names[SEARCH], "args": {"q": "1"}}, "thoughtSignature": "c2ln"},
                {"function_call": {"name": names[WEATHER]}},
                {"functionCall": {"name": names[SEARCH], "args": {"q": "2"}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": names[WEATHER], "response": {"output": "w"}}},
                {"function_response": {"name": names[SEARCH], "response": {"degrees": 1}}},
                {"functionResponse": {"name": names[SEARCH], "response": {"error": "no"}}},
            ],
        },
    ]

    there = rewrite(history, "gemini", "openai_chat", names, chat)
    same = rewrite(history, "gemini", "gemini", names, names)
    back = rewrite(there.messages, "openai_chat", "gemini", chat, names)

    accepted(BENCHES["openai_chat"], there)
    assert [one["content"] for one in there.messages if one["role"] == "tool"] == [
        '{"degrees": 1}',
        "w",
        "[tool error] no",
    ]
    assert [one.id for one in there.calls] == [IDS[0], IDS[1], IDS[0]]
    assert same.messages == history
    assert "'id'" not in repr(back.messages)


def test_typed_objects_of_the_libraries_are_read_as_the_dictionaries_that_they_stand_for() -> None:
    names = BENCHES["openai_chat"].names(CATALOG)
    message = ChatCompletionMessage.model_validate({"role": "assistant", "tool_calls": [call("c", names[SEARCH])]})
    block = ToolUseBlock(type="tool_use", id="c", name=names[SEARCH], input={"q": None})
    content = Content(role="model", parts=[Part(function_call=FunctionCall(id="c", name=names[SEARCH], args={}))])

    told = [
        rewrite([message], "openai_chat", "anthropic", names, names),
        rewrite([{"role": "assistant", "content": [block]}], "anthropic", "openai_chat", names, names),
        rewrite([content], "gemini", "bedrock", names, names),
    ]

    assert [one.calls[0].id for one in told] == [IDS[0]] * 3
    assert told[1].messages[0]["tool_calls"][0]["function"]["arguments"] == '{"q": null}'


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8).filter(str.strip)


CALL_IDS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=40)


@st.composite
def conversations(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Return chat histories: texts, parallel calls, results in any order."""
    names, messages = chat_names(), list[dict[str, Any]]()
    ids = draw(st.lists(CALL_IDS.filter(lambda id: not id.startswith("tn-")), unique=True, max_size=8))
    wires = st.sampled_from(sorted(names.values()))
    while ids:
        if draw(st.booleans()):
            messages.append({"role": "user", "content": draw(TEXTS)})
        batch = [ids.pop() for _ in range(draw(st.integers(1, min(3, len(ids)))))]
        arguments = st.dictionaries(TEXTS, st.none() | st.booleans() | st.integers(-99, 99) | TEXTS, max_size=2)
        calls = [call(one, draw(wires), json.dumps(draw(arguments))) for one in batch]
        messages.append({"role": "assistant", "content": draw(st.none() | TEXTS), "tool_calls": calls})
        for one in draw(st.permutations(batch)):
            mark = draw(st.sampled_from(["", "[tool error] "]))
            messages.append({"role": "tool", "tool_call_id": one, "content": mark + draw(TEXTS)})
    return messages


@given(conversations(), st.sampled_from(OTHERS))
def test_any_conversation_comes_back_as_it_was(messages: list[dict[str, Any]], other: str) -> None:
    chat, names = chat_names(), BENCHES[other].names(CATALOG)

    there = rewrite(messages, "openai_chat", other, chat, names)  # type: ignore[arg-type]
    back = rewrite(there.messages, other, "openai_chat", names, chat, ids=there.ids)  # type: ignore[arg-type]

    obeys_provider(BENCHES[other], there.messages)
    assert plainly(back.messages) == plainly(messages)
    assert len({one.call_id for one in there.calls}) == len(there.calls)


def test_awkward_names_of_two_servers_are_carried_to_every_api() -> None:
    catalog = awkward_catalog()
    then = BENCHES["openai_chat"].names(catalog)
    calls = [call(f"c{number}", name) for number, name in enumerate(then.values())]
    results = [{"role": "tool", "tool_call_id": one["id"], "content": "x"} for one in calls]
    history = [{"role": "user", "content": "go"}, {"role": "assistant", "content": None, "tool_calls": calls}, *results]

    for name in OTHERS:
        told = rewrite(history, "openai_chat", name, then, BENCHES[name].names(catalog))  # type: ignore[arg-type]
        accepted(BENCHES[name], told)
        assert [one.id for one in told.calls] == list(then)


def test_a_call_that_was_asked_for_under_one_provider_is_approved_and_run_once_under_another() -> None:
    caller = Caller(principal="ann", session="s")
    policy = Policy(approvals=Approvals())
    chat, now = chat_names(), BENCHES["anthropic"].names(CATALOG, style="server-prefix")
    waiting_call = call("call:1", chat[DELETE])
    history = [*recorded(chat)[:2], {"role": "assistant", "content": None, "tool_calls": [waiting_call]}]
    (asked,) = openai_chat.calls(history[2], chat, caller)
    with pytest.raises(ApprovalRequired):
        policy.enforce(asked)

    told = rewrite(json.loads(json.dumps(history)), "openai_chat", "anthropic", chat, now)
    (waiting,) = [one for one in told.calls if not one.is_answered]
    (again,) = anthropic.calls(told.messages[-1], now, caller)
    assert policy.approvals is not None
    policy.approvals.approve(again)

    assert (waiting.former_id, waiting.id) == (asked.call_id, asked.id)
    assert again.call_id == waiting.call_id
    assert again.fingerprint == asked.fingerprint, "it is the same call under any name"
    with policy.running(again):
        told.messages.append({"role": "user", "content": [anthropic.result(again, "gone")]})
    with pytest.raises(CallRepeated), policy.running(again):
        pytest.fail("it ran twice")
    accepted(BENCHES["anthropic"], told)


def test_a_call_that_ran_before_the_change_of_provider_is_not_run_again_under_its_former_id() -> None:
    caller, policy = Caller(session="s"), Policy(approvals=Approvals(), default="allow")
    chat, now = chat_names(), BENCHES["anthropic"].names(CATALOG)
    history = [{"role": "assistant", "content": None, "tool_calls": [call("call:1", chat[DELETE])]}]
    (asked,) = openai_chat.calls(history[0], chat, caller)
    with policy.running(asked):
        pass

    told = rewrite(history, "openai_chat", "anthropic", chat, now)
    (again,) = anthropic.calls(told.messages[-1], now, caller)

    former = call_id({"call_id": told.ids.get(again.call_id, again.call_id)})
    assert former is not None
    assert former == asked.call_id
    with pytest.raises(CallRepeated), policy.running(replace(again, call_id=former)):
        pytest.fail("it ran twice")

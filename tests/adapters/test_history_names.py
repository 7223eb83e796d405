"""Names in recorded conversations: renamed, gone, made up; none ever reads as another tool."""

from __future__ import annotations

import copy

import pytest

from tests.adapters.conversations import (
    CATALOG,
    IDS,
    SEARCH,
    WEATHER,
    accepted,
    call,
    chat_names,
    recorded,
)
from tests.adapters.model_apis import BENCHES
from truename import Catalog, Ledger, ToolId, project, resolve
from truename.adapters.history import rewrite
from truename.errors import UnknownTool


@pytest.mark.parametrize("name", BENCHES)
def test_under_one_api_a_rename_changes_names_and_nothing_else(name: str) -> None:
    chat, bench = chat_names(), BENCHES[name]
    then = bench.names(CATALOG)
    now = bench.names(CATALOG, style="server-prefix")
    history = rewrite(recorded(chat), "openai_chat", name, chat, then).messages  # type: ignore[arg-type]
    before = copy.deepcopy(history)

    told = rewrite(history, name, name, then, now)  # type: ignore[arg-type]

    text = repr(before)
    for id in sorted(then, key=lambda id: -len(then[id])):
        text = text.replace(f"{then[id]!r}", f"{now[id]!r}")
    assert repr(told.messages) == text
    assert history == before
    assert told.ids == {}
    accepted(bench, told)


def test_a_tool_that_was_renamed_is_found_through_the_ledger_and_called_by_its_present_name() -> None:
    ledger = Ledger.memory()
    then = project(Catalog.of("fs@1/list@1"), "openai", ledger=ledger)
    history = [
        {"role": "assistant", "content": None, "tool_calls": [call("c", then["fs@1/list@1"])]},
        {"role": "tool", "tool_call_id": "c", "content": "x"},
    ]
    later = Catalog.of("files@1/list_all@1")
    ledger.redirect(then["fs@1/list@1"], "files@1/list_all@1")
    now = project(later, "anthropic", ledger=ledger)

    told = rewrite(history, "openai_chat", "anthropic", now, now)

    assert told.calls[0].id == ToolId.parse("files@1/list_all@1")
    assert told.messages[0]["content"][0]["name"] == now["files@1/list_all@1"]


def test_a_tool_that_is_gone_keeps_a_legal_name_that_no_other_tool_gets() -> None:
    then, now = chat_names(), project(Catalog.of(SEARCH), "bedrock-converse")

    told = rewrite(recorded(then), "openai_chat", "bedrock", then, now)
    again = rewrite(told.messages, "bedrock", "bedrock", now, now)

    gone = [one for one in told.calls if one.id not in now]
    assert [one.id for one in gone] == list(IDS[1:4])
    assert len({one.key.name for one in gone}) == 3
    assert all(one.key.name.startswith("gone_") for one in gone)
    assert {one.code for one in told.notices} == {"absent"}
    assert str(IDS[1]) in told.notices[0].text
    accepted(BENCHES["bedrock"], told)
    assert again.messages == told.messages, "a name that was kept stays what it is"


def test_with_a_ledger_a_tool_that_is_gone_keeps_the_name_that_it_holds() -> None:
    ledger = Ledger.memory()
    then = chat_names(ledger=ledger)
    now = project(Catalog.of(SEARCH, aliases={}), "openai", ledger=ledger)

    told = rewrite(recorded(then), "openai_chat", "openai_chat", then, now)

    assert [one.key.name for one in told.calls] == [then[id] for id in IDS]
    assert {one.code for one in told.notices} == {"absent"}


def test_a_past_call_never_reads_as_one_of_the_tool_that_has_the_name_now() -> None:
    before = project(Catalog.of("docs@1/search@1"), "openai", style="on-conflict")
    after = project(Catalog.of("evil@1/search@1"), "openai", style="on-conflict")
    name = before["docs@1/search@1"]
    history = [{"role": "assistant", "content": None, "tool_calls": [call("c", name)]}]

    told = rewrite(history, "openai_chat", "openai_chat", before, after)

    # Left as it was, the conversation would say that the newcomer was called, and that it worked.
    assert resolve(name, after).id == ToolId.parse("evil/search")
    with pytest.raises(UnknownTool):
        resolve(told.calls[0].key.name, after)
    assert told.calls[0].id == ToolId.parse("docs/search")


def test_a_name_that_a_ledger_keeps_is_used_in_every_dialect() -> None:
    ledger = Ledger.memory()
    then = chat_names(ledger=ledger)
    now = project(Catalog.of(SEARCH, aliases={}), "anthropic", ledger=ledger)

    told = rewrite(recorded(then), "openai_chat", "anthropic", then, now)

    assert [one.key.name for one in told.calls] == [then[id] for id in IDS]


@pytest.mark.parametrize("name", ["made up", "查询", "x" * 300, "gone_0123456789_x", "docs.search!!"])
def test_a_name_that_a_model_made_up_becomes_legal_and_is_told(name: str) -> None:
    names = project(Catalog.of(WEATHER), "bedrock-converse")
    history = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": None, "tool_calls": [call("c", name)]},
        {"role": "tool", "tool_call_id": "c", "content": "[tool error] there is no such tool"},
    ]

    told = rewrite(history, "openai_chat", "bedrock", names, names)

    accepted(BENCHES["bedrock"], told)
    assert told.calls[0].id is None
    assert [one.code for one in told.notices] == ["unknown"]
    assert told.notices[0].where == "messages[1].tool_calls[0]"


def test_two_made_up_names_stay_two() -> None:
    names = chat_names()
    history = [{"role": "assistant", "tool_calls": [call("a", "多"), call("b", "少")]}]

    told = rewrite(history, "openai_chat", "openai_chat", names, names)

    assert len({one.key.name for one in told.calls}) == 2

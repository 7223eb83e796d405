"""The gateway's own tools have names that no server's tool has, had, or will have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from truename import Catalog, Ledger, dialects, project
from truename.gateway.views.own_tools import OwnNames, definitions, held_names, meant, own_names

if TYPE_CHECKING:
    from pathlib import Path

OWN = ["search_tools", "describe_tools", "call_tool"]


def test_our_names_are_held_and_never_a_servers() -> None:
    ledger = Ledger.memory()
    first = project(Catalog.of("files/list"), "openai", style="on-conflict", ledger=ledger)
    assert held_names(first) is None
    assert own_names(first) == held_names(first) == tuple(OWN)
    # A server comes that has tools of these names: it gets others, and ours stay.
    later = Catalog.of("files/list", "mcp/search_tools", "mcp/call_tool", "mcp/list")
    names = project(later, "openai", style="on-conflict", ledger=ledger)
    assert own_names(names) == tuple(OWN)
    assert not set(OWN) & set(names.values())
    assert names["mcp@1/search_tools@1"] == "mcp_search_tools"


def test_where_a_server_has_such_a_name_ours_is_another() -> None:
    ledger = Ledger.memory()
    catalog = Catalog.of("mcp/search_tools", "mcp/Call-Tool", "gateway/call_tool", "x/describe_tools")
    names = project(catalog, "openai", style="on-conflict", ledger=ledger)
    before = dict(names)
    own = own_names(names)
    assert own == own_names(project(catalog, "openai", style="on-conflict", ledger=ledger))
    assert len(set(own)) == 3
    assert not set(own) & set(names.values())
    assert dict(project(catalog, "openai", style="on-conflict", ledger=ledger)) == before


def test_no_number_of_tools_takes_all_names_from_us() -> None:
    greedy = ["x/call_tool", "x/gateway_call_tool", *(f"x/call_tool_{number}" for number in range(2, 2_000))]
    names = project(Catalog.of(*greedy), "openai", style="on-conflict", ledger=Ledger.memory())
    assert own_names(names).call == "call_tool_2000"


def test_a_server_that_calls_itself_like_the_gateway_takes_nothing() -> None:
    ledger = Ledger.memory()
    names = project(Catalog.of("files/list"), "openai", style="on-conflict", ledger=ledger)
    own = own_names(names)
    listed = {"truename-gateway": [{"name": word} for word in OWN]}
    catalog = Catalog.from_mcp(listed, bound=ledger.bindings(), strict=False)
    table = project(catalog, "openai", style="on-conflict", ledger=ledger)
    assert own_names(table) == own
    assert not set(own) & set(table.values())
    # One that was there before has the ids; ours are counted up.
    before = project(catalog, "openai", style="on-conflict", ledger=Ledger.memory())
    assert not set(own_names(before)) & set(before.values())
    assert own_names(before) == own_names(before)


def test_our_names_are_remembered_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    names = project(Catalog.of("x/search_tools"), "openai", style="on-conflict", ledger=Ledger.open(path))
    own = own_names(names)
    again = project(Catalog.of("y/call_tool"), "openai", style="on-conflict", ledger=Ledger.open(path))
    assert own_names(again) == own
    readonly = project(
        Catalog.of("y/call_tool"), "gemini", style="on-conflict", ledger=Ledger.open(path, readonly=True)
    )
    assert not set(own_names(readonly)) & set(readonly.values())


def test_names_are_chosen_without_a_ledger_too() -> None:
    names = project(Catalog.of("mcp/search_tools"), "openai", style="on-conflict")
    assert own_names(names) == OwnNames("gateway_search_tools", "describe_tools", "call_tool")
    assert held_names(names) is None


@pytest.mark.parametrize("name", [name for name in dialects.names() if "on-conflict" in dialects.get(name).styles])
def test_each_client_has_legal_names_for_them(name: str) -> None:
    table = project(Catalog.of("files/list"), name, style="on-conflict")
    assert [reason for own in own_names(table) for reason in table.dialect.check(own)] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("call_tool", "call_tool"),
        ("mcp__truename__call_tool", "call_tool"),
        ("truename-gateway/search_tools", "search_tools"),
        ("truename-gateway@1/describe_tools@1", "describe_tools"),
        ("truename-gateway@2/describe_tools@1", "truename-gateway@2/describe_tools@1"),
        ("Call_Tool", "Call_Tool"),
        ("list", "list"),
        ("", ""),
    ],
)
def test_a_name_that_comes_back_framed_or_as_an_id_is_understood(text: str, expected: str) -> None:
    table = project(Catalog.of("files/list"), "openai", style="on-conflict", ledger=Ledger.memory())
    own = own_names(table)
    assert meant(text, own, table) == expected
    assert [tool["canonical_name"] for tool in definitions(own, table)] == [f"truename-gateway@1/{w}@1" for w in OWN]


def test_each_scope_has_them_also_where_a_server_took_the_ids() -> None:
    ledger = Ledger.memory()
    catalog = Catalog.from_mcp({"truename-gateway": [{"name": "search_tools"}], "x": [{"name": "one"}]})
    shared = project(catalog, "openai", style="on-conflict", ledger=ledger)
    alone = project(catalog.only("x"), "own", style="on-conflict", ledger=ledger.scoped("only/x"))
    assert own_names(alone) == tuple(OWN)
    assert own_names(shared).search == "gateway_search_tools"

"""LiteLLM: display names by server, through its API, and what it cannot show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.clients.exporters.lists import exported, sought, table
from truename.catalog import Catalog
from truename.clients.exporters import GATEWAYS, FormerValues, GatewayApi
from truename.errors import ConfigError
from truename.naming import project

if TYPE_CHECKING:
    from truename.clients.exporters import RestorePlan

PATH = "/v1/mcp/server"
LISTS = {"desk": ["search", "getTicket"], "notes-mcp": ["search"]}


def api() -> GatewayApi:
    found = GATEWAYS["litellm"].api
    assert found is not None
    return found


def row(name: str, id: str, **more: Any) -> dict[str, Any]:
    return {"server_id": id, "server_name": name, "alias": name, "tool_name_to_display_name": {}, **more}


def planned(rows: list[dict[str, Any]], lists: dict[str, list[str]] | None = None) -> Any:
    names = table(lists or LISTS)
    state = api().state({PATH: rows}, sought(names))
    export = exported("litellm", names, known_as=state.known_as)
    return api().plan(export, state)


def test_each_name_is_the_whole_name_of_the_table() -> None:
    export = exported("litellm", table(LISTS))

    assert {one.listed for one in export.tools} == set(table(LISTS).values())
    assert export.values == {
        "desk": {"search": "desk_search", "getTicket": "desk_get_ticket"},
        "notes-mcp": {"search": "notes_search"},
    }


def test_one_request_sets_all_names_of_a_server_and_finds_it_by_its_spelling() -> None:
    plan = planned([row("desk", "1"), row("notes_mcp", "2")])

    assert [(one.method, one.path, one.body) for one in plan.requests] == [
        (
            "PUT",
            PATH,
            {"server_id": "1", "tool_name_to_display_name": {"search": "desk_search", "getTicket": "desk_get_ticket"}},
        ),
        ("PUT", PATH, {"server_id": "2", "tool_name_to_display_name": {"search": "notes_search"}}),
    ]
    assert plan.former.values == {"1": {"search": None, "getTicket": None}, "2": {"search": None}}
    assert plan.replaced == ()


def test_nothing_is_sent_for_names_that_are_set() -> None:
    present = {"search": "desk_search", "getTicket": "desk_get_ticket"}
    plan = planned([row("desk", "1", tool_name_to_display_name=present), row("notes_mcp", "2")])

    assert [one.what for one in plan.requests] == ["notes-mcp"]


def test_a_display_name_of_a_tool_that_the_export_lacks_stays_unless_it_is_a_name_of_the_export() -> None:
    present = {"old": "my_own", "stolen": "notes_search"}
    plan = planned([row("desk", "1", tool_name_to_display_name=present), row("notes_mcp", "2")])

    assert plan.requests[0].body["tool_name_to_display_name"] == {
        "old": "my_own",
        "search": "desk_search",
        "getTicket": "desk_get_ticket",
    }
    assert plan.former.values["1"] == {"stolen": "notes_search", "search": None, "getTicket": None}
    assert [(one.tool, one.former, one.written) for one in plan.replaced] == [("stolen", "notes_search", None)]


def test_a_server_that_is_missing_ambiguous_or_in_the_file_is_listed() -> None:
    missing = planned([row("desk", "1")])
    twice = planned([row("desk", "1"), row("notes_mcp", "2"), row("notes.mcp", "3")])
    in_file = planned([row("desk", "1"), row("notes_mcp", "2", is_config=True)])

    assert [(one.server, one.tool) for one in missing.left] == [("notes-mcp", "")]
    assert [one.server for one in twice.left] == ["notes-mcp"]
    assert "its file" in in_file.left[0].reason or "LiteLLM's file" in in_file.left[0].reason
    assert [one.what for one in in_file.requests] == ["desk"]


def test_a_server_is_found_by_its_url_or_by_the_proposed_name_if_its_key_is_unknown_there() -> None:
    names = table(LISTS)
    rows = [row("one", "1", url="http://127.0.0.1/desk"), row("notes", "2", url="http://127.0.0.1/notes")]
    state = api().state({PATH: rows}, sought(names, desk="http://127.0.0.1/desk"))

    assert {key: one["server_id"] for key, one in state.matched.items()} == {"desk": "1", "notes-mcp": "2"}


def test_another_server_that_shows_a_name_of_the_export_is_named() -> None:
    other = row("other", "9", tool_name_to_display_name={"x": "desk_search"})
    plan = planned([other, row("desk", "1"), row("notes_mcp", "2")])

    assert [(one.server, one.tool, one.name) for one in plan.left] == [("desk", "search", "desk_search")]
    assert "first one wins" in plan.left[0].reason


def test_a_name_that_its_api_refuses_is_listed() -> None:
    names = project(Catalog.from_mcp({"desk": ["search"]}), "native", style="canonical")
    export = exported("litellm", names)

    assert [(one.tool, one.name) for one in export.left] == [("search", "desk@1/search@1")]
    assert export.tools == ()


def test_undoing_restores_the_former_names_of_servers_that_are_still_there() -> None:
    undone = restored({"search": "desk_search"}, {"search": "mine"}, {"search": "desk_search"})

    assert [one.body for one in undone.requests] == [
        {"server_id": "1", "tool_name_to_display_name": {"search": "mine"}}
    ]
    assert [one for one in undone.kept if "'gone' is not there" in one]


@pytest.mark.parametrize("name", ["", None, 7])
def test_a_display_name_that_is_none_is_restored_as_none(name: object) -> None:
    plan = planned([row("desk", "1", tool_name_to_display_name={"search": name})], {"desk": ["search"]})

    assert plan.former.values == {"1": {"search": None}}
    assert plan.replaced == ()


def test_undoing_leaves_names_that_were_given_since() -> None:
    present = {"search": "by_hand", "getTicket": "desk_get_ticket", "later": "new_name"}
    undone = restored(
        present, {"search": "mine", "getTicket": None}, {"search": "desk_search", "getTicket": "desk_get_ticket"}
    )

    assert [one.body["tool_name_to_display_name"] for one in undone.requests] == [
        {"search": "by_hand", "later": "new_name"}
    ]
    assert [one for one in undone.kept if "'search'" in one and "'by_hand'" in one]


def test_a_server_there_is_given_to_one_server_of_the_export_only() -> None:
    lists = {"desk": ["search"], "Desk_": ["find"], "DESK": ["ask"]}
    exact = planned([row("desk", "1")], lists)
    neither = planned([row("d.e.s.k", "1", url="http://x")], lists)

    assert [(one.what, one.body["server_id"]) for one in exact.requests] == [("desk", "1")]
    assert sorted(one.server for one in exact.left) == ["DESK", "Desk_"]
    assert neither.requests == ()


def test_servers_that_share_an_address_are_found_by_their_names_only() -> None:
    names = table({"desk": ["search"], "notes": ["search"]})
    rows = [row("one", "1", url="http://127.0.0.1/all")]
    state = api().state({PATH: rows}, sought(names, desk="http://127.0.0.1/all", notes="http://127.0.0.1/all"))

    assert state.matched == {}


def restored(present: dict[str, str], former: dict[str, str | None], written: dict[str, str | None]) -> RestorePlan:
    state = api().state({PATH: [row("desk", "1", tool_name_to_display_name=present)]}, ())
    values: dict[str, dict[str, str | None]] = {"1": former, "gone": {"a": "b"}}
    return api().undo(FormerValues(gateway="litellm", values=values, written={"1": written}), state)


@pytest.mark.parametrize("answer", [None, {}, "x", [1], [None], {"detail": "no"}])
def test_an_answer_that_is_no_list_of_objects_is_an_error(answer: object) -> None:
    with pytest.raises(ConfigError):
        api().state({PATH: answer}, ())


@pytest.mark.parametrize("id", [None, "", 7, "..", ".", "a\nb", "x" * 201, ["1"]])
def test_an_id_that_is_no_short_text_is_an_error(id: object) -> None:
    with pytest.raises(ConfigError):
        planned([{**row("desk", ""), "server_id": id}, row("notes_mcp", "2")])

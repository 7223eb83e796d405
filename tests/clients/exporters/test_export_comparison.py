"""A gateway's list beside an export: what is missing, other, extra, and listed twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.clients.exporters.lists import exported, table
from truename.clients.exporters import compare

if TYPE_CHECKING:
    from truename.clients.exporters import ListComparison

LISTS = {
    "desk": [
        {"name": "search", "description": "Search  tickets."},
        {"name": "getTicket", "description": "One ticket."},
    ],
    "notes": [{"name": "search", "description": "Search notes."}],
}
AS_EXPORTED = [
    {"name": "desk_search", "description": "Search tickets."},
    {"name": "desk_get_ticket", "description": "One ticket."},
    {"name": "notes_search", "description": "Search notes."},
]


def compared(listed: list[Any]) -> ListComparison:
    names = table(LISTS)
    return compare(exported("fastmcp", names), names, listed)


def test_a_list_as_exported_is_equal_in_any_order_and_without_descriptions() -> None:
    assert compared(AS_EXPORTED).is_equal
    assert compared([{"name": one["name"]} for one in reversed(AS_EXPORTED)]).is_equal
    assert compared(AS_EXPORTED).matching == 3


def test_a_tool_that_is_not_listed_is_missing_and_its_own_name_is_extra_and_explained() -> None:
    found = compared([AS_EXPORTED[0], {"name": "desk_getTicket"}, AS_EXPORTED[2], {"name": "other"}])

    assert [one.listed for one in found.missing] == ["desk_get_ticket"]
    assert [(name, tool and tool.tool) for name, tool in found.extra] == [
        ("desk_getTicket", "getTicket"),
        ("other", None),
    ]
    assert (found.matching, found.is_equal) == (2, False)


def test_a_name_with_the_description_of_another_tool_is_other() -> None:
    swapped = [AS_EXPORTED[0] | {"name": "notes_search"}, AS_EXPORTED[2] | {"name": "desk_search"}, AS_EXPORTED[1]]
    found = compared(swapped)

    assert {one.tool.listed: one.described.listed for one in found.other} == {
        "notes_search": "desk_search",
        "desk_search": "notes_search",
    }
    assert (found.matching, found.is_equal) == (1, False)


def test_a_description_that_the_gateway_changed_says_nothing_about_the_tool() -> None:
    assert compared([one | {"description": f"{one['description']} (by the gateway)"} for one in AS_EXPORTED]).is_equal


def with_parameters(description: str, *parameters: str, name: str = "search") -> dict[str, Any]:
    schema = {"type": "object", "properties": {one: {"type": "string"} for one in parameters}}
    return {"name": name, "description": description, "inputSchema": schema}


def test_a_name_with_neither_the_description_nor_the_parameters_of_its_tool_is_unknown() -> None:
    names = table({"desk": [with_parameters("Search tickets.", "text")]})
    export = exported("litellm", names)
    found = compare(export, names, [with_parameters("Delete all.", "really", name="desk_search")])
    reworded = compare(export, names, [with_parameters("Search them.", "text", name="desk_search")])
    extended = compare(export, names, [with_parameters("Search tickets.", "text", "limit", name="desk_search")])

    assert ([one.listed for one in found.unknown], found.matching, found.is_equal) == (["desk_search"], 0, False)
    assert reworded.is_equal
    assert extended.is_equal


def test_of_tools_with_one_description_the_parameters_tell_which_it_is() -> None:
    names = table({"desk": [with_parameters("Search.", "ticket")], "notes": [with_parameters("Search.", "note")]})
    listed = [
        with_parameters("Search.", "note", name="desk_search"),
        with_parameters("Search.", "ticket", name="notes_search"),
    ]
    swapped = compare(exported("litellm", names), names, listed)

    assert [(one.tool.listed, one.described.listed) for one in swapped.other] == [
        ("desk_search", "notes_search"),
        ("notes_search", "desk_search"),
    ]


def test_a_name_that_is_listed_twice_is_named() -> None:
    assert compared([*AS_EXPORTED, AS_EXPORTED[0]]).twice == ("desk_search",)


@pytest.mark.parametrize("entry", [None, 7, "desk_search", {}, {"name": 3}, {"name": ["desk_search"]}, []])
def test_an_entry_that_is_no_tool_is_extra_and_harms_nothing(entry: object) -> None:
    found = compared([*AS_EXPORTED, entry])

    assert (found.matching, found.extra) == (3, (("", None),))

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


def test_a_name_that_is_listed_twice_is_named() -> None:
    assert compared([*AS_EXPORTED, AS_EXPORTED[0]]).twice == ("desk_search",)


@pytest.mark.parametrize("entry", [None, 7, "desk_search", {}, {"name": 3}, {"name": ["desk_search"]}, []])
def test_an_entry_that_is_no_tool_is_extra_and_harms_nothing(entry: object) -> None:
    found = compared([*AS_EXPORTED, entry])

    assert (found.matching, found.extra) == (3, (("", None),))

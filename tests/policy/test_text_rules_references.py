"""Names that lead nowhere, and names of other things."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.policy.text_examples import declared
from truename.conventions.convention import Convention
from truename.conventions.rules.check import LintContext
from truename.conventions.rules.references import CHECKS

if TYPE_CHECKING:
    from truename.conventions.declarations import Declaration

LIST = declared("list_tickets", "Lists tickets.")


def found(text: str, *others: Declaration, peers: tuple[Declaration, ...] = (), **more: Any) -> list[tuple[str, str]]:
    material = LintContext((declared("close_ticket", text, **more), LIST, *others), Convention(), peers)
    return [(one.fact, one.remedy) for check in CHECKS for one in check.find(material)]


@pytest.mark.parametrize(
    "text",
    [
        "Call get_tickets_list first.",
        "Call `get_tickets_list` first.",
        "Use the get_tickets_list tool to find it.",
        "Use the 'get_tickets_list' tool.",
        "Find the id by calling get_tickets_list().",
        "Run getTicketsList to find it.",
        "Use the\nget-tickets-list tool.",
        "The id from get_tickets_list.",
        "See the `get_tickets_list` tool.",
        "Use tickets_overview tool.",
    ],
)
def test_a_tool_that_is_not_there_is_reported(text: str) -> None:
    [(fact, _)] = found(text)

    assert fact.startswith("The description of 'close_ticket' mentions the tool '"), fact
    assert fact.endswith("', which does not exist.")


def test_the_nearest_name_of_the_same_server_is_told() -> None:
    assert found("Call list_ticket first.")[0][1] == "Did you mean 'list_tickets'?"
    assert found("Call run_zebra first.")[0][1] == "Write the name of an existing tool."


@pytest.mark.parametrize(
    "text",
    [
        "Call list_tickets first.",
        "Call listTickets first.",
        "Call list-tickets first.",
        "Use close_ticket to close one.",
        "Use ticket_id of the list.",
        "Use read-only access.",
        "Use set_at_once as the value.",
        "Use the get_all operation.",
        "See the `list_all` parameter.",
        "Run list_all.sh first.",
        "Use Get-ChildItem in a shell.",
        "Use add_note: it is short.",
        "Use created_at or updated_at.",
        "Lists what get_ticket_list gave.",
        "Use\n\nget_all",
    ],
)
def test_what_is_there_or_is_no_tool_is_not_reported(text: str) -> None:
    schema = {"properties": {"ticket_id": {}, "set_at_once": {"type": "boolean"}}}

    assert found(text, inputSchema=schema) == []


def test_names_of_parameters_and_values_of_the_same_server_are_no_tools() -> None:
    schema = {"properties": {"method": {"enum": ["get_comments", "get_diff"]}, "set_labels": {}}}
    other = declared("read_pull", "Reads.", inputSchema=schema)

    assert found("Use get_comments or use set_labels.", other) == []
    assert len(found("Use get_comments or use set_labels.")) == 2


def test_a_tool_of_another_server_is_not_dead() -> None:
    peer = declared("get_tickets_list", "Lists.", "other")

    assert found("Call get_tickets_list first.", peers=(peer,)) == []


def test_one_name_is_told_once_however_often_it_stands_there() -> None:
    assert len(found("Call get_tickets_list first. Then call get_tickets_list again, or getTicketsList.")) == 1

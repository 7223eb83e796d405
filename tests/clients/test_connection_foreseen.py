"""What a client would still lose at the gateway is told before it is connected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.clients.connecting import Home
from truename.clients.connection_notes import predict_losses

if TYPE_CHECKING:
    from pathlib import Path

NAMESAKES = {"github": ["search", "create"], "jira": ["search", "create", "move"]}
JOINS = {"a": ["b__c"], "a__b": ["c"]}


@pytest.mark.parametrize(
    ("client", "servers", "told"),
    [
        ("continue-cli", NAMESAKES, "cannot call 2 of 5 tools this way: 'search' of 'jira' (a call runs 'search' of"),
        ("continue", NAMESAKES, "Continue CLI cannot call 2 of 5 tools"),
        ("claude-code", JOINS, "cannot call 2 of 2 tools this way: 'b__c' of 'a' (a call may run 'c' of 'a__b'), "),
        (
            "cursor",
            NAMESAKES,
            "4 of 5 tools share a name with another tool, and it is unknown which one a call runs ('search' of ",
        ),
        ("codex-cli", JOINS, "Codex (code mode) cannot call 1 of 2 tools"),
        ("cline", JOINS, "cannot call 1 of 2 tools this way: 'b__c' of 'a' (a call runs 'c' of 'a__b')"),
    ],
)
def test_tools_that_a_client_would_lose_are_counted_and_named(client: str, servers: Any, told: str) -> None:
    (found,) = (one for one in predict_losses(client, servers) if one.count)

    assert told in found.text


@pytest.mark.parametrize(
    ("client", "servers"),
    [
        ("claude-code", NAMESAKES),
        ("continue", JOINS),
        ("universal", NAMESAKES),
        ("continue", {}),
    ],
)
def test_nothing_is_said_where_nothing_is_lost_or_known(client: str, servers: Any) -> None:
    assert not sum(one.count for one in predict_losses(client, servers))


def test_a_long_list_is_told_in_part() -> None:
    tools = [f"tool_{number}" for number in range(9)]

    (found,) = predict_losses("continue-cli", {"a": tools, "b": tools})

    assert "cannot call 9 of 18 tools" in found.text
    assert found.text.endswith(", and 5 more")


def test_connecting_tells_it_also_when_it_is_done_already(tmp_path: Path) -> None:
    home = Home(tmp_path)
    listed = {"a": {"b__c": "b__c"}, "a__b": {"c": "c"}}
    home.gateway("a", "a__b")

    plan = home.plan(names=listed)
    home.connect(names=listed)
    again = home.plan(names=listed)

    assert [note.fact for note in plan.notes if note.kind == "names"] == [
        note.fact for note in again.notes if note.kind == "names"
    ]
    assert len([note for note in plan.notes if "2 of 2 tools" in note.fact]) == 1


def test_it_is_said_when_no_names_are_known(tmp_path: Path) -> None:
    home = Home(tmp_path)

    plan = home.plan(names={})

    assert any(
        "Could not list the tools of 'github'" in note.fact and "truename serve" in note.advice for note in plan.notes
    )

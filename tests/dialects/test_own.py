"""What a server's own names must be to be shown as they are."""

from __future__ import annotations

import pytest

from truename import dialects

KEPT = ["createPage", "get-weather", "list_items", "with__double", "a" * 46]
CHANGED = ["fs.list", "1digit", "_lead", "constructor", "a" * 47, "天気"]


@pytest.mark.parametrize("name", KEPT)
def test_a_name_that_every_client_lets_through_is_legal(name: str) -> None:
    assert not dialects.own().check(name)


@pytest.mark.parametrize("name", CHANGED)
def test_a_name_that_some_client_would_not_let_through_is_not(name: str) -> None:
    assert dialects.own().check(name)


@pytest.mark.parametrize(
    ("client", "server", "room"),
    [
        ("claude-code", "github", 115),
        ("vscode", "github", 46),
        ("gemini-cli", "a-long-server", 45),
        ("fastmcp", "x", 128),
    ],
)
def test_one_client_s_own_room_under_this_key_counts(client: str, server: str, room: int) -> None:
    assert dialects.own(client, server).max_length == room


def test_words_that_another_client_reserves_are_no_matter_to_one_that_is_known() -> None:
    assert not dialects.own("claude-code", "files").check("constructor")
    assert dialects.own("qwen-code", "files").check("constructor")

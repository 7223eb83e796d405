"""Names of MCP tools as openai-agents shows them, and that a name which was shown stays."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.compat.tools import tool
from truename.compat.openai_agents import AgentsError
from truename.compat.openai_mcp import (
    get_mcp_server_log_name,
    held_by,
    prefixed_names,
    reserved_names,
    unprefixed_names,
)

SERVERS = st.lists(
    st.tuples(
        st.sampled_from(["foo", "foo!", "docs", "", "天气", "a" * 60, "a__b", "a"]),
        st.lists(st.sampled_from(["create", "create!", "c", "b__c", "检索", "t" * 70]), max_size=3),
    ),
    max_size=4,
)


def publics(servers: list[tuple[str, list[str]]], **words: object) -> list[str]:
    return [name.public for name in prefixed_names(servers, **words)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("docs", "docs"),
        ("sse: https://u:p@h:8443/p?token=x#f", "sse: https://h:8443/p"),
        ("https://[::1]:80/p", "https://[::1]:80/p"),
        ("https://[::1/p", "<invalid-url>"),
        ("sse: https://h:99999999/p", "sse: <invalid-url>"),
        ("sse: [x", "sse: [x"),
        ("//[x", "//[x"),
        ("streamable-http: http://a b/", "streamable-http: <invalid-url>"),
        ("ftp://u:p@h/", "ftp://u:p@h/"),
    ],
)
def test_a_server_is_shown_without_what_is_secret_in_its_address(name: str, shown: str) -> None:
    assert get_mcp_server_log_name(name) == shown


def test_a_name_that_was_shown_stays_when_a_server_joins() -> None:
    alone = [("foo", ["create"])]
    shown = prefixed_names(alone)
    both = [("foo!", ["create"]), *alone]

    assert publics(alone) == ["mcp_foo__create"]
    assert publics(both)[1] != "mcp_foo__create"
    assert publics(both, held=held_by(alone, shown))[1] == "mcp_foo__create"


@given(SERVERS, SERVERS)
def test_held_names_stay_whoever_joins_and_no_name_is_given_twice(
    first: list[tuple[str, list[str]]], more: list[tuple[str, list[str]]]
) -> None:
    shown = prefixed_names(first)
    held = held_by(first, shown)
    then = prefixed_names([*first, *more], held=held)

    assert then[: len(shown)] == shown
    assert len({name.public for name in then}) == len(then)
    assert all(1 <= len(name.public) <= 64 for name in then)


def test_no_mcp_tool_gets_the_name_of_a_custom_tool() -> None:
    reserved = reserved_names([tool("mcp_docs__search", "custom")], [tool("transfer_to_a", "handoff")])

    assert reserved == {"mcp_docs__search", "transfer_to_a"}
    assert publics([("docs", ["search"])], reserved=reserved) == ["mcp_docs__search_15de6fa1"]


def test_a_name_that_one_server_lists_twice_is_one_tool(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert unprefixed_names([("a", ["x", "y", "x"])]) == ("x", "y")

    assert caplog.messages == ["Server 'a' lists 'x' more than once; it counts once"]


def test_a_name_of_two_servers_is_an_error_without_prefixes() -> None:
    with pytest.raises(AgentsError) as caught:
        unprefixed_names([("a", ["x", "y"]), ("b", ["y", "x"])])

    assert (caught.value.code, caught.value.other) == ("duplicate_mcp_tool", "'x', 'y'")

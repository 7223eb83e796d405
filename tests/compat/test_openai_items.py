"""A call as every place that shows one sees it."""

from __future__ import annotations

import pytest

from tests.compat.tools import call, payload, served, tool
from truename.compat.openai_agents import AgentsError
from truename.compat.openai_calls import AgentCall
from truename.identity import ToolNames

DEFERRED = call(tool("?x"))


def test_the_synthetic_namespace_is_shown_everywhere_but_to_the_tool() -> None:
    assert DEFERRED.tool_namespace == "x"
    assert DEFERRED.raw["namespace"] == "x"
    assert DEFERRED.trace == {"label": "x", "name": "x", "namespace": "x", "call_id": "1"}
    assert DEFERRED.for_tool == payload()


def test_a_real_namespace_is_shown_to_the_tool_too() -> None:
    spaced = call(tool("n/x"))

    assert spaced.qualified_name == "n.x"
    assert spaced.for_tool == spaced.raw


def test_a_call_whose_tool_is_not_known_is_given_as_it_came() -> None:
    raw = payload(namespace="x")

    assert AgentCall(raw).for_tool is raw


@pytest.mark.parametrize(
    ("raw", "keys"),
    [
        (payload("x"), ("x",)),
        (payload("x", namespace="n"), ("n.x",)),
        ({"type": "shell_call", "call_id": "c"}, ("shell_call",)),
        ({"type": "custom_tool_call", "name": "x", "call_id": "c"}, ("x",)),
        ({}, ("unknown_tool",)),
    ],
)
def test_every_item_is_filed_somewhere(raw: dict[str, object], keys: tuple[str, ...]) -> None:
    assert AgentCall(raw).approval_keys == keys


def test_the_tools_id_comes_from_its_origin_and_its_key() -> None:
    ids = {
        str(one.policy_call().id)
        for one in (
            call(tool("x")),
            call(tool("n/x")),
            call(tool("n.x")),
            call(tool("?x")),
            call(tool("X")),
            call(tool("x", "handoff")),
            call(served("docs", "x")),
            call(served("Docs", "x")),
            call(served("docs", "y", public="x")),
            AgentCall({"type": "custom_tool_call", "name": "x", "call_id": "1", "input": ""}),
            AgentCall(
                {"type": "mcp_approval_request", "name": "x", "id": "1", "server_label": "docs", "arguments": ""}
            ),
        )
    }

    assert len(ids) == 11


@pytest.mark.parametrize(
    ("server", "other"),
    [
        ("hosted docs", AgentCall({**payload("x"), "type": "mcp_approval_request", "id": "1", "server_label": "docs"})),
        ("agent bare", call(tool("x"))),
        ("agent namespaced n", call(tool("n/x"))),
        ("item custom_tool_call", AgentCall({"type": "custom_tool_call", "name": "x", "call_id": "1", "input": ""})),
    ],
)
def test_no_server_can_be_named_so_that_it_is_taken_for_something_else(server: str, other: AgentCall) -> None:
    theirs = other.policy_call()
    marked = theirs.origin.server

    for name in (server, marked.replace("\x1f", " ").strip()):
        ours = call(served(name, "x")).policy_call()
        assert (ours.id, ours.origin.server_id) != (theirs.id, theirs.origin.server_id)
    for bad in (served(marked, "x"), served("docs", "x", id=marked)):
        with pytest.raises(AgentsError) as caught:
            call(bad).policy_call()
        assert caught.value.code == "origin_invalid"


def test_the_call_that_policy_sees_has_the_agent_the_key_and_the_arguments() -> None:
    seen = call(tool("n/x"), "7", '{"a": 1}', agent="A").policy_call()

    assert (seen.caller.agent, seen.call_id, seen.arguments, seen.wire_name) == ("A", "7", {"a": 1}, "n.x")
    assert seen.key == ToolNames(name="x", namespace="n").lookup_key

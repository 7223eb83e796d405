"""What openai-agents sends to the Responses API of a set of tools."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.compat.tools import theirs, tool
from truename.compat.openai_agents import AgentsError, AgentTool
from truename.compat.openai_responses import (
    ensure_function_tool_supports_flat_backend,
    responses_tool_choice,
    responses_tools,
)
from truename.errors import InvalidName, UnknownTool

SEARCH = tool("tool_search", "hosted")


def test_a_namespace_stands_where_its_first_tool_stood_and_handoffs_come_last() -> None:
    tools = [tool("n/x"), tool("y", "custom"), tool("n/?z"), SEARCH]
    sent = responses_tools(tools, [tool("transfer_to_a", "handoff")])

    assert sent == [
        {
            "type": "namespace",
            "name": "n",
            "description": "",
            "tools": [
                {"type": "function", "name": "x"},
                {"type": "function", "name": "z", "defer_loading": True},
            ],
        },
        {"type": "custom", "name": "y"},
        {"type": "tool_search"},
        {"type": "function", "name": "transfer_to_a"},
    ]


def test_the_definition_of_a_tool_is_sent_with_it() -> None:
    assert responses_tools([theirs("x")]) == [
        {"type": "function", "name": "x", "description": "d", "parameters": {"type": "object"}}
    ]


@pytest.mark.parametrize(
    ("tools", "code"),
    [
        ([SEARCH, SEARCH, tool("?x")], "multiple_tool_search"),
        ([SEARCH, tool("x")], "tool_search_without_surface"),
        ([tool("?x")], "tool_search_missing"),
        ([tool("n/?x")], "tool_search_missing"),
        ([replace(tool("n/x"), space="one"), replace(tool("n/y"), space="two")], "namespace_description_mismatch"),
        ([tool("n/x"), tool("n.x")], "ambiguous_qualified_name"),
    ],
)
def test_what_can_not_be_said_there_is_refused(tools: list[AgentTool], code: str) -> None:
    with pytest.raises(AgentsError) as caught:
        responses_tools(tools)

    assert caught.value.code == code


@pytest.mark.parametrize("bad", [tool("my tool!"), tool("x" * 200), tool("my ns/x"), tool("x.y", "custom"), tool("")])
def test_a_name_that_the_provider_refuses_is_not_sent(bad: AgentTool) -> None:
    with pytest.raises(InvalidName) as caught:
        responses_tools([tool("good"), bad])

    assert caught.value.name in {bad.names.name, bad.names.namespace}


@pytest.mark.parametrize(
    ("choice", "sent"),
    [
        ("auto", "auto"),
        ("none", "none"),
        ("required", "required"),
        ("file_search", {"type": "file_search"}),
        ("x", {"type": "function", "name": "x"}),
        ("n.y", {"type": "function", "name": "n.y"}),
        ("transfer_to_a", {"type": "function", "name": "transfer_to_a"}),
    ],
)
def test_a_choice_of_what_can_be_called_is_sent(choice: str, sent: object) -> None:
    tools = [tool("x"), tool("n/y"), tool("?z"), SEARCH]

    assert responses_tool_choice(choice, tools, [tool("transfer_to_a", "handoff")]) == sent


@pytest.mark.parametrize(
    ("choice", "tools", "code"),
    [
        ("y", [tool("n/y")], "tool_choice_namespace"),
        ("n", [tool("n/y")], "tool_choice_namespace"),
        ("n.x", [tool("n/y"), tool("m/n.x"), tool("n/x")], "tool_choice_namespace"),
        ("z", [tool("?z"), SEARCH], "tool_choice_deferred"),
        ("tool_search", [tool("?z"), SEARCH], "tool_choice_tool_search"),
        ("tool_search", [tool("z")], "tool_choice_tool_search"),
        ("required", [tool("?z")], "tool_choice_required_deferred"),
    ],
)
def test_a_choice_that_the_api_has_no_way_to_make_is_refused(choice: str, tools: list[AgentTool], code: str) -> None:
    with pytest.raises(AgentsError) as caught:
        responses_tool_choice(choice, tools)

    assert caught.value.code == code


def test_a_tool_that_is_really_called_tool_search_can_be_chosen() -> None:
    assert responses_tool_choice("tool_search", [tool("tool_search"), SEARCH, tool("?z")]) == {
        "type": "function",
        "name": "tool_search",
    }


def test_a_choice_that_is_no_tool_is_not_sent() -> None:
    with pytest.raises(UnknownTool) as caught:
        responses_tool_choice("serch", [tool("search"), tool("fetch")])

    assert caught.value.suggestions[0] == "search"


def test_a_backend_without_namespaces_refuses_what_needs_them() -> None:
    ensure_function_tool_supports_flat_backend(tool("x"), "Chat Completions")
    for needing in (tool("n/x"), tool("?x")):
        with pytest.raises(AgentsError, match="Chat Completions"):
            ensure_function_tool_supports_flat_backend(needing, "Chat Completions")

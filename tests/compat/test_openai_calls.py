"""Ids and fingerprints of calls as openai-agents has them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.compat.tools import payload
from truename.compat.openai_agents import AgentsError
from truename.compat.openai_calls import (
    arguments_of,
    get_hosted_mcp_approval_request_identity,
    get_tool_approval_item_call_id,
    get_tool_call_id,
    tool_invocation_call_id,
    tool_invocation_identity,
)
from truename.identity import LookupKey

WRAPPED = {"type": "hosted_tool_call", "call_id": "k1", "id": "o1", "name": "x"}
REQUEST = {"type": "mcp_approval_request", "server_label": "s", "arguments": "{}"}


def identity(item: Any, **words: Any) -> Any:
    found = tool_invocation_identity(item, **words)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("request_", "id", "name"),
    [
        ({**REQUEST, "id": "r1", "name": "y"}, "r1", "y"),
        (REQUEST, "k1", "x"),
        ({**REQUEST, "id": 7}, None, "x"),
        ({**REQUEST, "id": ""}, None, "x"),
    ],
)
def test_a_wrapped_request_has_its_own_id_or_if_it_has_none_the_wrappers(
    request_: dict[str, Any], id: str | None, name: str
) -> None:
    item = {**WRAPPED, "provider_data": request_}
    found = get_hosted_mcp_approval_request_identity(item)

    assert found is not None
    assert (found.request_id, found.tool_name) == (id, name)
    assert found.persistent_identity == ("hosted_mcp", "s", name)
    assert get_tool_approval_item_call_id(item) == id
    assert tool_invocation_call_id(item) == ("mcp_approval_request", id)
    assert get_tool_call_id(item) == "k1"


def test_the_wrappers_item_id_is_the_last_resort() -> None:
    found = get_hosted_mcp_approval_request_identity(
        {"type": "hosted_tool_call", "id": "o1", "name": "x", "provider_data": REQUEST}
    )

    assert found is not None
    assert found.request_id == "o1"
    assert found.persistent_identity is not None


def test_a_request_that_names_no_server_can_not_be_decided_for_always() -> None:
    found = get_hosted_mcp_approval_request_identity({"type": "mcp_approval_request", "id": "r", "name": "x"})

    assert found is not None
    assert found.persistent_identity is None


@pytest.mark.parametrize("item", [None, {}, payload(), WRAPPED, {**WRAPPED, "provider_data": {"type": "other"}}])
def test_any_other_item_is_no_request(item: Any) -> None:
    assert get_hosted_mcp_approval_request_identity(item) is None


@pytest.mark.parametrize("kind", ["message", "web_search_call", "", None, 3, ["function_call"]])
def test_an_item_that_is_no_call_is_none(kind: Any) -> None:
    assert tool_invocation_call_id({"type": kind, "call_id": "c"}) is None
    assert tool_invocation_identity({"type": kind, "call_id": "c", "arguments": "{}"}) is None


@pytest.mark.parametrize(
    ("body", "other"),
    [
        ({"type": "custom_tool_call", "name": "x", "input": "a"}, {"input": "b"}),
        ({"type": "shell_call", "action": {"commands": ["ls"]}}, {"action": {"commands": ["rm"]}}),
        ({"type": "local_shell_call", "action": {}}, {"action": {"a": [1, (2, None)]}}),
        ({"type": "computer_call", "action": {"x": 1}}, {"pending_safety_checks": [{"id": "s"}]}),
        ({"type": "apply_patch_call", "operation": {}}, {"operation": {"path": "f"}}),
        ({**REQUEST, "name": "x"}, {"server_label": "t"}),
        (payload(), {"arguments": "[1]"}),
        (payload(arguments={"a": None}), {"arguments": {"a": 0}}),
    ],
)
def test_what_a_call_means_is_in_its_fingerprint_and_what_it_is_called_is_not(
    body: dict[str, Any], other: dict[str, Any]
) -> None:
    one = {"call_id": "1", "id": "1", **body}
    first = identity(one)

    assert identity({**one, **other}).fingerprint != first.fingerprint
    assert identity({**one, "id": "2", "call_id": "2", "status": "completed"}).fingerprint == first.fingerprint
    assert identity(SimpleNamespace(model_dump=lambda **_: one)).fingerprint == first.fingerprint


@pytest.mark.parametrize(
    "broken",
    [
        {"type": "custom_tool_call", "call_id": "1", "input": "a"},
        {"type": "custom_tool_call", "call_id": "1", "name": "x"},
        {"type": "function_call", "call_id": "1", "arguments": "{}"},
        {"type": "function_call", "call_id": "1", "name": "x"},
        {"type": "shell_call", "call_id": "1"},
        {"type": "apply_patch_call", "call_id": "1"},
        {**REQUEST, "id": "1"},
        {**REQUEST, "id": "1", "name": "x", "server_label": ""},
        {"type": "function_call", "name": "x", "arguments": "{}"},
    ],
)
def test_a_call_that_misses_what_makes_it_one_has_no_identity(broken: dict[str, Any]) -> None:
    assert tool_invocation_identity(broken) is None


def test_role_key_and_name_that_were_resolved_are_part_of_the_scope() -> None:
    plain = identity(payload())
    key = LookupKey("deferred_top_level", "x")

    assert identity(payload(), tool_lookup_key=key) == identity(payload(namespace="x"))
    assert identity(payload(), tool_lookup_key=key).approval_scope != plain.approval_scope
    assert identity(payload(), invocation_role="handoff").approval_scope != plain.approval_scope
    patch = {"type": "apply_patch_call", "call_id": "1", "operation": {}}
    assert identity(patch, tool_name="apply_patch").approval_scope != identity(patch).approval_scope


def test_arguments_that_are_no_json_or_too_deep_are_compared_as_they_are_written() -> None:
    assert arguments_of("{oops") == "{oops"
    assert arguments_of('{"a": NaN}') == '{"a": NaN}'
    assert arguments_of("[" * 100_000) == "[" * 100_000
    assert arguments_of({"a": (1, None, object)}) == {"a": [1, None, str(object)]}


def test_an_item_that_is_too_deep_is_refused_by_name() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]

    with pytest.raises(AgentsError) as caught:
        tool_invocation_identity({"type": "shell_call", "call_id": "1", "action": deep})
    assert caught.value.code == "item_too_deep"

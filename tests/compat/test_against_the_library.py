"""Beside the real openai-agents: keys, hosted requests, stored messages, and states that it wrote in older schemas."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
from functools import cache
from itertools import product
from typing import Any

import pytest
from agents import Agent, RunContextWrapper, Runner, RunState, ToolSearchTool, function_tool
from agents import _tool_identity as theirs
from agents.items import ToolApprovalItem
from agents.testing import ScriptedModel, assistant_message
from agents.tool import tool_namespace
from openai.types.responses import ResponseFunctionToolCall

from truename.compat import openai_agents as ours
from truename.compat.openai_approvals import AgentApprovals
from truename.compat.openai_calls import (
    AgentCall,
    get_hosted_mcp_approval_request_identity,
    get_tool_approval_item_call_id,
    tool_invocation_identity,
)
from truename.compat.openai_tools import AgentTool, member_of
from truename.identity import LookupKey, ToolNames

NAMES = [("x", None), ("x", "n"), ("x", "x"), ("n.x", None), (" x", " "), ("x", ""), ("", "n")]
REQUEST = {"type": "mcp_approval_request", "id": "r1", "name": "x", "server_label": "s", "arguments": "{}"}
ITEMS: list[Any] = [
    REQUEST,
    {"raw_item": REQUEST},
    {"raw_item": {"type": "hosted_tool_call", "id": "o", "call_id": "c", "provider_data": REQUEST}},
    {
        "raw_item": {
            "type": "hosted_tool_call",
            "id": "o",
            "provider_data": {**REQUEST, "id": None, "name": 3},
            "name": "y",
        }
    },
    {"raw_item": {**REQUEST, "id": 7}},
    {"raw_item": {"type": "function_call", "name": "x", "call_id": "", "id": "fc"}},
    {"raw_item": None, **REQUEST},
    {"raw_item": "text"},
    {"type": "hosted_tool_call", "provider_data": None},
]


@pytest.mark.parametrize(("name", "namespace"), NAMES)
def test_a_lookup_key_is_the_librarys_tuple(name: str, namespace: str | None) -> None:
    call: Any = {"type": "function_call", "name": name, "namespace": namespace}
    mine: Any = ours.get_function_tool_lookup_key_for_call(call)
    library: Any = theirs.get_function_tool_lookup_key_for_call(call)

    assert mine == library
    if library is not None:
        assert (hash(mine), {library: 1}[mine]) == (hash(library), 1)
        assert isinstance(mine, tuple)
        assert pickle.loads(pickle.dumps(mine)) == copy.deepcopy(mine) == mine


@pytest.mark.parametrize(("name", "namespace"), [one for one in NAMES if one[0]])
def test_each_takes_the_keys_of_the_other(name: str, namespace: str | None) -> None:
    call = {"type": "function_call", "name": name, "call_id": "1", "arguments": "{}"}
    library: Any = theirs.get_function_tool_lookup_key(name, namespace)
    mine: Any = LookupKey.of(library)

    for key in (library, mine):
        assert ours.get_function_tool_approval_keys(tool_name="z", tool_lookup_key=key) == (
            theirs.get_function_tool_approval_keys(tool_name="z", tool_lookup_key=key)
        )
        assert ours.restore_tool_call_routing_identity(call, key) == (
            theirs.restore_tool_call_routing_identity(call, key)
        )
        assert tool_invocation_identity(call, tool_lookup_key=key) == tool_invocation_identity(
            call, tool_lookup_key=mine
        )


@pytest.mark.parametrize(
    "tagged", [("bare",), ("namespaced", "x"), ("bare", ""), ("other", "x"), ["bare", "x"], "ab", None]
)
def test_what_is_no_key_is_none(tagged: object) -> None:
    assert LookupKey.of(tagged) is None


@pytest.mark.parametrize("item", ITEMS, ids=str)
def test_a_hosted_request_is_found_where_the_library_finds_it(item: Any) -> None:
    found, library = (
        get_hosted_mcp_approval_request_identity(item),
        theirs.get_hosted_mcp_approval_request_identity(item),
    )

    assert (found is None) == (library is None)
    if found is not None and library is not None:
        assert (found.request_id, found.server_label, found.tool_name) == (
            library.request_id,
            library.server_label,
            library.tool_name,
        )
        assert found.persistent_identity == library.approval_identity
    assert get_tool_approval_item_call_id(item) == theirs.get_tool_approval_item_call_id(item)


def test_a_hosted_request_in_an_approval_item_is_decided_like_the_request_itself() -> None:
    approvals = AgentApprovals()
    approvals.approve_tool(AgentCall({"raw_item": REQUEST}), always_approve=True)

    assert approvals.get_approval_status(AgentCall({**REQUEST, "id": "r2"})) is True
    assert approvals.get_approval_status(AgentCall({**REQUEST, "id": "r3", "server_label": "t"})) is None


@function_tool
def lookup(a: int = 0) -> str:
    """Look up."""
    return str(a)


@pytest.mark.parametrize("name", [" crm ", "crm\t", "\u3000crm", "crm"])
def test_blanks_around_a_namespace_are_no_part_of_it_in_any_layer(name: str) -> None:
    (wrapped,) = tool_namespace(name=name, description="CRM", tools=[lookup])
    read, declared = member_of(wrapped), AgentTool(ToolNames(name="lookup", namespace=name))
    (made,) = ours.tool_namespace(name=name, description="CRM", tools=[ToolNames(name="lookup")])

    for tool in (read, declared, made):
        assert ours.get_function_tool_namespace(tool) == theirs.get_explicit_function_tool_namespace(wrapped) == "crm"
        assert ours.get_function_tool_lookup_key_for_tool(tool) == theirs.get_function_tool_lookup_key_for_tool(wrapped)
        assert ours.get_function_tool_qualified_name(tool) == theirs.get_function_tool_qualified_name(wrapped)
        assert ours.get_function_tool_trace_name(tool) == theirs.get_function_tool_trace_name(wrapped)
        assert tool.names.approval_keys() == ("crm.lookup",)


MESSAGES = [
    ("reject", "always no", True),
    ("reject", "this no", False),
    ("reject", None, True),
    ("approve", None, True),
]


@pytest.mark.parametrize("steps", list(product(MESSAGES, repeat=2)), ids=str)
def test_what_is_stored_of_decisions_and_messages_is_what_the_library_stores(steps: Any) -> None:
    agent = Agent(name="A", tools=[lookup])
    context, approvals = RunContextWrapper(None), AgentApprovals()
    tool = AgentTool(ToolNames(name="lookup"))
    for number, (do, message, always) in enumerate(steps):
        raw = {"type": "function_call", "name": "lookup", "call_id": str(number), "arguments": "{}"}
        item, call = ToolApprovalItem(agent=agent, raw_item=raw), AgentCall(raw, tool, "A")
        if do == "reject":
            context.reject_tool(item, always_reject=always, rejection_message=message)
            approvals.reject_tool(call, always_reject=always, rejection_message=message)
        else:
            context.approve_tool(item, always_approve=always)
            approvals.approve_tool(call, always_approve=always)

    stored = json.loads(json.dumps(approvals.saved()))["records"]
    (library,) = (RunState._serialize_approval_record(record) for record in context._approvals.values())
    library.pop("sticky_scope", None)

    assert [{key: value for key, value in one.items() if key in RECORDED} for one in stored] == [library]
    again = AgentApprovals.restored(approvals.saved())
    assert again.records == approvals.records
    for call_id in ("0", "1", "later"):
        (record,) = again.records.values()
        (kept,) = context._approvals.values()
        assert record.message(call_id) == context._get_rejection_message_for_key(kept, call_id)


RECORDED = ("approved", "rejected", "rejection_messages", "sticky_rejection_message")
KINDS = ("bare", "namespaced", "deferred")
SCHEMAS = ("1.0", "1.5", "1.14", "1.15", "1.17", "1.18", "1.21")
TEXTS = ("x", "n.x", "x.x", "deferred_top_level:x")
STORED: list[dict[str, Any]] = [
    {"approved": ["1"], "rejected": []},
    {"approved": [], "rejected": ["1"], "rejection_messages": {"1": "no"}},
    {"approved": True, "rejected": []},
    {"approved": False, "rejected": True, "sticky_rejection_message": "never"},
    {"approved": ["1"], "rejected": ["1"]},
    {"approved": ["2"], "rejected": []},
]


def waiting(kind: str) -> tuple[Agent[Any], Any, dict[str, Any]]:
    """Return an agent whose model calls a tool that somebody has to allow, the tool, and the call."""

    @function_tool(needs_approval=True, defer_loading=kind == "deferred")
    def x(a: int = 0) -> str:
        return str(a)

    namespace = {"namespaced": {"namespace": "n"}, "deferred": {"namespace": "x"}}.get(kind, {})
    raw: dict[str, Any] = {
        "type": "function_call",
        "name": "x",
        "call_id": "1",
        "arguments": '{"a":1}',
        "id": "1",
        **namespace,
    }
    tool: Any = tool_namespace(name="n", description="N", tools=[x])[0] if kind == "namespaced" else x
    tools: list[Any] = [tool, ToolSearchTool()] if kind == "deferred" else [tool]
    model = ScriptedModel([[ResponseFunctionToolCall(**raw)], [assistant_message("done")]])
    return Agent(name="A", tools=tools, model=model), tool, raw


@cache
def saved(kind: str) -> str:
    agent, _, _ = waiting(kind)
    return json.dumps(asyncio.run(Runner.run(agent, "go")).to_state().to_json())


async def restored(kind: str, state: dict[str, Any]) -> tuple[bool | None, str | None]:
    """Return what the library makes of a state: whether the call that waits is allowed, and what is said if not."""
    agent, _, _ = waiting(kind)
    context = (found := await RunState.from_json(agent, state))._context
    (item,) = found.get_interruptions()
    about: dict[str, Any] = {"tool_namespace": item.tool_namespace, "tool_lookup_key": item.tool_lookup_key}
    assert context is not None
    status = context.get_approval_status(item.tool_name or "", "1", existing_pending=item, **about)
    said = context.get_rejection_message(item.tool_name or "", "1", existing_pending=item, **about)
    return status, said if status is False else None


@pytest.mark.parametrize("kind", KINDS)
def test_an_older_state_counts_for_the_call_that_waits_as_in_the_library(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_AGENTS_DISABLE_TRACING", "1")
    _, tool, raw = waiting(kind)
    call = AgentCall(raw, member_of(tool), "A", bare_alias=kind == "deferred")
    for schema, text, stored, is_bound in product(SCHEMAS, TEXTS, STORED, (True, False)):
        state = json.loads(saved(kind))
        state["$schemaVersion"] = schema
        context = state["context"]
        context.pop("function_tool_approvals", None)
        context["approvals"] = {text: stored}
        prints = {id: one["fingerprint"] for id, one in context["tool_invocations"].items()} if is_bound else {}
        if not is_bound:
            context["tool_invocations"] = {}
        approvals = AgentApprovals.of_older(schema, {text: stored}, [call], prints)
        status = approvals.get_approval_status(call)

        assert (status, approvals.get_rejection_message(call)) == asyncio.run(restored(kind, state)), (
            schema,
            text,
            stored,
        )


def test_a_grant_of_an_older_state_counts_for_no_call_that_is_not_among_its_interruptions() -> None:
    _, tool, raw = waiting("bare")
    call = AgentCall(raw, member_of(tool), "A")

    assert AgentApprovals.of_older("1.14", {"x": STORED[0]}, [call]).get_approval_status(call) is True
    assert AgentApprovals.of_older("1.14", {"x": STORED[0]}).get_approval_status(call) is None

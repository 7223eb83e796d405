"""The identity functions of openai-agents: on our tools, on its objects, and where we deviate."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from tests.compat.tools import payload, theirs, tool
from truename.compat import openai_agents as compat
from truename.compat.openai_agents import AgentsError, AgentTool
from truename.compat.openai_tools import _TEXTS as TEXTS
from truename.identity import LookupKey, ToolNames, ToolSetMember


def test_each_code_has_a_sentence_of_fact_and_one_of_what_to_do() -> None:
    for code in TEXTS:
        text = str(AgentsError(code=code, name="a\n{b}", other="c"))
        assert text.isprintable(), code
        assert text.endswith("."), code


def test_objects_of_the_library_are_read_as_they_are() -> None:
    spaced = theirs("lookup", _tool_namespace="crm", _tool_namespace_description="CRM", defer_loading=False)
    agent = theirs("billing_agent", _agent_tool_default_identity=("Billing Agent", "billing_agent"))
    handoff = SimpleNamespace(
        tool_name="transfer_to_a", on_invoke_handoff=lambda: None, _default_tool_identity=("A", "transfer_to_a")
    )

    assert compat.get_function_tool_lookup_key_for_tool(spaced) == LookupKey("namespaced", "lookup", "crm")
    assert compat.get_function_tool_trace_name(spaced) == "crm.lookup"
    assert compat.get_function_tool_namespace(spaced) == "crm"
    assert compat.get_function_tool_lookup_key_for_tool(theirs("x", defer_loading=True)).kind == "deferred_top_level"  # type: ignore[union-attr]
    with pytest.raises(AgentsError) as caught:
        compat.resolve_tool_name_collisions(
            [agent, theirs("billing_agent", _agent_tool_default_identity=("billing agent", "billing_agent"))]
        )
    assert caught.value.code == "derived_agent_tool_collision"
    tools, handoffs = compat.resolve_tool_name_collisions([spaced, agent], [handoff])
    assert tools == [spaced, agent]
    assert handoffs == [handoff]


@pytest.mark.parametrize("other", [SimpleNamespace(name="x"), tool("x", "custom"), theirs("").__class__(), None, 12])
def test_what_is_called_in_another_way_has_no_identity_as_a_function(other: Any) -> None:
    assert compat.get_function_tool_public_name(other) is None
    assert compat.get_function_tool_namespace(other) is None
    assert compat.get_function_tool_dispatch_name(other) is None
    assert compat.get_function_tool_qualified_name(other) is None
    assert compat.get_function_tool_lookup_keys(other) == ()
    assert compat.get_function_tool_trace_name(other) is None
    assert not compat.should_allow_bare_name_approval_alias(other, [other])
    assert compat.normalize_tool_call_for_function_tool(payload(), other) == payload()


@pytest.mark.parametrize("given", [ToolNames(name="x"), ToolSetMember(ToolNames(name="x")), tool("x"), theirs("x")])
def test_all_shapes_of_a_tool_give_one_key(given: object) -> None:
    assert compat.build_function_tool_lookup_map([given]) == {LookupKey("bare", "x"): given}


@pytest.mark.parametrize(
    ("texts", "code"),
    [
        (["?x", "?x"], "duplicate_deferred_top_level"),
        (["n/x", "n/x"], "ambiguous_qualified_name"),
        (["n.x", "n/x"], "ambiguous_qualified_name"),
        (["x/x"], "reserved_namespace"),
        (["x/x", "?y", "?y"], "reserved_namespace"),
    ],
)
def test_a_set_that_no_policy_settles_is_refused_under_the_codes_of_the_library(texts: list[str], code: str) -> None:
    with pytest.raises(AgentsError) as caught:
        compat.validate_function_tool_lookup_configuration([tool(text) for text in texts])

    assert caught.value.code == code


def test_the_bare_alias_is_refused_if_any_tool_has_the_name() -> None:
    deferred = tool("?x")

    assert compat.should_allow_bare_name_approval_alias(deferred, [deferred, tool("n/x"), tool("y")])
    for other in (tool("x"), tool("x", "custom"), tool("?x"), tool("x", "handoff")):
        assert not compat.should_allow_bare_name_approval_alias(deferred, [deferred, other])


def test_a_custom_tool_takes_part_in_collisions(caplog: pytest.LogCaptureFixture) -> None:
    pair = [tool("x"), tool("x", "custom")]

    with pytest.raises(AgentsError) as caught:
        compat.resolve_tool_name_collisions(pair, collision_policy="error")
    assert caught.value.code == "duplicate_function_tool"
    assert compat.resolve_tool_name_collisions(pair, collision_policy="warn") == (pair, [])
    assert caplog.messages == []


def test_a_collision_is_an_error_unless_asked_otherwise_and_then_the_losers_are_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    first, second = tool("x", owner="docs"), tool("x", owner="local")

    with pytest.raises(AgentsError):
        compat.resolve_tool_name_collisions([first, second])
    with caplog.at_level(logging.WARNING):
        assert compat.resolve_tool_name_collisions([first, second], collision_policy="warn") == ([second], [])
    assert caplog.messages == ["function 'x' of 'docs' cannot be called: function 'x' of 'local' has the same name"]


@pytest.mark.parametrize(
    ("members", "code"),
    [
        ([tool("x", "agent_tool", agent="X"), tool("x", "agent_tool", agent="x")], "derived_agent_tool_collision"),
        ([tool("x", "agent_tool", agent="X"), tool("x", "agent_tool", agent="X")], "duplicate_function_tool"),
        ([tool("x", "agent_tool", agent="X"), tool("x", "agent_tool", agent="Y")], "duplicate_function_tool"),
        ([tool("transfer_to_x", "agent_tool", agent="transfer to x"), tool("transfer_to_x", "handoff", agent="x")],
         "derived_mixed_collision"),
        ([tool("x"), tool("x", "handoff", agent="X")], "tool_handoff_collision"),
        ([tool("x", "handoff", agent="X"), tool("x", "handoff", agent="Y")], "duplicate_handoff"),
    ],
)  # fmt: skip
def test_a_collision_has_the_code_of_the_library(members: list[AgentTool], code: str) -> None:
    with pytest.raises(AgentsError) as caught:
        compat.resolve_tool_name_collisions(members, collision_policy="error")

    assert caught.value.code == code


def test_a_realtime_session_knows_no_namespaces_and_refuses_every_name_that_comes_twice() -> None:
    compat.validate_realtime_tool_names([tool("x"), tool("y")], [tool("z", "handoff")])
    for pair in ([tool("x"), tool("n/x")], [tool("x"), tool("x", "custom")]):
        with pytest.raises(AgentsError) as caught:
            compat.validate_realtime_tool_names(pair)
        assert caught.value.code == "duplicate_realtime_name"


@pytest.mark.parametrize(
    ("name", "description", "tools", "code"),
    [
        ("  ", "d", [tool("x")], "namespace_empty"),
        (None, "d", [tool("x")], "namespace_empty"),
        ("n", " ", [tool("x")], "namespace_description_empty"),
        ("n", None, [tool("x")], "namespace_description_empty"),
        (" x ", "d", [tool("y"), tool("x")], "reserved_namespace"),
        ("n", "d", [tool("x", "custom")], "namespace_not_function"),
    ],
)
def test_a_namespace_that_can_not_be_is_refused(name: Any, description: Any, tools: list[AgentTool], code: str) -> None:
    with pytest.raises(AgentsError) as caught:
        compat.tool_namespace(name=name, description=description, tools=tools)

    assert caught.value.code == code


def test_a_typed_call_gives_one_of_its_own_type_and_stays_as_it_is() -> None:
    class Typed(SimpleNamespace):
        def model_dump(self, **_: object) -> dict[str, Any]:
            return dict(vars(self))

    given = Typed(**payload(namespace="x"))
    normal = compat.normalize_tool_call_for_function_tool(given, tool("?x"))

    assert type(normal) is Typed
    assert normal.model_dump() == payload()
    assert given.namespace == "x"
    assert compat.restore_tool_call_routing_identity(normal, LookupKey("deferred_top_level", "x")) == given
    assert compat.normalize_tool_call_for_function_tool(given, tool("n/x")) is given
    assert compat.normalize_tool_call_for_function_tool("no call", tool("?x")) == "no call"


def test_the_alias_is_filed_first_and_the_form_of_older_states_last() -> None:
    keys = compat.get_function_tool_approval_keys

    assert keys(tool_name="x", tool_namespace="x", allow_bare_name_alias=True, include_legacy_deferred_key=True) == (
        "x",
        "deferred_top_level:x",
        "x.x",
    )
    assert keys(tool_name="x", tool_namespace="n", allow_bare_name_alias=True) == ("x", "n.x")
    assert keys(tool_name="x", tool_namespace="x", prefer_legacy_same_name_namespace=True) == ("x.x",)
    assert keys(tool_name=None, tool_namespace="n") == ()


def test_a_slip_of_case_is_told_and_not_called() -> None:
    tools = [tool("get_lead"), tool("n/x")]

    assert compat.tool_not_found_message(payload("Get-Lead"), tools) == (
        "Tool 'Get-Lead' not found. Did you mean 'get_lead'?"
    )
    assert compat.tool_not_found_message(payload("nope"), tools) == "Tool 'nope' not found."
    assert compat.get_function_tool_lookup_key_for_call(
        payload("Get-Lead")
    ) not in compat.build_function_tool_lookup_map(tools)


def test_a_handoff_has_the_name_that_it_is_given_or_its_default() -> None:
    assert compat.get_handoff_name("Billing Agent") == "transfer_to_billing_agent"
    assert compat.get_handoff_name("A", "") == "transfer_to_a"
    assert compat.get_handoff_name("A", "my handoff!") == "my handoff!"


@pytest.mark.parametrize("name", ["", "a.b", "x" * 65, "Ünï", "x\n"])
def test_a_name_made_from_a_class_that_no_provider_takes_is_refused(name: str) -> None:
    assert compat.validate_function_tool_fallback_name("Look-up_1") == "Look-up_1"
    with pytest.raises(AgentsError) as caught:
        compat.validate_function_tool_fallback_name(name)
    assert caught.value.code == "fallback_name_invalid"


def test_a_trace_of_a_call_leaves_out_the_synthetic_namespace() -> None:
    assert compat.get_tool_call_trace_name(payload(namespace="x")) == "x"
    assert compat.get_tool_call_trace_name(payload(namespace="n")) == "n.x"

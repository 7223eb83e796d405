"""Decisions on calls of agents: whose they are, what they cover, that they are kept, and where we deviate."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.compat.tools import call, payload, served, tool
from truename.compat.openai_agents import AgentsError, AgentTool
from truename.compat.openai_approvals import AgentApprovals, DecisionRecord, FiledDecisions
from truename.compat.openai_calls import AgentCall, tool_invocation_identity
from truename.identity import LookupKey

if TYPE_CHECKING:
    from collections.abc import Callable

X = tool("x", owner="x")
REQUEST = {"type": "mcp_approval_request", "id": "r1", "name": "x", "server_label": "s", "arguments": "{}"}


def saved_and_restored(approvals: AgentApprovals) -> AgentApprovals:
    return AgentApprovals.restored(json.loads(json.dumps(approvals.saved())))


@pytest.mark.parametrize("through_json", [False, True])
@pytest.mark.parametrize("then", [served("evil", "search"), served("docs", "search", id="impostor"), tool("search")])
def test_a_permanent_approval_does_not_pass_to_another_server_of_the_name(then: AgentTool, through_json: bool) -> None:
    approvals, docs = AgentApprovals(), served("docs", "search")
    approvals.approve_tool(call(docs, "1"), always_approve=True)
    if through_json:
        approvals = saved_and_restored(approvals)

    assert approvals.get_approval_status(call(docs, "2")) is True
    assert approvals.get_approval_status(call(then, "3")) is None


def test_a_permanent_approval_does_not_pass_to_another_implementation() -> None:
    approvals = AgentApprovals()
    approvals.approve_tool(call(tool("x", owner="one"), "1"), always_approve=True)

    verdict = approvals.verdict(call(tool("x", owner="other"), "2"))
    assert verdict.state == "suspended"
    assert "other" in verdict.reason


def test_an_approved_call_that_waits_does_not_run_another_implementation() -> None:
    approvals = AgentApprovals()
    approvals.approve_tool(call(tool("x", owner="one"), "1"))

    assert approvals.get_approval_status(call(tool("x", owner="one"), "1")) is True
    assert approvals.get_approval_status(call(tool("x", owner="other"), "1")) is None


def test_two_tools_whose_keys_read_alike_have_decisions_of_their_own() -> None:
    approvals, dotted, spaced = AgentApprovals(), tool("n.x"), tool("n/x")
    approvals.approve_tool(call(dotted, "1"), always_approve=True)
    approvals.reject_tool(call(spaced, "2"), always_reject=True)

    assert approvals.get_approval_status(call(dotted, "3")) is True
    assert approvals.get_approval_status(call(spaced, "4")) is False
    assert [filed.texts for filed in approvals.records] == [("n.x",), ("n.x",)]
    assert approvals.is_tool_approved("n.x", "5") is None


def test_an_item_is_filed_under_one_key_however_it_was_built() -> None:
    raw, built = AgentCall(payload(namespace="x")), call(tool("?x"))

    assert raw.approval_keys == built.approval_keys == ("deferred_top_level:x",)
    assert raw.lookup_key == built.lookup_key == LookupKey("deferred_top_level", "x")


def test_capitals_tell_two_tools_apart() -> None:
    approvals = AgentApprovals()
    approvals.approve_tool(call(tool("x"), "1"), always_approve=True)

    assert approvals.get_approval_status(call(tool("X"), "2")) is None
    with pytest.raises(AgentsError, match="used for another call"):
        approvals.get_approval_status(call(tool("X"), "1"))


def test_another_agent_does_not_inherit_a_decision() -> None:
    approvals = AgentApprovals()
    approvals.approve_tool(call(X, "1", agent="A"), always_approve=True)

    assert approvals.get_approval_status(call(X, "2", agent="B")) is None


def test_a_hosted_servers_tool_is_approved_by_server_and_name() -> None:
    approvals = AgentApprovals()
    approvals.approve_tool(AgentCall(REQUEST), always_approve=True)

    assert approvals.get_approval_status(AgentCall({**REQUEST, "id": "r2"})) is True
    assert approvals.get_approval_status(AgentCall({**REQUEST, "id": "r3", "server_label": "t"})) is None
    assert approvals.is_tool_approved("x", "r1") is True
    assert approvals.is_tool_approved("x", "r2") is None


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        ({**REQUEST, "id": 7}, "hosted_request_id_missing"),
        ({**REQUEST, "server_label": ""}, "invocation_identity_missing"),
        (payload(id=""), "call_id_missing"),
        (payload(id=12), "call_id_missing"),
        ({"type": "function_call", "name": "x", "call_id": "1"}, "invocation_identity_missing"),
        ({"type": "message", "id": "m"}, "call_id_missing"),
        ({"type": "computer_call", "call_id": "1"}, "invocation_identity_missing"),
    ],
)
def test_what_can_not_be_identified_is_not_decided(raw: dict[str, Any], code: str) -> None:
    approvals = AgentApprovals()

    for ask in (approvals.approve_tool, approvals.reject_tool, approvals.get_approval_status):
        with pytest.raises(AgentsError) as caught:
            ask(AgentCall(raw))
        assert caught.value.code == code
    assert approvals.records == {}


def test_a_request_that_names_no_server_is_not_decided_for_always() -> None:
    with pytest.raises(AgentsError) as caught:
        AgentApprovals().approve_tool(AgentCall({**REQUEST, "server_label": ""}), always_approve=True)

    assert caught.value.code == "hosted_identity_missing"


@pytest.mark.parametrize(
    "other",
    [call(X, "1", '{"a": 2}'), call(tool("y"), "1", '{"a": 1}'), call(tool("n/x"), "1", '{"a": 1}')],
)
def test_a_call_id_that_is_used_for_another_call_is_an_error_and_nothing_is_run(other: AgentCall) -> None:
    approvals, first = AgentApprovals(), call(X, "1", '{"a": 1}')
    approvals.approve_tool(first)

    for ask in (approvals.approve_tool, approvals.get_approval_status, lambda one: approvals.admitted([one])):
        with pytest.raises(AgentsError) as caught:
            ask(other)
        assert caught.value.code == "call_id_reused"
    assert approvals.get_approval_status(call(X, "1", '{ "a": 1.0 }')) is True


def test_a_call_id_that_a_decision_for_always_covered_stands_for_that_call() -> None:
    approvals = AgentApprovals()
    approvals.approve_tool(call(X, "1"), always_approve=True)

    assert approvals.get_approval_status(call(X, "2")) is True
    with pytest.raises(AgentsError, match="used for another call"):
        approvals.get_approval_status(call(X, "2", '{"a": 1}'))


def test_of_a_hosted_request_whose_id_another_one_had_nothing_is_decided() -> None:
    approvals, other = AgentApprovals(), AgentCall({**REQUEST, "server_label": "t"})
    approvals.approve_tool(AgentCall(REQUEST))

    assert approvals.get_approval_status(other) is None
    with pytest.raises(AgentsError, match="used for another call"):
        approvals.approve_tool(other)


def test_the_calls_of_one_response_are_each_admitted_once() -> None:
    approvals = AgentApprovals()

    assert len(approvals.admitted([call(X, "1"), call(X, "1"), call(X, "2")])) == 2
    with pytest.raises(AgentsError, match="used for another call"):
        approvals.admitted([call(X, "3"), call(X, "3", '{"a": 1}')])
    with pytest.raises(AgentsError, match="used for another call"):
        approvals.admitted([call(X, "2", '{"a": 1}')])
    assert approvals.admitted([call(X, "2")])[0].call_id == "2"


def test_a_call_is_run_once_also_after_a_pause() -> None:
    approvals, ran = AgentApprovals(), []
    with approvals.once(call(X, "1")):
        ran.append(1)

    with pytest.raises(AgentsError) as caught, saved_and_restored(approvals).once(call(X, "1")):
        ran.append(2)
    assert caught.value.code == "call_repeated"
    assert approvals.admitted([call(X, "1"), call(X, "2")])[0].call_id == "2"
    assert ran == [1]


def outcome(approvals: AgentApprovals, item: AgentCall) -> str:
    try:
        approvals.approve_tool(item)
    except AgentsError as error:
        return error.code
    return str(approvals.get_approval_status(item))


@pytest.mark.parametrize("opening", ['{"a":', "["])
@pytest.mark.parametrize("depth", [60, 900, 100_000])
@pytest.mark.parametrize("closed", [True, False])
def test_arguments_that_are_nested_without_end_are_compared_or_refused_and_nothing_breaks(
    opening: str, depth: int, closed: bool
) -> None:
    closing = ("1" + "}" * depth if "{" in opening else "]" * depth) if closed else ""
    approvals = AgentApprovals()
    first = outcome(approvals, call(X, "1", opening * depth + closing))

    assert first in {"True", "item_too_deep"}
    assert outcome(approvals, call(X, "1", "{}")) == ("call_id_reused" if first == "True" else "True")


def test_arguments_that_are_no_object_are_compared_as_they_are_written() -> None:
    approvals = AgentApprovals()
    approvals.approve_tool(call(X, "1", "{oops"))

    assert approvals.get_approval_status(call(X, "1", "{oops")) is True
    with pytest.raises(AgentsError):
        approvals.get_approval_status(call(X, "1", "{oops "))


def test_the_message_of_a_rejection_is_for_the_calls_that_it_covers() -> None:
    approvals = AgentApprovals()
    approvals.reject_tool(call(X, "1"), rejection_message="not today")
    approvals.reject_tool(call(tool("y"), "2"), always_reject=True, rejection_message="never")

    assert approvals.get_rejection_message(call(X, "1")) == "not today"
    assert approvals.get_rejection_message(call(X, "3")) is None
    assert approvals.get_rejection_message(call(tool("y"), "4")) == "never"


def test_what_is_on_file_is_what_the_library_would_have_written() -> None:
    record = DecisionRecord()
    record.decide("1", approve=True, always=False)
    record.decide("1", approve=False, always=False)
    assert (record.approved, record.rejected, record.status("1")) == ([], ["1"], False)
    record.decide("1", approve=False, always=False)
    assert record.rejected == ["1"]
    record.decide("2", approve=False, always=True)
    record.decide("3", approve=False, always=False)
    assert record == DecisionRecord(approved=False, rejected=True)
    assert record.status("9") is False
    record.decide("4", approve=True, always=False)
    assert (record.approved, record.status("4"), record.exactly("9")) == (["4"], True, None)
    record.decide("5", approve=True, always=True)
    assert record == DecisionRecord(approved=True, rejected=[])
    assert record.status("9") is True


def test_a_saved_state_says_the_same_when_it_is_read_again() -> None:
    approvals = AgentApprovals()
    approvals.approve_tool(AgentCall(payload(namespace="x"), tool("?x"), "A", bare_alias=True))
    approvals.reject_tool(call(X, "2"), always_reject=True, rejection_message="no")
    approvals.approve_tool(AgentCall(REQUEST))
    again = saved_and_restored(approvals)

    assert again.records == approvals.records
    assert again.saved()["book"]["grants"] == approvals.saved()["book"]["grants"]
    assert again.is_tool_approved("x", "1") is approvals.is_tool_approved("x", "1")
    assert again.get_rejection_message(call(X, "3")) == "no"


GOOD = AgentApprovals().saved()


@pytest.mark.parametrize(
    ("state", "code"),
    [
        (None, "state_invalid"),
        ([], "state_invalid"),
        ({}, "state_invalid"),
        ({**GOOD, "truename-agents": "1"}, "state_invalid"),
        ({**GOOD, "truename-agents": 0}, "state_invalid"),
        ({**GOOD, "truename-agents": 2}, "newer"),
        ({**GOOD, "book": None}, "state_invalid"),
        ({**GOOD, "book": {**GOOD["book"], "grants": [{}]}}, "state_invalid"),
        ({**GOOD, "book": object()}, "state_invalid"),
        ({**GOOD, "records": {}}, "state_invalid"),
        ({**GOOD, "records": [1]}, "state_invalid"),
        ({**GOOD, "records": [{"owner": 1, "texts": [], "tool": ""}]}, "state_invalid"),
        ({**GOOD, "records": [{"owner": "", "tool": ""}]}, "state_invalid"),
    ],
)
def test_a_state_that_is_damaged_or_newer_is_refused(state: Any, code: str) -> None:
    with pytest.raises(AgentsError) as caught:
        AgentApprovals.restored(state)

    assert caught.value.code == code


@pytest.mark.parametrize(
    ("schema", "code"),
    [("1.22", "newer"), ("1.999", "newer"), ("2.0", "state_invalid"), ("", "state_invalid"), (None, "state_invalid"),
     ("1.5\n", "state_invalid"), ("1.x", "state_invalid")],
)  # fmt: skip
def test_an_older_state_of_a_schema_that_nobody_knows_is_refused(schema: Any, code: str) -> None:
    with pytest.raises(AgentsError) as caught:
        AgentApprovals.of_older(schema, {})

    assert caught.value.code == code


def _print_of(item: AgentCall) -> dict[str, str]:
    found = tool_invocation_identity(item.raw)
    return {found.call_id: found.fingerprint} if found else {}


@pytest.mark.parametrize(
    ("schema", "prints", "stored", "status"),
    [
        ("1.5", dict, {"approved": ["1"], "rejected": []}, True),
        ("1.14", dict, {"approved": [], "rejected": ["1"]}, False),
        ("1.14", dict, {"approved": True, "rejected": []}, None),
        ("1.15", dict, {"approved": ["1"], "rejected": []}, None),
        ("1.17", lambda: _print_of(call(X, "1")), {"approved": ["1"], "rejected": []}, True),
        ("1.17", lambda: _print_of(call(X, "1", '{"a": 1}')), {"approved": ["1"], "rejected": []}, None),
        ("1.5", dict, {"approved": {"no": 1}, "rejected": [3]}, None),
        ("1.5", dict, "no record", None),
    ],
)
def test_of_an_older_state_only_a_decision_on_the_very_call_that_waits_counts(
    schema: str, prints: Callable[[], dict[str, str]], stored: Any, status: bool | None
) -> None:
    waiting = call(X, "1")
    approvals = AgentApprovals.of_older(schema, {"x": stored}, [waiting, call(tool("y"), "2")], prints())

    assert approvals.get_approval_status(waiting) is status
    assert approvals.get_approval_status(call(X, "9")) is None
    assert all(filed == FiledDecisions("", ("x",)) for filed in approvals.records)

"""Decisions: checks in Python, people where the rules ask, and what enforcing a decision gives."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.policy.calls import call, shown, tool
from tests.policy.ruled import DELETE, NAMES, PUSH, READ, rule
from truename import ToolId
from truename.errors import ApprovalRequired, CallRepeated, NotAllowed
from truename.policy import Approvals, Caller, CallRule, Decision, Policy

if TYPE_CHECKING:
    from truename.policy import Call


def test_a_check_in_python_is_a_rule_like_others() -> None:
    def big(one: Call) -> Any:
        return "deny" if len(str(one.arguments)) > 20 else None

    policy = Policy(rules=[rule("allow")], checks=[big])

    assert policy.decide(call(NAMES, READ, arguments={"q": "x" * 30})) == Decision(outcome="deny", rule="big")
    assert policy.decide(call(NAMES, READ, "c2")).rule == "allow "


ANSWERS: list[tuple[Any, Decision]] = [
    ("ask", Decision(outcome="ask", rule="check")),
    (Decision(outcome="deny", reason="no"), Decision(outcome="deny", rule="check", reason="no")),
    (Decision(outcome="ask", rule="mine"), Decision(outcome="ask", rule="mine")),
    (True, Decision(outcome="deny", rule="check", reason="the check returned bool, which is not a decision")),
    ("yes", Decision(outcome="deny", rule="check", reason="the check returned str, which is not a decision")),
    (
        Decision(outcome="maybe"),  # type: ignore[arg-type]
        Decision(outcome="deny", rule="check", reason="the check returned Decision, which is not a decision"),
    ),
]


@pytest.mark.parametrize(("answer", "decision"), ANSWERS)
def test_what_a_check_answers_is_a_decision_or_denies(answer: Any, decision: Decision) -> None:
    def check(one: Call) -> Any:
        return answer

    assert Policy(rules=[rule("allow")], checks=[check]).decide(call(NAMES, READ)) == decision


def test_a_check_that_fails_denies() -> None:
    class Broken:
        def __call__(self, one: Call) -> None:
            raise ZeroDivisionError(one.call_id)

    decision = Policy(rules=[rule("allow")], checks=[Broken()]).decide(call(NAMES, READ))

    assert decision == Decision(outcome="deny", rule="Broken", reason="the check failed (ZeroDivisionError)")


def test_people_decide_where_the_rules_ask_and_nowhere_against_a_deny() -> None:
    approvals = Approvals()
    for id, name in (("c1", READ), ("c2", PUSH), ("c3", DELETE)):
        approvals.approve(call(NAMES, name, id), "always")
    policy = Policy(rules=[rule("allow", READ), rule("ask", PUSH), rule("deny", DELETE)], approvals=approvals)
    read, push, delete = (policy.decide(call(NAMES, name, "c9")) for name in (READ, PUSH, DELETE))

    assert (read.outcome, read.grant) == ("allow", None)
    assert (push.outcome, push.rule, push.reason) == ("allow", f"ask {PUSH}", "approved (always)")
    assert push.grant is not None
    assert (delete.outcome, delete.grant) == ("deny", None)


def test_a_deny_stays_one_whatever_is_known_of_the_call() -> None:
    approvals = Approvals()
    before, after = (shown({"s": [tool("x", text)]}) for text in ("Before.", "After."))
    approvals.reject(call(before, "s/x", "c1"), "always")
    decision = Policy(rules=[rule("deny", "s/x")], approvals=approvals).decide(call(after, "s/x", "c2"))

    assert approvals.status(call(after, "s/x", "c2")).state == "suspended"
    assert (decision.outcome, decision.rule) == ("deny", "deny s/x")


def test_a_rejection_counts_where_the_rules_allow_too() -> None:
    approvals = Approvals()
    approvals.reject(call(NAMES, READ, "c1"), "always", message="not today")
    policy = Policy(rules=[rule("allow")], approvals=approvals)
    with pytest.raises(NotAllowed) as caught:
        policy.enforce(call(NAMES, READ, "c2"))

    assert (caught.value.rule, caught.value.decision) == ("rejected", "not today")
    approvals.reject(call(NAMES, PUSH, "c3"), "always")
    rejected = policy.decide(call(NAMES, PUSH, "c4"))
    assert (rejected.outcome, rejected.reason) == ("deny", "it was rejected")
    assert rejected.grant is not None
    assert rejected.grant == approvals.status(call(NAMES, PUSH, "c4")).grant


def test_a_tool_can_not_change_itself_out_of_a_rejection() -> None:
    approvals = Approvals()
    before, after = (shown({"s": [tool("x", text)]}) for text in ("Before.", "After."))
    approvals.reject(call(before, "s/x", "c1"), "always")
    policy = Policy(rules=[rule("allow")], approvals=approvals)

    decision = policy.decide(call(after, "s/x", "c2"))
    assert (decision.outcome, decision.rule) == ("ask", "allow ")
    assert decision.reason.startswith("the earlier decision is suspended: the tool's definition changed since then (")
    assert decision.grant is not None
    assert decision.grant == approvals.status(call(after, "s/x", "c2")).grant


def test_a_suspended_approval_changes_nothing_where_the_rules_allow() -> None:
    approvals = Approvals()
    before, after = (shown({"s": [tool("x", text)]}) for text in ("Before.", "After."))
    approvals.approve(call(before, "s/x", "c1"), "always")

    assert Policy(rules=[rule("allow")], approvals=approvals).decide(call(after, "s/x", "c2")).outcome == "allow"


def test_enforcing_gives_the_decision_or_says_what_is_missing() -> None:
    policy = Policy(rules=[rule("allow", READ), rule("deny", DELETE, reason="never")], approvals=Approvals())
    with pytest.raises(NotAllowed) as denied:
        policy.enforce(call(NAMES, DELETE))
    with pytest.raises(ApprovalRequired) as asked:
        policy.enforce(call(NAMES, PUSH, "c2"))

    assert policy.enforce(call(NAMES, READ, "c3")).outcome == "allow"
    assert (str(denied.value.id), denied.value.rule, denied.value.decision) == (
        "git@1/delete_repo@1",
        f"deny {DELETE}",
        "never",
    )
    assert (str(asked.value.id), asked.value.call, asked.value.approval_key, asked.value.decision) == (
        "git@1/push@1",
        "c2",
        "git@1/push@1",
        "no rule applies to it",
    )


def test_a_call_is_asked_approved_run_and_not_run_again() -> None:
    approvals = Approvals()
    policy = Policy(approvals=approvals)
    ran: list[str] = []

    def run(one: Call) -> None:
        with policy.running(one):
            ran.append(one.call_id)

    with pytest.raises(ApprovalRequired):
        run(call(NAMES, PUSH))
    approvals.approve(call(NAMES, PUSH))
    run(call(NAMES, PUSH))
    with pytest.raises(CallRepeated, match="it is done"):
        run(call(NAMES, PUSH))
    with pytest.raises(CallRepeated, match="another call"):
        run(call(NAMES, PUSH, arguments='{"force": true}'))

    assert ran == ["c1"]


def test_a_check_and_a_recorder_that_fail_are_told_of(caplog: pytest.LogCaptureFixture) -> None:
    def broken(_: Call) -> None:
        raise KeyError

    with Policy(rules=[rule("allow")], recorder=broken).running(call(NAMES, PUSH)):
        assert caplog.messages == ["the recorder failed on git@1/push@1; the call is made nevertheless"]
    caplog.clear()
    assert Policy(checks=[broken]).decide(call(NAMES, PUSH)).outcome == "deny"
    assert caplog.messages == ["the check broken failed on git@1/push@1"]


def test_without_approvals_rules_alone_decide() -> None:
    policy = Policy(rules=[rule("allow")])
    for _ in range(2):
        with policy.running(call(NAMES, PUSH)) as decision:
            assert decision.outcome == "allow"


RULES = (
    CallRule(name="ann only", outcome="ask", principals=("ann",)),
    CallRule(name="phones", outcome="deny", platforms=("ios",)),
    CallRule(name="readers", outcome="allow", annotations={"readOnlyHint": True}),
    CallRule(name="no deleting", outcome="deny", tools=("*/delete*",)),
    CallRule(name="monday", outcome="allow", agents=("w*",), clients=("Cursor",)),
)
HINTS: list[dict[str, Any]] = [{}, {"readOnlyHint": True}, {"readOnlyHint": False}, {"title": ["x"]}]


@given(st.data())
def test_what_was_decided_before_is_decided_as_if_it_were_asked_for_the_first_time(data: st.DataObject) -> None:
    policy = Policy(rules=RULES)
    for number in range(data.draw(st.integers(1, 6))):
        one = call(NAMES, data.draw(st.sampled_from([DELETE, PUSH, READ])), f"c{number}")
        caller = Caller(
            principal=data.draw(st.sampled_from(["", "ann", "bob"])),
            agent=data.draw(st.sampled_from(["", "writer"])),
            client=data.draw(st.sampled_from(["", "cursor"])),
            platform=data.draw(st.sampled_from(["", "ios", "IOS"])),
        )
        hints = data.draw(st.sampled_from(HINTS))
        before = data.draw(st.sampled_from([(), (ToolId.parse("git/delete_all"),)]))
        asked = replace(one, caller=caller, annotations=hints, formerly=before)
        assert policy.decide(asked) == Policy(rules=RULES).decide(asked)

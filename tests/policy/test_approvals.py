"""What people decide about calls: which calls a decision covers, and which decision counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.policy.calls import ADA, call, search_of, shown, tool
from truename.errors import ApprovalRequired, CallRepeated, InvalidCall, NotAllowed
from truename.policy import Approvals, Caller

if TYPE_CHECKING:
    from truename.policy import Call

NAMES = shown({"docs": ["search", "fetch"], "git": ["search"]})
OTHER = Caller(principal="ada", agent="writer", session="tuesday")
Step = tuple[str, str, str]


def searched(id: str = "c1", arguments: str = "{}", caller: Caller = ADA, name: str = "docs_search") -> Call:
    return call(NAMES, name, id, arguments, caller)


# The rows follow section 6 of the specification: steps, then questions with their answers.
FLOWS: dict[str, tuple[list[Step], dict[str, str]]] = {
    "an approval of one call": ([("approve", "call", "1")], {"1": "approved", "2": "undecided"}),
    "a rejection of one call": ([("reject", "call", "1")], {"1": "rejected", "2": "undecided"}),
    "a lasting approval": ([("approve", "always", "1")], {"1": "approved", "2": "approved"}),
    "one rejected out of all approved": (
        [("approve", "always", "1"), ("reject", "call", "2")],
        {"2": "rejected", "3": "approved"},
    ),
    "one approved out of all rejected": (
        [("reject", "always", "1"), ("approve", "call", "2")],
        {"2": "approved", "3": "rejected"},
    ),
    "the later lasting decision replaces the earlier": (
        [("approve", "always", "1"), ("reject", "always", "2")],
        {"1": "rejected", "3": "rejected"},
    ),
    "a lasting decision goes over those on single calls": (
        [("approve", "call", "1"), ("reject", "always", "2")],
        {"1": "rejected"},
    ),
    "once, then for ever": (
        [("approve", "call", "1"), ("approve", "always", "1")],
        {"1": "approved", "2": "approved"},
    ),
    "the latest decision on one call": ([("approve", "call", "1"), ("reject", "call", "1")], {"1": "rejected"}),
    "a session's decision, then a lasting one": (
        [("reject", "session", "1"), ("approve", "always", "2")],
        {"3": "approved"},
    ),
}


@pytest.mark.parametrize("flow", FLOWS)
def test_the_latest_decision_that_covers_a_call_counts(flow: str) -> None:
    steps, answers = FLOWS[flow]
    approvals = Approvals()
    for step in steps:
        decide(approvals, step)

    assert {id: approvals.status(searched(id)).state for id in answers} == answers


def decide(approvals: Approvals, step: Step) -> None:
    verb, scope, id = step
    getattr(approvals, verb)(searched(id), scope)


SCOPES: dict[str, dict[str, str]] = {
    "call": {"same": "undecided", "other arguments": "undecided", "other session": "undecided"},
    "arguments": {"same": "approved", "other arguments": "undecided", "other session": "approved"},
    "session": {"same": "approved", "other arguments": "approved", "other session": "undecided"},
    "always": {"same": "approved", "other arguments": "approved", "other session": "approved"},
}


@pytest.mark.parametrize("scope", SCOPES)
def test_a_decision_covers_no_more_than_its_scope(scope: Any) -> None:
    approvals = Approvals()
    approvals.approve(searched("c1", '{"q": 1}'), scope)
    later = {
        "same": searched("c2", '{"q": 1.0}'),
        "other arguments": searched("c3", '{"q": 2}'),
        "other session": searched("c2", '{"q": 1}', OTHER),
    }

    assert {what: approvals.status(one).state for what, one in later.items()} == SCOPES[scope]
    for caller in (Caller(principal="bob", agent="writer", session="monday"), Caller(principal="ada", agent="reader")):
        assert approvals.status(searched("c4", '{"q": 1}', caller)).state == "undecided"
    for name in ("docs_fetch", "git_search"):
        assert approvals.status(searched("c5", '{"q": 1}', name=name)).state == "undecided"


def test_agents_of_one_session_have_decisions_of_their_own() -> None:
    approvals = Approvals()
    approvals.approve(searched("c1"))
    reader = Caller(principal="ada", agent="reader", session="monday")

    assert approvals.status(searched("c1", caller=reader)).state == "undecided"


@pytest.mark.parametrize("verb", ["approve", "reject"])
@pytest.mark.parametrize("scope", ["call", "always"])
def test_a_call_id_that_comes_again_for_another_call_is_refused(verb: str, scope: str) -> None:
    approvals = Approvals()
    decide(approvals, (verb, scope, "c1"))
    reader = Caller(principal="ada", agent="reader", session="monday")
    for other in (
        searched("c1", '{"q": 1}'),
        searched("c1", name="git_search"),
        searched("c1", '{"q": 1}', caller=reader),
    ):
        for ask in (approvals.status, approvals.approve, approvals.reject, approvals.begin, approvals.finish):
            with pytest.raises(CallRepeated) as caught:
                ask(other)
            assert (caught.value.code, caught.value.call) == ("call_reused", "c1")
            assert "another call of" in str(caught.value)
    assert len(approvals.grants()) == 1


def test_a_call_id_means_something_within_its_session_only() -> None:
    approvals = Approvals()
    approvals.approve(searched("c1"))

    assert approvals.status(searched("c1", '{"q": 1}', OTHER)).state == "undecided"


def test_the_same_call_may_be_asked_about_under_any_name_and_spelling() -> None:
    approvals = Approvals()
    approvals.approve(searched("c1", '{"a": 1, "b": 2}'))

    assert approvals.status(searched("c1", '{"b":2.0,"a":1}', name="Docs/search@v1")).state == "approved"


def test_a_message_belongs_to_the_calls_that_were_rejected_with_it() -> None:
    approvals = Approvals()
    approvals.approve(searched("1"), "always")
    approvals.reject(searched("2"), message="not on a Monday", by="eve")
    verdict = approvals.status(searched("2"))

    assert verdict.grant is not None
    assert (verdict.grant.message, verdict.grant.by) == ("not on a Monday", "eve")
    later = approvals.status(searched("3")).grant
    assert later is not None
    assert later.message == ""


BAD: list[tuple[dict[str, Any], str]] = [
    ({"scope": "for ever"}, "scope"),
    ({"scope": ""}, "scope"),
    ({"by": 7}, "by"),
    ({"by": "x" * 4_097}, "by"),
]


@pytest.mark.parametrize(("change", "field"), BAD)
def test_a_decision_that_is_none_is_refused(change: dict[str, Any], field: str) -> None:
    approvals = Approvals()
    with pytest.raises(InvalidCall) as caught:
        approvals.approve(searched(), **change)

    assert caught.value.field == field
    assert approvals.grants() == ()


def test_there_is_no_decision_for_a_session_that_nobody_knows() -> None:
    approvals = Approvals()
    with pytest.raises(InvalidCall, match=r"caller\.session is empty"):
        approvals.approve(searched(caller=Caller(principal="ada")), "session")


def test_a_decision_can_be_taken_back() -> None:
    approvals = Approvals()
    grant = approvals.approve(searched("c1"), "always")

    assert approvals.grants("ada") == approvals.grants("ada", "writer") == (grant,)
    assert approvals.grants("bob") == approvals.grants("ada", "reader") == ()
    assert approvals.revoke(grant.key) == grant
    assert approvals.revoke(grant.key) is None
    assert approvals.status(searched("c2")).state == "undecided"


def test_the_same_decision_made_twice_is_kept_once() -> None:
    approvals = Approvals()
    for id in ("c1", "c2", "c3"):
        approvals.approve(searched(id), "always")
        approvals.approve(searched(id), "session")

    assert [grant.call_id for grant in approvals.grants()] == ["c3", "c3"]


def test_the_end_of_a_session_forgets_what_was_for_it_only() -> None:
    approvals = Approvals()
    approvals.approve(searched("c1"))
    approvals.approve(searched("c2"), "session")
    approvals.approve(searched("c3", '{"q": 1}'), "arguments")
    approvals.approve(searched("c1", caller=OTHER))
    approvals.end_session("ada", "monday")

    assert [(grant.scope, grant.session) for grant in approvals.grants()] == [
        ("arguments", "monday"),
        ("call", "tuesday"),
    ]
    assert approvals.status(searched("c1", '{"other": 1}')).state == "undecided"


def changed(id: str = "c9") -> Call:
    return search_of("docs", id, description="Changed.")


def test_a_definition_that_comes_back_has_its_approval_again() -> None:
    approvals = Approvals()
    approvals.approve(search_of("docs", "1"), "always")
    approvals.approve(changed("2"), "always")

    assert approvals.status(search_of("docs", "3")).state == "approved"
    assert approvals.status(changed("4")).state == "approved"


def test_a_rejection_of_another_definition_makes_an_earlier_approval_doubtful() -> None:
    approvals = Approvals()
    approvals.approve(search_of("docs", "1"), "always")
    rejection = approvals.reject(changed("2"), "always")

    assert approvals.status(search_of("docs", "3"))[:2] == ("suspended", rejection)
    approvals.approve(search_of("docs", "4"), "always")
    assert approvals.status(search_of("docs", "5")).state == "approved"


def test_a_rejection_in_force_is_not_weakened_by_a_suspended_approval() -> None:
    approvals = Approvals()
    approvals.reject(search_of("docs", "1"), "always")
    approvals.approve(changed("2"), "always")

    assert approvals.status(search_of("docs", "3")).state == "rejected"


def test_a_call_whose_tool_changed_while_it_waited_is_asked_about_again() -> None:
    approvals = Approvals()
    grant = approvals.approve(search_of("docs", "1"))
    resumed = search_of("docs", "1", description="Changed.")

    assert approvals.status(resumed).state == "suspended"
    with pytest.raises(ApprovalRequired) as caught:
        approvals.begin(resumed, grant)
    assert "definition changed" in caught.value.decision
    approvals.begin(resumed, approvals.approve(resumed))


def test_a_call_is_run_once_at_most() -> None:
    approvals = Approvals()
    ran = []
    with approvals.once(searched()):
        ran.append("c1")
        with pytest.raises(CallRepeated) as running, approvals.once(searched()):
            ran.append("again")
    with pytest.raises(CallRepeated) as done, approvals.once(searched()):
        ran.append("again")
    with pytest.raises(ZeroDivisionError), approvals.once(searched("c2")):
        ran.append(str(1 // 0))
    with pytest.raises(CallRepeated) as failed, approvals.once(searched("c2")):
        ran.append("again")

    assert ran == ["c1"]
    assert [caught.value.state for caught in (running, done, failed)] == ["running", "done", "failed"]
    assert str(done.value) == (
        "The call 'c1' of docs@1/search@1 was already started (it is done); it was not run again. Make a new call."
    )


def test_only_what_was_begun_is_over() -> None:
    approvals = Approvals()
    for _ in range(2):
        with pytest.raises(InvalidCall, match="not running"):
            approvals.finish(searched())
        approvals.approve(searched())


def test_what_was_rejected_or_taken_back_meanwhile_is_not_begun() -> None:
    approvals = Approvals()
    grant = approvals.approve(searched("c1"))
    approvals.revoke(grant.key)
    with pytest.raises(ApprovalRequired, match="needs an approval"):
        approvals.begin(searched("c1"), grant)
    approvals.reject(searched("c1"), message="no")
    with pytest.raises(NotAllowed) as caught:
        approvals.begin(searched("c1"))
    assert caught.value.decision == "no"


DECISIONS = st.lists(
    st.tuples(
        st.sampled_from(["approve", "reject"]),
        st.sampled_from(["call", "arguments", "session", "always"]),
        st.sampled_from("123"),
        st.booleans(),
    ),
    max_size=8,
)


@given(DECISIONS)
def test_no_decision_is_ever_about_another_tool_person_or_agent(decisions: list[tuple[str, str, str, bool]]) -> None:
    approvals = Approvals()
    for verb, scope, id, is_changed in decisions:
        one = changed(id) if is_changed else search_of("docs", id)
        getattr(approvals, verb)(one, scope)
    strangers = [Caller(principal="bob", agent="writer", session="monday"), Caller(principal="ada", agent="x")]

    assert all(approvals.status(search_of("docs", "9", caller=who)).state == "undecided" for who in strangers)
    assert approvals.status(call(shown({"evil": [tool("search")]}), "evil_search", "9")).state == "undecided"
    mine = approvals.status(search_of("docs", "1"))
    if mine.state == "approved":
        assert mine.grant is not None
        assert mine.grant.subject.digest == search_of("docs").digest


@given(DECISIONS)
def test_what_is_approved_was_approved_last(decisions: list[tuple[str, str, str, bool]]) -> None:
    approvals = Approvals()
    for verb, scope, id, _ in decisions:
        getattr(approvals, verb)(search_of("docs", id), scope)
    covering = [verb for verb, scope, id, _ in decisions if scope != "call" or id == "1"]
    expected = {"approve": "approved", "reject": "rejected"}[covering[-1]] if covering else "undecided"

    assert approvals.status(search_of("docs", "1")).state == expected

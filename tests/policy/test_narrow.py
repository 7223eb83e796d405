"""Each limit of a decision counts by itself, even where another check would mostly stand in for it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.policy.calls import ADA, call, search_of, shown, tool
from truename import Ledger
from truename.errors import ApprovalRequired
from truename.policy import Approvals, Policy

if TYPE_CHECKING:
    from truename.policy import Call, Verdict


@pytest.mark.parametrize("session", ["tuesday", ""])
def test_a_decision_on_one_call_is_for_its_session_even_where_all_else_is_the_same(session: str) -> None:
    approvals = Approvals()
    approvals.approve(search_of("docs", "c1"))

    assert approvals.status(search_of("docs", "c1")).state == "approved"
    assert approvals.status(search_of("docs", "c1", caller=replace(ADA, session=session))).state == "undecided"


def test_a_redirect_carries_nothing_where_the_definition_is_not_known() -> None:
    ledger = Ledger.memory()
    before = shown({"docs": [tool("find", "Look.")]}, ledger=ledger)
    after = shown({"docs": [tool("search", "Look.")]}, ledger=ledger)
    approvals = Approvals()
    approvals.approve(replace(call(before, "docs/find", "c1"), shape=""), "always")
    ledger.redirect("docs/find", "docs/search")

    assert approvals.status(replace(call(after, "docs/search", "c2"), shape="")).state == "suspended"


def test_an_approval_that_is_taken_back_after_the_decision_runs_nothing() -> None:
    class Hasty(Approvals):
        def status(self, call: Call) -> Verdict:
            verdict = super().status(call)
            if verdict.grant:
                self.revoke(verdict.grant.key)
            return verdict

    policy = Policy(approvals=Hasty())
    assert policy.approvals is not None
    policy.approvals.approve(search_of("docs"), "always")
    with pytest.raises(ApprovalRequired, match="revoked"), policy.running(search_of("docs")):
        raise AssertionError

"""Laws of decisions: whatever was decided before, nobody's yes is anybody else's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.compat.tools import call, served, tool
from truename.compat.openai_agents import AgentsError
from truename.compat.openai_approvals import AgentApprovals

if TYPE_CHECKING:
    from truename.compat.openai_agents import AgentTool

pytestmark = pytest.mark.slow

# All of them are called `x` or `n.x` by somebody.
TOOLS = [
    tool("x"),
    tool("x", owner="other"),
    tool("X"),
    tool("n/x"),
    tool("n.x"),
    tool("?x"),
    tool("deferred_top_level:x"),
    served("docs", "x"),
    served("evil", "x"),
    served("docs", "x", id="impostor"),
    served("docs", "y", public="x"),
]
DECISIONS = st.tuples(
    st.sampled_from(TOOLS), st.sampled_from("AB"), st.sampled_from("1234"), st.booleans(), st.booleans()
)


def decided(approvals: AgentApprovals, steps: list[tuple[AgentTool, str, str, bool, bool]]) -> set[tuple[int, str]]:
    """Make the decisions that can be made; return for whose calls of which tool somebody ever said yes."""
    said_yes = set()
    for of, agent, id, approve, always in steps:
        item = call(of, id, agent=agent)
        try:
            (approvals.approve_tool if approve else approvals.reject_tool)(item, always)
        except AgentsError:
            continue
        if approve:
            said_yes.add((TOOLS.index(of), agent))
    return said_yes


@given(st.lists(DECISIONS, max_size=8))
def test_no_call_is_allowed_that_nobody_said_yes_to(steps: list[tuple[AgentTool, str, str, bool, bool]]) -> None:
    approvals = AgentApprovals()
    said_yes = decided(approvals, steps)

    for place, of in enumerate(TOOLS):
        for agent in "AB":
            fresh = approvals.get_approval_status(call(of, f"fresh {place} {agent}", agent=agent))
            assert fresh is not True or (place, agent) in said_yes


@given(st.lists(DECISIONS, max_size=8))
def test_what_was_saved_decides_as_before(steps: list[tuple[AgentTool, str, str, bool, bool]]) -> None:
    approvals = AgentApprovals()
    decided(approvals, steps)
    again = AgentApprovals.restored(approvals.saved())

    for of in TOOLS:
        for agent in "AB":
            item = call(of, "fresh", agent=agent)
            assert again.verdict(item).state == approvals.verdict(item).state
    assert again.records == approvals.records

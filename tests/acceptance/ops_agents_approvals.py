"""Ops about decisions on calls of agents: step by step, saved, read from older states, and in a whole run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.acceptance.agent_loop import Loop
from tests.acceptance.agents import call_of, tools_of
from tests.acceptance.ops import Facts, Given, op
from tests.acceptance.rows import AGENTS
from tests.acceptance.world import typed
from truename.compat.openai_agents import should_allow_bare_name_approval_alias
from truename.compat.openai_approvals import AgentApprovals
from truename.compat.openai_calls import AgentCall

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.compat.openai_tools import AgentTool


def _item(step: Mapping[str, Any], tools: list[AgentTool], agent: str) -> AgentCall:
    """Return the call that a step is about; it is the first agent's unless the step says whose."""
    owner = step.get("agent", agent)
    if "raw" in step:
        return AgentCall(step["raw"], None, owner)
    tool = next(one for one in tools if one.owner == step["tool"])
    return AgentCall(call_of(step["call"]), tool, owner, should_allow_bare_name_approval_alias(tool, tools))


def _step(step: Mapping[str, Any], approvals: AgentApprovals, tools: list[AgentTool], agent: str) -> Any:
    if "by_name" in step:
        return approvals.is_tool_approved(step["by_name"], step["call_id"])
    item = _item(step, tools, agent)
    if step["do"] == "approve":
        approvals.approve_tool(item, step.get("always", False))
    elif step["do"] == "reject":
        approvals.reject_tool(item, step.get("always", False), step.get("message"))
    elif step["do"] == "message":
        return approvals.get_rejection_message(item)
    else:
        return approvals.get_approval_status(item)
    return "ok"


def _steps(given: Given, word: str, approvals: AgentApprovals) -> list[Facts]:
    tools, agent = tools_of(given["tools"]), next(iter(given.get("agents", ["A"])))

    def observed(step: Mapping[str, Any]) -> Facts:
        facts = typed({}, lambda: {"result": _step(step, approvals, tools, agent)})
        return {key: facts[key] for key in ("result", "error") if key in facts}

    return [observed(step) for step in given[word]]


def stored(approvals: AgentApprovals) -> list[dict[str, Any]]:
    """Return what is on file as the rows write it."""
    return [
        {
            "owner": filed.owner or None,
            **({"key": filed.texts[0]} if len(filed.texts) == 1 else {"hosted": list(filed.texts)}),
            "approved": record.approved,
            "rejected": record.rejected,
        }
        for filed, record in approvals.records.items()
    ]


@op("approval_flow", needs="tools agents steps", shape=AGENTS)
def approval_flow(given: Given) -> Facts:
    approvals = AgentApprovals()
    steps = _steps(given, "steps", approvals)
    return {"steps": steps, "stored": stored(approvals)}


@op("persist_approvals", needs="tools steps|decisions queries", takes="agents", shape=AGENTS)
def persist_approvals(given: Given) -> Facts:
    approvals = AgentApprovals()
    steps = _steps(given, "steps" if "steps" in given else "decisions", approvals)
    again = AgentApprovals.restored(approvals.saved())
    return {"steps": steps, "after_restore": _steps(given, "queries", again), "stored": stored(again)}


@op("restore_legacy_approvals", needs="schema approvals tools queries", shape=AGENTS)
def restore_legacy_approvals(given: Given) -> Facts:
    tools = tools_of(given["tools"])
    pending = [_item(query, tools, "A") for query in given["queries"] if query.get("pending")]
    approvals = AgentApprovals.of_older(given["schema"], given["approvals"], pending)
    return {"after_restore": _steps(given, "queries", approvals), "reads_version": given["schema"]}


_RUN = "tools calls handoffs servers include_server_in_tool_names collision_policy tool_not_found decisions"
_LATER = "json_roundtrip later_calls tools_at_resume servers_at_resume swap_at_resume_number state_rewritten_as_schema"


@op("run", needs=_RUN, takes=_LATER, shape=AGENTS)
def run(given: Given) -> Facts:
    loop = Loop(given)

    def whole() -> Facts:
        loop.run()
        return {}

    facts = typed({}, whole)
    return {**loop.observed(), "stored": stored(loop.approvals), **facts}

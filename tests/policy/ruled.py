"""Tools of two servers, and what a policy says of a call of one."""

from __future__ import annotations

from typing import Any

from tests.policy.calls import ADA, call, shown, tool
from truename.policy import Caller, CallRule, Policy

NAMES = shown(
    {
        "git": [tool("get_repo", readOnlyHint=True), tool("delete_repo", destructiveHint=True), tool("push")],
        "fs.Local": [tool("write"), tool("read", readOnlyHint=True)],
    }
)


READ, DELETE, PUSH = "git/get_repo", "git/delete_repo", "git/push"


STRICTNESS = {"allow": 0, "ask": 1, "deny": 2}


def rule(outcome: Any, *tools: str, **terms: Any) -> CallRule:
    shown_name = terms.pop("name", f"{outcome} {' '.join(tools)}")
    return CallRule(name=shown_name, outcome=outcome, tools=tools or ("*",), **terms)


def outcome(policy: Policy, name: str, caller: Caller = ADA, id: str = "c1") -> str:
    return policy.decide(call(NAMES, name, id, caller=caller)).outcome

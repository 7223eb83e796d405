"""An agent framework that Truename has no adapter for: names from the catalogue, calls through a policy.

Two servers have a tool of the same name, another one's name no model API accepts. What a framework needs is in the
four functions below; `main` plays a model that calls tools, under a wrong name and twice with one id too. It runs as
it is: `python examples/own_loop.py`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from truename import Catalog, Ledger, NameTable, project
from truename.errors import ApprovalRequired, TruenameError
from truename.policy import Approvals, Caller, CallRule, Policy, call_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# What the servers answer to tools/list, by key, and how their tools are run, by server and the server's own name.
LISTED: Mapping[str, Any] = {
    "github": [{"name": "search", "description": "Search repositories.", "inputSchema": {"type": "object"}}],
    "files": [
        {"name": "search", "description": "Search files.", "inputSchema": {"type": "object"}},
        {"name": "fs.delete", "description": "Delete a file.", "inputSchema": {"type": "object"}},
    ],
}
RUN: Mapping[tuple[str, str], Callable[..., str]] = {
    ("github", "search"): lambda q: f"3 repositories about {q}",
    ("files", "search"): lambda q: f"2 files about {q}",
    ("files", "fs.delete"): lambda path: f"{path} is gone",
}
CALLER = Caller(principal="ada", agent="clerk", session="monday")


def names_of(listed: Mapping[str, Any], ledger: Ledger) -> NameTable:
    """Give every tool one name that the model's API accepts; the ledger keeps it when servers join or leave."""
    return project(Catalog.from_mcp(listed, bound=ledger.bindings()), "openai", ledger=ledger)


def tools_of(names: NameTable, policy: Policy) -> list[dict[str, Any]]:
    """Return what the model is shown: the definitions under the new names, without what a rule hides."""
    tools = ((name, names.catalog[id]) for id, name in names.items())
    return [{**tool.definition, "name": name} for name, tool in tools if policy.visible(tool, CALLER)]


def answer_to(payload: Mapping[str, Any], names: NameTable, policy: Policy) -> str:
    """Run what the model asked for if that is allowed, once at most; else return what it is to read instead.

    Raises `ApprovalRequired`: a person has to be asked.
    """
    try:
        call = call_of(payload, names, CALLER)
        with policy.running(call):
            return RUN[call.origin.server, call.origin.name](**call.arguments)
    except ApprovalRequired:
        raise
    except TruenameError as error:
        return str(error)


def decided(payload: Mapping[str, Any], names: NameTable, approvals: Approvals, *, allow: bool) -> None:
    """Write down what a person said to the call. It counts for this call, whatever the tool is called by then."""
    call = call_of(payload, names, CALLER)
    if allow:
        approvals.approve(call, "call", by="ada")
    else:
        approvals.reject(call, "call", by="ada", message="keep it")


def main() -> None:
    """Play a model that makes five calls, and a person who allows one deletion and refuses the other."""
    approvals = Approvals()
    rules = [
        CallRule(name="searching", outcome="allow", tools=("*/search",)),
        CallRule(name="deleting", outcome="ask", tools=("*/fs.delete",)),
    ]
    policy, names = Policy(rules=rules, approvals=approvals), names_of(LISTED, Ledger.memory())
    sys.stdout.write(f"shown: {', '.join(tool['name'] for tool in tools_of(names, policy))}\n")
    asked = [
        {"name": "files_search", "call_id": "1", "arguments": '{"q": "names"}'},
        {"name": "search", "call_id": "2", "arguments": '{"q": "names"}'},
        {"name": "files_fs_delete", "call_id": "3", "arguments": '{"path": "a.txt"}'},
        {"name": "files_fs_delete", "call_id": "3", "arguments": '{"path": "a.txt"}'},
        {"name": "files_fs_delete", "call_id": "4", "arguments": '{"path": "b.txt"}'},
    ]
    for payload in asked:
        try:
            text = answer_to(payload, names, policy)
        except ApprovalRequired:
            decided(payload, names, approvals, allow="a.txt" in payload["arguments"])
            text = answer_to(payload, names, policy)
        sys.stdout.write(f"{payload['name']}: {text}\n")


if __name__ == "__main__":
    main()

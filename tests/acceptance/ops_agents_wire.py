"""Ops about what openai-agents sends and receives: MCP names, the Responses shape, ids and fingerprints of calls."""

from __future__ import annotations

from typing import Any

from tests.acceptance.agents import key_of, shown_key, tool_of, tools_of
from tests.acceptance.ops import Facts, Given, op
from tests.acceptance.rows import AGENTS
from truename.compat import openai_calls, openai_mcp, openai_responses
from truename.compat.openai_calls import AgentCall


def _servers(given: Given) -> list[tuple[str, list[str]]]:
    return [(server["name"], server["tools"]) for server in given["servers"]]


@op("mcp_prefixed_names", needs="servers reserved", shape=AGENTS)
def mcp_prefixed_names(given: Given) -> Facts:
    names = openai_mcp.prefixed_names(_servers(given), given["reserved"])
    return {"value": [name._asdict() for name in names]}


@op("mcp_unprefixed_names", needs="servers", shape=AGENTS)
def mcp_unprefixed_names(given: Given) -> Facts:
    return {"value": list(openai_mcp.unprefixed_names(_servers(given)))}


@op(
    "agent_exposed_tools",
    needs="servers tools handoffs plain_agent_handoffs include_server_in_tool_names",
    shape=AGENTS,
)
def agent_exposed_tools(given: Given) -> Facts:
    tools = tools_of(given["tools"])
    plain = [{"kind": "handoff", "agent": agent} for agent in given["plain_agent_handoffs"]]
    handoffs = tools_of([*given["handoffs"], *plain])
    if given["include_server_in_tool_names"]:
        reserved = openai_mcp.reserved_names(tools, handoffs)
        served = [name.public for name in openai_mcp.prefixed_names(_servers(given), reserved)]
    else:
        served = list(openai_mcp.unprefixed_names(_servers(given)))
    return {"value": [*served, *(tool.names.name for tool in tools)]}


@op("mcp_server_display_name", needs="name", shape=AGENTS)
def mcp_server_display_name(given: Given) -> Facts:
    return {"value": openai_mcp.get_mcp_server_log_name(given["name"])}


# What the rows keep of a tool as it is sent.
_SHOWN = ("type", "name", "defer_loading")


@op("responses_wire_shape", needs="tools handoffs", shape=AGENTS)
def responses_wire_shape(given: Given) -> Facts:
    sent = openai_responses.responses_tools(tools_of(given["tools"]), tools_of(given["handoffs"]))
    return {"value": [_shape(tool) for tool in sent]}


def _shape(tool: dict[str, Any]) -> dict[str, Any]:
    shape = {word: tool[word] for word in _SHOWN if word in tool}
    if "tools" not in tool:
        return shape
    return {**shape, "tools": [{word: inner[word] for word in _SHOWN[1:] if word in inner} for inner in tool["tools"]]}


@op("tool_choice", needs="choice tools handoffs", shape=AGENTS)
def tool_choice(given: Given) -> Facts:
    tools, handoffs = tools_of(given["tools"]), tools_of(given["handoffs"])
    return {"value": openai_responses.responses_tool_choice(given["choice"], tools, handoffs)}


@op("flat_dialect_support", needs="tool backend", shape=AGENTS)
def flat_dialect_support(given: Given) -> Facts:
    openai_responses.ensure_function_tool_supports_flat_backend(tool_of(given["tool"]), given["backend"])
    return {"value": None}


@op("call_id", needs="item", shape=AGENTS)
def call_id(given: Given) -> Facts:
    item = given["item"]
    invocation = openai_calls.tool_invocation_call_id(item)
    return {
        "approval_item": openai_calls.get_tool_approval_item_call_id(item),
        "payload": openai_calls.get_tool_call_id(item),
        "invocation": None if invocation is None else list(invocation),
    }


def _invocation(call: Given, **words: Any) -> dict[str, Any] | None:
    found = openai_calls.tool_invocation_identity(call, **words)
    if found is None:
        return None
    return {word: getattr(found, word) for word in ("type", "call_id", "approval_scope", "fingerprint")}


@op("invocation_fingerprint", needs="base call", shape=AGENTS)
def invocation_fingerprint(given: Given) -> Facts:
    base, call = _invocation(given["base"]), _invocation(given["call"])
    same = {word: bool(base and call and base[word] == call[word]) for word in ("approval_scope", "fingerprint")}
    return {
        "invocation": call,
        "same_scope_as_base": same["approval_scope"],
        "same_fingerprint_as_base": same["fingerprint"],
    }


@op("invocation_fingerprint_with", needs="call role lookup_key", shape=AGENTS)
def invocation_fingerprint_with(given: Given) -> Facts:
    words = {"invocation_role": given["role"], "tool_lookup_key": key_of(given["lookup_key"])}
    return {"value": _invocation(given["call"], **words)}


@op("hosted_mcp_identity", needs="item", shape=AGENTS)
def hosted_mcp_identity(given: Given) -> Facts:
    found = openai_calls.get_hosted_mcp_approval_request_identity(given["item"])
    if found is None:
        return {"value": None}
    words = ("request_id", "server_label", "tool_name", "persistent_identity")
    return {"value": {word: getattr(found, word) for word in words}}


@op("approval_item", needs="raw", shape=AGENTS)
def approval_item(given: Given) -> Facts:
    item = AgentCall(given["raw"])
    return {
        "tool_name": item.tool_name,
        "tool_namespace": item.tool_namespace,
        "lookup_key": shown_key(item.lookup_key),
        "qualified_name": item.qualified_name,
        "call_id": item.call_id,
        "exact_key": item.approval_keys[-1],
        "all_keys": list(item.approval_keys),
    }

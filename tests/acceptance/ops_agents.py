"""Ops about the identity layers of seed 001, in both vocabularies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tests.acceptance.agent_loop import Loop
from tests.acceptance.agents import TypedCall, call_of, key_of, shown_key, tool_of, tools_of
from tests.acceptance.ops import Facts, Given, op
from tests.acceptance.rows import AGENTS
from truename import Catalog, dialects, project
from truename.compat import openai_agents as compat
from truename.compat.openai_approvals import AgentApprovals
from truename.compat.openai_calls import AgentCall
from truename.compat.openai_tools import AgentsError
from truename.identity import (
    LookupKey,
    call_id,
    call_key,
    call_trace_name,
    check,
    collisions,
    default_agent_tool_name,
    default_handoff_name,
    is_reserved,
    lookup_key,
    normalized,
    qualified_name,
)
from truename.identity.keys import text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from truename.compat.openai_tools import AgentTool


@op("identity", needs="tool")
def identity(given: Given) -> Facts:
    return _layers(given["tool"])


def _layers(tool: Any, *, bare_alias: bool = False) -> Facts:
    names = tool_of(tool).names
    key = names.lookup_key
    return {
        "public_name": names.name,
        "namespace": names.namespace,
        "qualified_name": names.qualified_name,
        "lookup_key": None if key is None else list(key.tagged),
        "approval_keys": list(names.approval_keys(bare_alias=bare_alias)),
        "trace_name": names.trace_name,
    }


@op("identity_pair", needs="tools")
def identity_pair(given: Given) -> Facts:
    """Compare layer by layer: keys are distinct only if calls by them reach and decide on different tools."""
    tools = tools_of(given["tools"])
    one, other = map(_layers, given["tools"])
    holds = {"lookup_key": _reach_their_own(tools), "qualified_name": True, "approval_keys": _are_decided_apart(tools)}
    same = [word for word in ("public_name", *holds) if one[word] == other[word]]
    return {"same": same, "distinct": [word for word, is_apart in holds.items() if is_apart and word not in same]}


def _reach_their_own(tools: list[AgentTool]) -> bool:
    found = compat.build_function_tool_lookup_map(tools)
    keys = (call.lookup_key for call in _calls_of(tools))
    return [None if key is None else found.get(key) for key in keys] == tools


def _are_decided_apart(tools: list[AgentTool]) -> bool:
    """Tell whether a decision for always on one of them leaves the other undecided."""
    for one in range(len(tools)):
        approvals, calls = AgentApprovals(), _calls_of(tools)
        approvals.approve_tool(calls[one], always_approve=True)
        decided = [approvals.get_approval_status(call) for call in calls]
        if decided != [True if place == one else None for place in range(len(tools))]:
            return False
    return True


def _calls_of(tools: list[AgentTool]) -> list[AgentCall]:
    raw = ({"name": tool.names.name, "namespace": tool.names.namespace} for tool in tools)
    return [AgentCall(call_of({**said, "call_id": f"c{at}"}), tools[at], "a") for at, said in enumerate(raw)]


@op("handoff", needs="agent")
def handoff(given: Given) -> Facts:
    """Take the name from its source, and on every path on which a handoff is shown, called, checked or projected."""
    agent, name = given["agent"], default_handoff_name(given["agent"])
    made = tool_of({"kind": "handoff", "agent": agent})
    loop = Loop({**_RUN, "tools": [], "handoffs": [{"kind": "handoff", "agent": agent}], "calls": [_call(name)]})
    loop.run()
    catalog = Catalog.from_mcp([("handoffs", [made.names.name])])
    able = [one for one in dialects.table() if not one.check(name)]
    shown = {wire for one in able for wire in project(catalog, one, style="declared").values()}
    names = {made.names.name, compat.get_handoff_name(agent), *loop.seen["exposed"]["handoffs"], *shown}
    is_refused_twice = [_is_refused(other, made) for other in (name, f"{name}_2")] == [True, False]
    is_followed = made.has_default_name and loop.agent == agent and is_refused_twice
    return {"name": name, "same_on_all_paths": names == {name} and is_followed}


def _call(name: str) -> Mapping[str, str]:
    return {"name": name, "call_id": "c1"}


def _is_refused(name: str, beside: AgentTool) -> bool:
    """Tell whether a realtime session refuses a tool of this name beside a handoff."""
    try:
        compat.validate_realtime_tool_names([tool_of(name)], [beside])
    except AgentsError as error:
        return error.code == "duplicate_realtime_name"
    return False


@op("key_match", needs="tool call")
def key_match(given: Given) -> Facts:
    key, called = tool_of(given["tool"]).names.lookup_key, call_key(given["call"])
    return {"equal": key == called, "key": None if key is None else list(key.tagged)}


@op("call_key", needs="call")
def one_call_key(given: Given) -> Facts:
    key = call_key(given["call"])
    return {"key": None if key is None else list(key.tagged)}


@op("call_id", needs="payload")
def one_call_id(given: Given) -> Facts:
    return {"call_id": call_id(given["payload"])}


@op("two_calls", needs="tool call_ids")
def two_calls(given: Given) -> Facts:
    calls = [call_of({"name": tool_of(given["tool"]).names.name, "call_id": one}) for one in given["call_ids"]]
    return {
        "same_lookup_key": len({call_key(call) for call in calls}) == 1,
        "different_call_id": len({call_id(call) for call in calls}) == len(calls),
    }


@op("validate_tools", needs="tools")
def validate_tools(given: Given) -> Facts:
    return {"ok": len(collisions(tools_of(given["tools"])).members) == len(given["tools"])}


@op("dispatch", needs="tools call")
def dispatch(given: Given) -> Facts:
    tools = tools_of(given["tools"])
    check(tools)
    key = call_key(given["call"])
    found = compat.build_function_tool_lookup_map(tools).get(key) if key else None
    return {"dispatched_by": None if found is None or key is None else list(key.tagged)}


@op("normalize_call", needs="tool call")
def seed_normalize_call(given: Given) -> Facts:
    return {"call": normalized(tool_of(given["tool"]).names, given["call"])}


@op("deferred_surface", needs="surface call")
def deferred_surface(given: Given) -> Facts:
    """Run the call of a deferred tool through a pause, saved as JSON, and look at one place where it was seen."""
    call = given["call"]
    tool = {"id": "t", "name": call["name"], "defer_loading": True, "needs_approval": True}
    loop = Loop({**_RUN, "tools": [tool], "calls": [call], "decisions": [{call["call_id"]: {"do": "approve"}}]})
    loop.run()
    return {"namespace_preserved": _SURFACES[given["surface"]](loop) == [call["namespace"]]}


@op("approval_alias", needs="tool visible")
def approval_alias(given: Given) -> Facts:
    visible = tools_of(given["visible"])
    tool = next((one for one in visible if one == tool_of(given["tool"])), tool_of(given["tool"]))
    allowed = compat.should_allow_bare_name_approval_alias(tool, visible)
    return {"bare_alias": allowed, **_layers(given["tool"], bare_alias=allowed)}


@op("tool_namespace", needs="namespace tools")
def tool_namespace(given: Given) -> Facts:
    wrapped = compat.tool_namespace(name=given["namespace"], description="d", tools=tools_of(given["tools"]))
    return {"ok": all(tool.names.namespace == given["namespace"] for tool in wrapped)}


# A run of one agent that has nothing but its own tools.
_RUN: Final[Mapping[str, Any]] = {
    "handoffs": [],
    "servers": [],
    "decisions": [],
    "include_server_in_tool_names": False,
    "collision_policy": "error",
    "tool_not_found": "raise_error",
    "json_roundtrip": True,
}
# Where a call is seen in a run -> the namespaces that are seen there.
_SURFACES: Final[Mapping[str, Callable[[Loop], list[Any]]]] = {
    "approval": lambda loop: [call.tool_namespace for call in loop.decided],
    "interruption": lambda loop: [one["namespace"] for one in loop.seen["interruptions"]],
    "tracing": lambda loop: [one["namespace"] for one in loop.traced],
    "ToolContext": lambda loop: [one["call_namespace"] for one in loop.executed],
}


@op("name_parts", needs="name namespace", shape=AGENTS)
def name_parts(given: Given) -> Facts:
    name, namespace = given["name"], given["namespace"]
    return {
        "qualified_name": qualified_name(name, namespace),
        "trace_name": call_trace_name(name, namespace),
        "is_reserved_namespace": is_reserved(name, namespace),
        "lookup_key": shown_key(lookup_key(name, namespace)),
    }


@op("call_identity", needs="call", shape=AGENTS)
def call_identity(given: Given) -> Facts:
    call = given["call"]
    name = text(call.get("name"))
    namespace = text(call.get("namespace"))
    return {
        "name": name,
        "namespace": namespace,
        "qualified_name": qualified_name(name, namespace),
        "trace_name": compat.get_tool_call_trace_name(call),
        "lookup_key": shown_key(compat.get_function_tool_lookup_key_for_call(call)),
    }


@op("tool_identity", needs="tool", shape=AGENTS)
def tool_identity(given: Given) -> Facts:
    tool = tool_of(given["tool"])
    return {
        "public_name": compat.get_function_tool_public_name(tool),
        "namespace": compat.get_function_tool_namespace(tool),
        "is_deferred_top_level": tool.is_function and tool.names.is_deferred_top_level,
        "dispatch_name": compat.get_function_tool_dispatch_name(tool),
        "qualified_name": compat.get_function_tool_qualified_name(tool),
        "lookup_key": shown_key(compat.get_function_tool_lookup_key_for_tool(tool)),
        "lookup_keys": [shown_key(key) for key in compat.get_function_tool_lookup_keys(tool)],
        "trace_name": compat.get_function_tool_trace_name(tool),
        "agent_span_tool_name": tool.names.trace_name,
    }


@op("make_namespace", needs="namespace description names", shape=AGENTS)
def make_namespace(given: Given) -> Facts:
    wrapped = compat.tool_namespace(
        name=given["namespace"], description=given["description"], tools=tools_of(given["names"])
    )
    return {"value": [tool.names.qualified_name for tool in wrapped]}


@op("make_namespace_copy", needs="name wrap", shape=AGENTS)
def make_namespace_copy(given: Given) -> Facts:
    original = tool_of(given["name"])
    wrapped = [original]
    for namespace in given["wrap"]:
        wrapped += compat.tool_namespace(name=namespace, description="d", tools=wrapped[-1:])
    _, first, last = (tool.names.qualified_name for tool in wrapped)
    return {"original": original.names.qualified_name, "first": first, "rewrapped": last}


@op("lookup_map", needs="tools", shape=AGENTS)
def lookup_map(given: Given) -> Facts:
    found = compat.build_function_tool_lookup_map(tools_of(given["tools"]))
    return {"value": [{"key": shown_key(key), "tool": tool.owner} for key, tool in found.items()]}


@op("resolve", needs="tools call", shape=AGENTS)
def resolve(given: Given) -> Facts:
    key = compat.get_function_tool_lookup_key_for_call(given["call"])
    found = compat.build_function_tool_lookup_map(tools_of(given["tools"]))
    return {"lookup_key": shown_key(key), "tool": found[key].owner if key in found else None}


@op("resolve_collisions", needs="tools handoffs policy", shape=AGENTS)
def resolve_collisions(given: Given) -> Facts:
    tools, handoffs = compat.resolve_tool_name_collisions(
        tools_of(given["tools"]), tools_of(given["handoffs"]), collision_policy=given["policy"]
    )
    return {"kept_tools": [tool.owner for tool in tools], "kept_handoffs": [one.owner for one in handoffs]}


@op("strict_unique_names", needs="tools handoffs", shape=AGENTS)
def strict_unique_names(given: Given) -> Facts:
    compat.validate_realtime_tool_names(tools_of(given["tools"]), tools_of(given["handoffs"]))
    return {"value": None}


_KEY_WORDS = "tool_namespace allow_bare_name_alias prefer_legacy_same_name_namespace include_legacy_deferred_key"


@op("approval_keys", needs="tool_name", takes=f"{_KEY_WORDS} tool_lookup_key", shape=AGENTS)
def agents_approval_keys(given: Given) -> Facts:
    words = {word: given[word] for word in ("tool_name", *_KEY_WORDS.split()) if word in given}
    key = key_of(given.get("tool_lookup_key"))
    return {"value": list(compat.get_function_tool_approval_keys(**words, tool_lookup_key=key))}


@op("bare_alias_allowed", needs="tools tool", shape=AGENTS)
def bare_alias_allowed(given: Given) -> Facts:
    tools = tools_of(given["tools"])
    tool = next(one for one in tools if one.owner == given["tool"])
    return {"value": compat.should_allow_bare_name_approval_alias(tool, tools)}


@op("normalize_call", needs="tool call", shape=AGENTS)
def normalize_call(given: Given) -> Facts:
    return {"value": compat.normalize_tool_call_for_function_tool(given["call"], tool_of(given["tool"]))}


@op("normalize_call_object", needs="tool call", shape=AGENTS)
def normalize_call_object(given: Given) -> Facts:
    call = TypedCall(**call_of(given["call"]))
    before = call.model_dump()
    after = compat.normalize_tool_call_for_function_tool(call, tool_of(given["tool"]))
    return {
        "before": before,
        "after": after.model_dump(),
        "same_type": type(after) is type(call),
        "original_unchanged": call.model_dump() == before,
    }


@op("restore_call_namespace", needs="call lookup_key", shape=AGENTS)
def restore_call_namespace(given: Given) -> Facts:
    return {"value": compat.restore_tool_call_routing_identity(given["call"], key_of(given["lookup_key"]))}


@op("parse_lookup_key", needs="data", shape=AGENTS)
def parse_lookup_key(given: Given) -> Facts:
    return {"value": shown_key(LookupKey.parse(given["data"]))}


@op("handoff_default_name", needs="agent", shape=AGENTS)
def handoff_default_name(given: Given) -> Facts:
    return {"value": default_handoff_name(given["agent"])}


@op("agent_tool_default_name", needs="agent", shape=AGENTS)
def agent_tool_default_name(given: Given) -> Facts:
    return {"value": default_agent_tool_name(given["agent"])}


@op("handoff_name", needs="agent name", shape=AGENTS)
def handoff_name(given: Given) -> Facts:
    return {"value": compat.get_handoff_name(given["agent"], given["name"])}


@op("validate_generated_name", needs="name", shape=AGENTS)
def validate_generated_name(given: Given) -> Facts:
    return {"value": compat.validate_function_tool_fallback_name(given["name"])}

"""Ops about the identity layers of seed 001, in both vocabularies."""

from __future__ import annotations

from typing import Any

from tests.acceptance.agents import TypedCall, call_of, key_of, shown_key, tool_of, tools_of
from tests.acceptance.ops import Facts, Given, op
from tests.acceptance.rows import AGENTS
from truename.compat import openai_agents as compat
from truename.identity import (
    LookupKey,
    approval_keys,
    call_id,
    call_key,
    call_trace_name,
    check,
    collisions,
    is_reserved,
    lookup_key,
    normalized,
    qualified_name,
    restored,
)
from truename.identity.keys import text

_NAMES = ("public_name", "namespace", "qualified_name", "lookup_key", "approval_keys", "trace_name")


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
    one, other = map(_layers, given["tools"])
    same = [word for word in _NAMES if one[word] == other[word]]
    asked = ("lookup_key", "qualified_name", "approval_keys")
    return {"same": [word for word in same if word == "public_name"], "distinct": [w for w in asked if w not in same]}


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
    call = given["call"]
    seen = _SURFACES[given["surface"]](call)
    return {"namespace_preserved": seen.get("namespace") == call["namespace"]}


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

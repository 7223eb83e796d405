"""Provide the identity functions of openai-agents under its own names.

Tools may be Truename's (`ToolNames`, `ToolSetMember`, `AgentTool`) or that library's own objects; calls may be mappings
or its typed items. Nothing of the library is imported. docs/frameworks/openai-agents-compat.md lists the differences.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from truename.compat.openai_tools import (
    AgentsError,
    AgentTool,
    build_function_tool_lookup_map,
    member_of,
    members_of,
    names_of,
    payload_of,
    resolve_tool_name_collisions,
    tool_namespace,
    validate_function_tool_lookup_configuration,
    validate_realtime_tool_names,
)
from truename.errors import excerpt
from truename.identity import (
    LookupKey,
    approval_keys,
    call_key,
    call_trace_name,
    default_handoff_name,
    fold,
    is_reserved,
    normalized,
    qualified_name,
    restored,
)
from truename.identity.keys import payload_field

if TYPE_CHECKING:
    from collections.abc import Sequence

    from truename.identity import ApprovalKey, TraceName

__all__ = [
    "AgentTool",
    "AgentsError",
    "build_function_tool_lookup_map",
    "get_function_tool_approval_keys",
    "get_function_tool_dispatch_name",
    "get_function_tool_lookup_key_for_call",
    "get_function_tool_lookup_key_for_tool",
    "get_function_tool_lookup_keys",
    "get_function_tool_namespace",
    "get_function_tool_public_name",
    "get_function_tool_qualified_name",
    "get_function_tool_trace_name",
    "get_handoff_name",
    "get_tool_call_trace_name",
    "normalize_tool_call_for_function_tool",
    "resolve_tool_name_collisions",
    "restore_tool_call_routing_identity",
    "should_allow_bare_name_approval_alias",
    "tool_namespace",
    "tool_not_found_message",
    "validate_function_tool_fallback_name",
    "validate_function_tool_lookup_configuration",
    "validate_realtime_tool_names",
]

_GENERATED: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


def get_function_tool_public_name(tool: object) -> str | None:
    """Return the name of a function tool; None for any other tool."""
    names = names_of(tool)
    return None if names is None else names.name


def get_function_tool_namespace(tool: object) -> str | None:
    """Return the namespace of a function tool."""
    names = names_of(tool)
    return None if names is None else names.namespace or None


def get_function_tool_lookup_key_for_tool(tool: object) -> LookupKey | None:
    """Return the one key that dispatches to a function tool."""
    names = names_of(tool)
    return None if names is None else names.lookup_key


def get_function_tool_lookup_keys(tool: object) -> tuple[LookupKey, ...]:
    """Return the keys of a function tool as a tuple, which is empty for other tools."""
    key = get_function_tool_lookup_key_for_tool(tool)
    return () if key is None else (key,)


def get_function_tool_lookup_key_for_call(tool_call: object) -> LookupKey | None:
    """Return the key that a call is dispatched by.

    >>> get_function_tool_lookup_key_for_call({"name": "lookup", "namespace": "lookup"})
    LookupKey(kind='deferred_top_level', name='lookup', namespace=None)
    """
    return call_key(tool_call)


def get_function_tool_dispatch_name(tool: object) -> str | None:
    """Return ``namespace.name``, or the name alone: for display and for finding duplicates, never to call a tool."""
    names = names_of(tool)
    return None if names is None else names.qualified_name


def get_function_tool_qualified_name(tool: object) -> str | None:
    """Return the result of `get_function_tool_dispatch_name`, for which the library has two names."""
    return get_function_tool_dispatch_name(tool)


def get_function_tool_trace_name(tool: object) -> TraceName | None:
    """Return the label of a tool in traces: its qualified name."""
    names = names_of(tool)
    return None if names is None else call_trace_name(names.name, names.namespace)


def get_tool_call_trace_name(tool_call: object) -> TraceName | None:
    """Return the label of a call in traces, without a namespace that only marks deferred loading."""
    return call_trace_name(payload_field(tool_call, "name"), payload_field(tool_call, "namespace"))


def get_function_tool_approval_keys(
    *,
    tool_name: object,
    tool_namespace: object = None,
    allow_bare_name_alias: bool = False,
    tool_lookup_key: LookupKey | tuple[str, ...] | None = None,
    prefer_legacy_same_name_namespace: bool = False,
    include_legacy_deferred_key: bool = False,
) -> tuple[ApprovalKey, ...]:
    """Return the texts under which decisions are filed: the exact one last, except after a legacy form.

    They are for people, and for states that the library saved. Two keys can have the same text, so nothing is approved
    by them: `truename.policy` uses the tool's id.

    >>> get_function_tool_approval_keys(tool_name="x", tool_namespace="x", allow_bare_name_alias=True)
    ('x', 'deferred_top_level:x')
    """
    bare, key = approval_keys(tool_name), LookupKey.of(tool_lookup_key)
    if not bare:
        return ()
    if prefer_legacy_same_name_namespace and key is None and is_reserved(tool_name, tool_namespace):
        exact = approval_keys(qualified_name(tool_name, tool_namespace))
    else:
        exact = approval_keys(tool_name, tool_namespace, key=key, legacy=include_legacy_deferred_key)
    return tuple(dict.fromkeys((*bare, *exact) if allow_bare_name_alias else exact))


def should_allow_bare_name_approval_alias(tool: object, all_tools: Sequence[object]) -> bool:
    """Return whether a decision on one call may be filed under the bare name too.

    True only for a deferred top-level tool whose name no other tool outside a namespace has; the library considers
    function tools alone.
    """
    names = names_of(tool)
    if names is None or not names.is_deferred_top_level:
        return False
    others = (member_of(other).names for other in all_tools if other is not tool)
    return not any(other.name == names.name and not other.namespace for other in others)


def get_handoff_name(agent: str, tool_name_override: str | None = None) -> str:
    """Return the name of a handoff: the override unchanged, or the default if it is empty.

    >>> get_handoff_name("Billing Agent"), get_handoff_name("A", "my handoff!")
    ('transfer_to_billing_agent', 'my handoff!')
    """
    return tool_name_override or default_handoff_name(agent)


def validate_function_tool_fallback_name(name: str) -> str:
    """Return a name derived from a class. Raises `AgentsError` ``fallback_name_invalid``."""
    if _GENERATED.fullmatch(name) is None:
        raise AgentsError(code="fallback_name_invalid", name=name)
    return name


def normalize_tool_call_for_function_tool(tool_call: Any, tool: object) -> Any:
    """Return a call as the tool expects it: for a deferred tool, a copy without the synthetic namespace.

    A typed item gives an item of its own type; any other call is returned unchanged.
    """
    names = names_of(tool)
    return tool_call if names is None else _like(tool_call, normalized(names, payload_of(tool_call)))


def restore_tool_call_routing_identity(tool_call: Any, lookup_key: LookupKey | tuple[str, ...] | None) -> Any:
    """Return a recorded call with the namespace of its saved key, if the record lost it."""
    return _like(tool_call, restored(payload_of(tool_call), LookupKey.of(lookup_key)))


def _like(item: Any, payload: dict[str, object]) -> Any:
    if payload == payload_of(item):
        return item
    return payload if isinstance(item, Mapping) else type(item)(**payload)


def tool_not_found_message(tool_call: object, tools: Sequence[object]) -> str:
    """Return the text for a model whose call matches no tool.

    A tool whose name differs only in case, ``-`` and ``_`` is suggested, but never called.

    >>> from truename.identity import ToolNames
    >>> tool_not_found_message({"name": "Get-Lead"}, [ToolNames(name="get_lead")])
    "Tool 'Get-Lead' not found. Did you mean 'get_lead'?"
    """
    asked = qualified_name(payload_field(tool_call, "name"), payload_field(tool_call, "namespace")) or ""
    names = {member.names.qualified_name or "" for member in members_of(tools)}
    near = sorted(name for name in names if name != asked and fold(name) == fold(asked))
    hint = f" Did you mean {' or '.join(map(excerpt, near))}?" if near else ""
    return f"Tool {excerpt(asked)} not found.{hint}"

"""What openai-agents refuses, under that library's own codes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from truename.errors import TruenameError, excerpt

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["AgentsError"]

_TEXTS: Final[Mapping[str, str]] = {
    "duplicate_function_tool": "Several tools are called {name}. Give each a name or a namespace of its own.",
    "duplicate_handoff": "Several handoffs are called {name}. Give each a name of its own.",
    "tool_handoff_collision": "A tool and a handoff are both called {name}. Rename one of them.",
    "derived_agent_tool_collision": "Agents {other} as tools are both called {name} by default. Name one of them.",
    "derived_handoff_collision": "Handoffs to agents {other} are both called {name} by default. Name one of them.",
    "derived_mixed_collision": "Agents {other}, a tool and a handoff, are both called {name} by default. Name one.",
    "duplicate_realtime_name": "{name} is the name of several tools or handoffs. Realtime sessions need one of each.",
    "duplicate_mcp_tool": "Several MCP servers have a tool {name}. Include the servers in the names of tools.",
    "reserved_namespace": "Tool search keeps namespace {name} for the deferred tool {name}. Rename one of them.",
    "duplicate_deferred_top_level": "Several deferred tools are called {name}. Rename all but one.",
    "ambiguous_qualified_name": "Several tools read {name} with their namespaces. Rename all but one.",
    "namespace_empty": "A namespace needs a name. Give it one.",
    "namespace_description_empty": "Namespace {name} needs a description. Give it one.",
    "namespace_not_function": "{other} can't be in namespace {name}. Only function tools can.",
    "namespace_description_mismatch": "The tools of namespace {name} describe it differently. Give it one description.",
    "fallback_name_invalid": "{name} can't be a tool's name. Pass one of 1 to 64 of A-Z, a-z, 0-9, _ and -.",
    "dialect_unsupported": "{other} knows neither namespaces nor deferred loading, which {name} needs. Use Responses.",
    "tool_search_without_surface": "Tool search has nothing to find. Add a namespace or a deferred tool, or leave it.",
    "tool_search_missing": "Deferred tools are found by tool search only. Add it.",
    "multiple_tool_search": "Tool search is there several times. Leave one.",
    "tool_choice_namespace": "{name} is a namespace or a name inside one. Choose a tool that can be called by it.",
    "tool_choice_deferred": "{name} is not loaded yet. Choose another, or load it by tool search first.",
    "tool_choice_tool_search": "Tool search can't be chosen by name. Use auto or required.",
    "tool_choice_required_deferred": "Deferred tools can't be required without tool search. Add it, or use auto.",
    "call_id_missing": "The call of {name} has no id; nothing was run. Every call needs one, a text.",
    "call_id_reused": "Call id {name} was used for another call; nothing was run. Every call needs an id of its own.",
    "call_repeated": "Call {name} was begun before (it is {other}); it was not run again. Make a new call.",
    "hosted_request_id_missing": "The request for {name} has no id; nothing was decided. Every request needs one.",
    "hosted_identity_missing": "The request {name} names no server and tool, so it can be decided only this once.",
    "invocation_identity_missing": "The call {name} can't be identified; nothing was decided. Give it whole.",
    "origin_invalid": "{name} can't be the name of a server: it holds a control character. Give it another.",
    "item_too_deep": "An item is nested too deep; nothing was run. Send a smaller one.",
    "tool_not_found": "Tool {name} not found in agent {other}; nothing was run. Call one of its tools exactly.",
    "mcp_binding_changed": "{name} is not the tool that was asked about; nothing was run. Start the call anew.",
    "state_invalid": "The saved state can't be read: {other}. Nothing was restored.",
    "newer": "The saved state is of version {name}, which is newer than this Truename. Upgrade Truename.",
}


@dataclass(kw_only=True, eq=False, repr=False)
class AgentsError(TruenameError):
    """Something that openai-agents refuses: its ``code``, what it is about, and what else there is to it."""

    code: str
    name: str = ""
    other: str = ""

    def __str__(self) -> str:
        return _TEXTS[self.code].format(name=excerpt(self.name), other=self.other)

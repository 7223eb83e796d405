"""From what a row about openai-agents gives to Truename's values: tools, handoffs, calls, keys."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from tests.acceptance.world import NotChecked
from truename.compat.openai_agents import AgentTool, get_handoff_name
from truename.identity import LookupKey, ToolNames, default_agent_tool_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from truename.identity.toolsets import Kind

__all__ = ["NAMESPACE", "call_of", "key_of", "shown_key", "tool_of", "tools_of"]

# What a row calls a kind of tool -> ours.
_KINDS: Final[Mapping[str, Kind]] = {
    "function": "function",
    "mcp": "function",
    "agent_tool": "agent_tool",
    "handoff": "handoff",
    "custom": "custom",
    "hosted_mcp": "hosted",
    "tool_search": "hosted",
}
_DEFAULT: Final = {"agent_tool": default_agent_tool_name, "handoff": get_handoff_name}
# What a tool in a namespace says of the namespace, where the row leaves it to the driver.
NAMESPACE: Final = "ns"
_FIELDS: Final = frozenset(
    {"id", "kind", "name", "namespace", "namespace_unchecked", "namespace_description", "defer_loading"}
    | {"agent", "server", "trace_name", "needs_approval"}
)


def tool_of(given: Mapping[str, Any] | str) -> AgentTool:
    """Return the tool or handoff of a row; a text is a function's name."""
    if isinstance(given, str):
        return AgentTool(ToolNames(name=given))
    strange = sorted(given.keys() - _FIELDS)
    kind = given.get("kind", "function")
    if strange or kind not in _KINDS:
        raise NotChecked(f"no tool is known of kind {kind!r} with {strange}")
    agent = given.get("agent") or ""
    own = given.get("name") or (_DEFAULT[kind](agent) if kind in _DEFAULT else "")
    names = ToolNames(
        name=own,
        namespace=given.get("namespace"),
        defer_loading=given.get("defer_loading", False),
        label=given.get("trace_name"),
    )
    space = given.get("namespace_description", NAMESPACE) if names.namespace else ""
    return AgentTool(names, _KINDS[kind], given.get("id", ""), agent, space)


def tools_of(given: Iterable[Mapping[str, Any] | str]) -> list[AgentTool]:
    """Return the tools of a row, in order."""
    return [tool_of(one) for one in given]


def call_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the provider's call of a row, with what every function call has."""
    return {"type": "function_call", "arguments": "{}", **given}


def key_of(given: Mapping[str, Any] | None) -> LookupKey | None:
    """Return the lookup key that a row writes."""
    return LookupKey.parse(given)


def shown_key(key: LookupKey | None) -> dict[str, str] | None:
    """Return a lookup key as the rows write it."""
    return None if key is None else key.plain()


class TypedCall(SimpleNamespace):
    """A call as a client library's typed object: what was set in it is dumped, and it is built from that."""

    def model_dump(self, **_: object) -> dict[str, Any]:
        return dict(vars(self))

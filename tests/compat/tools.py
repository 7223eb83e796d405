"""Tools and calls of these tests, and the library's own objects as far as they are read."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from truename.catalog import Origin
from truename.compat.openai_agents import AgentTool
from truename.compat.openai_calls import AgentCall
from truename.identity import ToolNames

if TYPE_CHECKING:
    from truename.identity.toolsets import Kind


def tool(text: str, kind: Kind = "function", owner: str = "", agent: str = "") -> AgentTool:
    """Write ``n/x`` for a tool in a namespace and ``?x`` for a deferred one."""
    namespace, _, name = text.rpartition("/")
    names = ToolNames(name=name.lstrip("?"), namespace=namespace or None, defer_loading="?" in text)
    return AgentTool(names, kind, owner, agent)


def served(server: str, name: str, public: str = "", id: str = "") -> AgentTool:
    """Return a tool of an MCP server."""
    return AgentTool(ToolNames(name=public or name), owner=id or server, origin=Origin(server, name, id or server))


def payload(name: str = "x", id: Any = "1", **fields: Any) -> dict[str, Any]:
    """Return a call as the provider sends it."""
    return {"type": "function_call", "name": name, "call_id": id, "arguments": "{}", **fields}


def call(of: AgentTool, id: Any = "1", arguments: Any = "{}", agent: str = "A") -> AgentCall:
    """Return a call of a tool by an agent."""
    key = of.names.lookup_key
    assert key is not None
    named = {"namespace": key.call_namespace} if key.call_namespace else {}
    return AgentCall(payload(key.name, id, arguments=arguments, **named), of, agent)


def theirs(name: str, **fields: Any) -> Any:
    """Return an object with the shape of the library's function tool."""
    return SimpleNamespace(
        name=name, description="d", params_json_schema={"type": "object"}, on_invoke_tool=lambda: None, **fields
    )

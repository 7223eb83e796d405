"""Tools as openai-agents has them: ours, or that library's own objects, read without importing it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from truename.compat.openai_errors import AgentsError
from truename.identity import Member, ToolNames, default_agent_tool_name, default_handoff_name, is_reserved
from truename.identity.keys import payload_field as field_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from truename.catalog import Origin
    from truename.identity.toolsets import Kind

__all__ = ["AgentTool", "member_of", "members_of", "names_of", "payload_of", "raw_item_of", "tool_namespace"]

_FUNCTIONS: Final = ("function", "agent_tool")
_DEFAULT_NAMES: Final = {"agent_tool": default_agent_tool_name, "handoff": default_handoff_name}


@dataclass(frozen=True, slots=True)
class AgentTool(Member):
    """A tool as an agent declares it.

    ``agent`` is the agent behind a handoff or an agent used as a tool; ``space`` describes the namespace;
    ``definition`` is what the provider is sent besides the name; ``origin`` is where an MCP tool comes from.
    """

    agent: str = ""
    space: str = ""
    definition: Mapping[str, Any] = field(default_factory=dict, hash=False)
    origin: Origin | None = None

    @property
    def is_function(self) -> bool:
        """Whether it is called as a function; custom, hosted and search tools have no identity in that library."""
        return self.kind in _FUNCTIONS and bool(self.names.name)

    @property
    def has_default_name(self) -> bool:
        """Whether its name was made from its agent's, and nobody renamed it since."""
        return bool(self.agent) and self.names.name == _DEFAULT_NAMES[self.kind](self.agent)


def member_of(tool: object) -> AgentTool:
    """Return a tool, a handoff, or an object of that library as ours; what has no name at all gets an empty one."""
    if isinstance(tool, AgentTool):
        return tool
    if isinstance(tool, Member):
        return AgentTool(tool.names, tool.kind, tool.owner)
    if isinstance(tool, ToolNames):
        return AgentTool(tool)
    if callable(getattr(tool, "on_invoke_handoff", None)):
        return AgentTool(ToolNames(name=_string(tool, "tool_name")), "handoff", agent=_agent(tool))
    if not _is_function(tool):
        return AgentTool(ToolNames(name=_string(tool, "name")), "custom")
    return _function(tool)


def members_of(tools: Iterable[object]) -> tuple[AgentTool, ...]:
    """Return all of them as ours, in their order."""
    return tuple(map(member_of, tools))


def names_of(tool: object) -> ToolNames | None:
    """Return the names of a tool that is called as a function; None for any other."""
    member = member_of(tool)
    return member.names if member.is_function else None


def payload_of(item: Any) -> Mapping[str, Any]:
    """Return a mapping as it is, and of a typed item what was set in it; nothing of anything else."""
    if isinstance(item, Mapping):
        return item
    dump = getattr(item, "model_dump", None)
    found = dump(exclude_unset=True) if callable(dump) else None
    return found if isinstance(found, Mapping) else {}


def raw_item_of(item: Any) -> Any:
    """Return what an approval item is about (its ``raw_item``), and any other item as it is."""
    wrapped = field_of(item, "raw_item")
    return item if wrapped is None else wrapped


def tool_namespace(*, name: object, description: object, tools: Iterable[object]) -> tuple[AgentTool, ...]:
    """Return copies of function tools in a namespace; one that they were in before is replaced, not nested.

    Raises `AgentsError`: ``namespace_empty``, ``namespace_description_empty``, ``namespace_not_function``, and
    ``reserved_namespace`` for a namespace that equals a tool's name (seed 001).

    >>> [copy.names.qualified_name for copy in tool_namespace(name=" crm ", description="CRM", tools=[
    ...     ToolNames(name="lookup")])]
    ['crm.lookup']
    """
    space = name.strip() if isinstance(name, str) else ""
    about = description.strip() if isinstance(description, str) else ""
    if not space:
        raise AgentsError(code="namespace_empty")
    if not about:
        raise AgentsError(code="namespace_description_empty", name=space)
    return tuple(_wrapped(member, space, about) for member in members_of(tools))


def _wrapped(member: AgentTool, space: str, about: str) -> AgentTool:
    if not member.is_function:
        raise AgentsError(code="namespace_not_function", name=space, other=str(member))
    if is_reserved(member.names.name, space):
        raise AgentsError(code="reserved_namespace", name=space)
    return replace(member, names=replace(member.names, namespace=space), space=about)


def _is_function(tool: object) -> bool:
    return callable(getattr(tool, "on_invoke_tool", None)) and isinstance(
        getattr(tool, "params_json_schema", None), dict
    )


def _function(tool: object) -> AgentTool:
    names = ToolNames(
        name=_string(tool, "name"),
        namespace=_string(tool, "_tool_namespace") or None,
        defer_loading=bool(getattr(tool, "defer_loading", False)),
    )
    agent = _agent(tool)
    definition = {"description": _string(tool, "description"), "parameters": getattr(tool, "params_json_schema", {})}
    kind: Kind = "agent_tool" if agent else "function"
    return AgentTool(names, kind, "", agent, _string(tool, "_tool_namespace_description"), definition)


def _agent(tool: object) -> str:
    """Return the agent that the library derived the tool's name from, if it says so."""
    for attribute in ("_agent_tool_default_identity", "_default_tool_identity"):
        match getattr(tool, attribute, None):
            case (str() as agent, str()):
                return agent
    return ""


def _string(tool: object, attribute: str) -> str:
    value = getattr(tool, attribute, None)
    return value if isinstance(value, str) else ""

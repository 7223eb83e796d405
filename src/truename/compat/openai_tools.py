"""Represent tools and sets of tools as openai-agents does, and refuse with its error codes."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, cast

from truename.errors import DuplicateTool, TruenameError, excerpt
from truename.identity import (
    ToolNames,
    ToolSetMember,
    check,
    clashes,
    default_agent_tool_name,
    default_handoff_name,
    is_reserved,
)
from truename.identity.keys import payload_field as field_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from truename.catalog import Origin
    from truename.identity import LookupKey, ToolSetClash
    from truename.identity.toolsets import Kind

__all__ = [
    "AgentTool",
    "AgentsError",
    "build_function_tool_lookup_map",
    "member_of",
    "members_of",
    "names_of",
    "payload_of",
    "raw_item_of",
    "resolve_tool_name_collisions",
    "tool_namespace",
    "validate_function_tool_lookup_configuration",
    "validate_realtime_tool_names",
]

_TEXTS: Final[Mapping[str, str]] = {
    "duplicate_function_tool": "Several tools are called {name}. Give each its own name or namespace.",
    "duplicate_handoff": "Several handoffs are called {name}. Give each its own name.",
    "tool_handoff_collision": "A tool and a handoff are both called {name}. Rename one of them.",
    "derived_agent_tool_collision": "Agents {other}, as tools, are both called {name} by default. Name one of them.",
    "derived_handoff_collision": "The handoffs to agents {other} are both called {name} by default. Name one of them.",
    "derived_mixed_collision": "Agents {other}, a tool and a handoff, are both called {name} by default. Name one.",
    "duplicate_realtime_name": "{name} is the name of several tools or handoffs. Realtime sessions need unique names.",
    "duplicate_mcp_tool": "Several MCP servers have a tool {name}. Include the server in the names of tools.",
    "reserved_namespace": "Namespace {name} is reserved for the deferred tool {name}. Rename one of them.",
    "duplicate_deferred_top_level": "Several deferred tools are called {name}. Rename all but one.",
    "ambiguous_qualified_name": "Several tools have the qualified name {name}. Rename all but one.",
    "namespace_empty": "A namespace has no name. Give it one.",
    "namespace_description_empty": "Namespace {name} has no description. Give it one.",
    "namespace_not_function": "{other} cannot be in namespace {name}. Only function tools can.",
    "namespace_description_mismatch": "The tools of namespace {name} describe it differently. Give it one description.",
    "fallback_name_invalid": "{name} cannot be the name of a tool. Use 1 to 64 characters of A-Z, a-z, 0-9, _ and -.",
    "dialect_unsupported": "{other} has no namespaces and no deferred loading, which {name} needs. Use Responses.",
    "tool_search_without_surface": "Tool search has nothing to find. Add a namespace or a deferred tool, or remove it.",
    "tool_search_missing": "Deferred tools need tool search. Add it.",
    "multiple_tool_search": "Tool search is configured several times. Keep one.",
    "tool_choice_namespace": "{name} is a namespace or a name inside one. Choose a callable name.",
    "tool_choice_deferred": "{name} is not loaded yet. Choose another tool, or load it by tool search first.",
    "tool_choice_tool_search": "Tool search cannot be chosen by name. Use auto or required.",
    "tool_choice_required_deferred": "Deferred tools cannot be required without tool search. Add it, or use auto.",
    "call_id_missing": "The call of {name} has no id; nothing was run. Give every call an id, as a string.",
    "call_id_reused": "Call id {name} was used for another call; nothing was run. Give every call its own id.",
    "call_repeated": "Call {name} was already started (its state is {other}); it was not run again. Make a new call.",
    "hosted_request_id_missing": "The request for {name} has no id; nothing was decided. Give every request an id.",
    "hosted_identity_missing": "The request {name} names no server and tool. Decide about this request only.",
    "invocation_identity_missing": "The call {name} cannot be identified; nothing was decided. Pass the complete call.",
    "origin_invalid": "{name} cannot be the name of a server: it contains a control character. Rename the server.",
    "item_too_deep": "An item is nested too deeply; nothing was run. Send a smaller one.",
    "tool_not_found": "Tool {name} not found in agent {other}; nothing was run. Call one of its tools exactly.",
    "mcp_binding_changed": "{name} is not the tool that was approved; nothing was run. Start the call again.",
    "state_invalid": "The saved state is not readable: {other}. Nothing was restored.",
    "newer": "The saved state is of version {name}, which is newer than this Truename. Upgrade Truename.",
}


@dataclass(kw_only=True, eq=False, repr=False)
class AgentsError(TruenameError):
    """An error of openai-agents: its ``code``, the name that it concerns, and further details."""

    code: str
    name: str = ""
    other: str = ""

    def __str__(self) -> str:
        return _TEXTS[self.code].format(name=excerpt(self.name), other=self.other)


_FUNCTIONS: Final = ("function", "agent_tool")
_DEFAULT_NAMES: Final = {"agent_tool": default_agent_tool_name, "handoff": default_handoff_name}


@dataclass(frozen=True, slots=True)
class AgentTool(ToolSetMember):
    """A tool as an agent declares it.

    ``agent`` is the agent behind a handoff or an agent used as a tool; ``space`` describes the namespace;
    ``definition`` has the other fields sent to the provider; ``origin`` is the origin of an MCP tool.
    """

    agent: str = ""
    space: str = ""
    definition: Mapping[str, object] = field(default_factory=dict, hash=False)
    origin: Origin | None = None

    @property
    def is_function(self) -> bool:
        """Whether it is called as a function; custom, hosted and search tools have no identity in the library."""
        return self.kind in _FUNCTIONS and bool(self.names.name)

    @property
    def has_default_name(self) -> bool:
        """Whether its name was derived from its agent's name, and not changed."""
        return bool(self.agent) and self.names.name == _DEFAULT_NAMES[self.kind](self.agent)


def member_of(tool: object) -> AgentTool:
    """Convert a tool, a handoff, or an object of the library; a tool without a name gets an empty one."""
    if isinstance(tool, AgentTool):
        return tool
    if isinstance(tool, ToolSetMember):
        return AgentTool(tool.names, tool.kind, tool.owner)
    if isinstance(tool, ToolNames):
        return AgentTool(tool)
    if callable(getattr(tool, "on_invoke_handoff", None)):
        return AgentTool(ToolNames(name=_string(tool, "tool_name")), "handoff", agent=_agent(tool))
    is_schema = isinstance(getattr(tool, "params_json_schema", None), dict)
    if is_schema and callable(getattr(tool, "on_invoke_tool", None)):
        return _function(tool)
    return AgentTool(ToolNames(name=_string(tool, "name")), "custom")


def members_of(tools: Iterable[object]) -> tuple[AgentTool, ...]:
    """Convert tools in their order."""
    return tuple(map(member_of, tools))


def names_of(tool: object) -> ToolNames | None:
    """Return the names of a function tool; None for any other."""
    member = member_of(tool)
    return member.names if member.is_function else None


def payload_of(item: object) -> Mapping[str, object]:
    """Return a mapping unchanged, the set fields of a typed item, and an empty mapping for anything else."""
    if isinstance(item, Mapping):
        return item
    dump = getattr(item, "model_dump", None)
    found = dump(exclude_unset=True) if callable(dump) else None
    return found if isinstance(found, Mapping) else {}


def raw_item_of(item: Any) -> Any:
    """Return the call inside an approval item (its ``raw_item``), and any other item unchanged."""
    wrapped = field_of(item, "raw_item")
    return item if wrapped is None else wrapped


def tool_namespace(*, name: object, description: object, tools: Iterable[object]) -> tuple[AgentTool, ...]:
    """Return copies of function tools in a namespace, which replaces an earlier one.

    Raises `AgentsError`: ``namespace_empty``, ``namespace_description_empty``, ``namespace_not_function``, and
    ``reserved_namespace`` for a namespace that equals a tool's name.

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
    """Return the agent from which the library derived the tool's name; "" if it does not say."""
    for attribute in ("_agent_tool_default_identity", "_default_tool_identity"):
        match getattr(tool, attribute, None):
            case (str() as agent, str()):
                return agent
    return ""


def _string(tool: object, attribute: str) -> str:
    value = getattr(tool, attribute, None)
    return value if isinstance(value, str) else ""


_T = TypeVar("_T")
_LOG: Final = logging.getLogger(__name__)
# Our error code, and the library's code for it.
_REFUSALS: Final[Mapping[str, str]] = {
    "reserved_namespace": "reserved_namespace",
    "duplicate_deferred": "duplicate_deferred_top_level",
    "duplicate_name": "ambiguous_qualified_name",
    "ambiguous_qualified_name": "ambiguous_qualified_name",
}
# The kinds of the clashing tools, and the library's code for the clash.
_DERIVED: Final[Mapping[frozenset[str], str]] = {
    frozenset({"agent_tool"}): "derived_agent_tool_collision",
    frozenset({"handoff"}): "derived_handoff_collision",
    frozenset({"agent_tool", "handoff"}): "derived_mixed_collision",
}
_CLASHES: Final[Mapping[frozenset[bool], str]] = {
    frozenset({False}): "duplicate_function_tool",
    frozenset({True}): "duplicate_handoff",
    frozenset({False, True}): "tool_handoff_collision",
}


def validate_function_tool_lookup_configuration(tools: Sequence[object]) -> None:
    """Refuse function tools that cannot be used together under any policy.

    Raises the first of these as `AgentsError`: ``reserved_namespace``, ``duplicate_deferred_top_level``,
    ``ambiguous_qualified_name``.
    """
    try:
        check(member for member in members_of(tools) if member.is_function)
    except DuplicateTool as error:
        raise _known(error) from None
    except ExceptionGroup as group:
        raise _known(cast("DuplicateTool", group.exceptions[0])) from None


def _known(error: DuplicateTool) -> AgentsError:
    return AgentsError(code=_REFUSALS[error.code], name=error.name)


def build_function_tool_lookup_map(tools: Sequence[_T]) -> dict[LookupKey, _T]:
    """Return a map from keys to tools, after validation; of two bare tools with one name, the last.

    To refuse such a pair, first call `resolve_tool_name_collisions` with ``error``, or `truename.identity.collisions`.
    """
    validate_function_tool_lookup_configuration(tools)
    keyed = ((names.lookup_key, tool) for tool in tools if (names := names_of(tool)) is not None)
    return {key: tool for key, tool in keyed if key is not None}


def resolve_tool_name_collisions(
    tools: Sequence[_T], handoffs: Sequence[_T] = (), *, collision_policy: Literal["warn", "error"] = "error"
) -> tuple[list[_T], list[_T]]:
    """Return the tools and handoffs to show to a model, after validation.

    ``error``, the default, raises `AgentsError` for any two with one bare name, custom tools included. ``warn`` keeps
    the last handoff, or else the last function tool, and logs the others.
    """
    validate_function_tool_lookup_configuration(tools)
    given = members_of([*tools, *handoffs])
    is_strict = collision_policy == "error"
    compared = [member for member in given if is_strict or member.is_function or member.kind == "handoff"]
    keys = [(clash, clash.winner.names.lookup_key) for clash in clashes(compared)]
    found = [clash for clash, key in keys if key is not None and key.kind == "bare"]
    if found and is_strict:
        agents = " and ".join(excerpt(member.agent) for member in _agent_tools(found[0]) if member.agent)
        raise AgentsError(code=_code(found[0]), name=found[0].winner.names.name, other=agents)
    for clash in found:
        _LOG.warning("%s cannot be called: %s has the same name", " and ".join(map(str, clash.losers)), clash.winner)
    gone = {id(loser) for clash in found for loser in clash.losers}
    kept = [item for item, member in zip([*tools, *handoffs], given, strict=True) if id(member) not in gone]
    return kept[: (cut := sum(id(member) not in gone for member in given[: len(tools)]))], kept[cut:]


def _code(clash: ToolSetClash) -> str:
    derived = [member for member in _agent_tools(clash) if member.has_default_name]
    if len(clash.members) == 2 and len({member.agent for member in derived}) == 2:
        return _DERIVED[frozenset(member.kind for member in derived)]
    return _CLASHES[frozenset(member.kind == "handoff" for member in clash.members)]


def _agent_tools(clash: ToolSetClash) -> list[AgentTool]:
    return [member_of(member) for member in clash.members]


def validate_realtime_tool_names(tools: Sequence[object], handoffs: Sequence[object] = ()) -> None:
    """Refuse a repeated name, whatever its namespace: realtime sessions have no namespaces.

    Raises `AgentsError` ``duplicate_realtime_name``. Custom tools count too, unlike in the library.
    """
    counts = Counter(member.names.name for member in members_of([*tools, *handoffs]) if member.names.name)
    if repeated := sorted(name for name, count in counts.items() if count > 1):
        raise AgentsError(code="duplicate_realtime_name", name=repeated[0], other=", ".join(map(excerpt, repeated)))

"""Sets of tools as openai-agents checks them: what can't stand side by side, dispatch maps, collisions."""

from __future__ import annotations

import logging
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from truename.compat.openai_errors import AgentsError
from truename.compat.openai_tools import member_of, members_of, names_of
from truename.errors import DuplicateTool, excerpt
from truename.identity import check, clashes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from truename.compat.openai_tools import AgentTool
    from truename.identity import Clash, LookupKey

__all__ = [
    "build_function_tool_lookup_map",
    "resolve_tool_name_collisions",
    "validate_function_tool_lookup_configuration",
    "validate_realtime_tool_names",
]

_LOG: Final = logging.getLogger(__name__)
# Our code for what no policy can settle -> that library's.
_REFUSALS: Final[Mapping[str, str]] = {
    "reserved_namespace": "reserved_namespace",
    "duplicate_deferred": "duplicate_deferred_top_level",
    "duplicate_name": "ambiguous_qualified_name",
    "ambiguous_qualified_name": "ambiguous_qualified_name",
}
# Who clashes -> that library's code for it.
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
    """Refuse function tools that can't stand side by side, under any policy.

    Raises `AgentsError`: ``reserved_namespace``, ``duplicate_deferred_top_level``, ``ambiguous_qualified_name``; of
    several the first.
    """
    try:
        check(member for member in members_of(tools) if member.is_function)
    except DuplicateTool as error:
        raise _known(error) from None
    except ExceptionGroup as group:
        raise _known(cast("DuplicateTool", group.exceptions[0])) from None


def _known(error: DuplicateTool) -> AgentsError:
    return AgentsError(code=_REFUSALS[error.code], name=error.name)


def build_function_tool_lookup_map(tools: Sequence[object]) -> dict[LookupKey, Any]:
    """Return which tool a key dispatches to, after validation; of two bare tools of one name the last.

    To have that refused, call `resolve_tool_name_collisions` with ``error`` first, or `truename.identity.collisions`.
    """
    validate_function_tool_lookup_configuration(tools)
    keyed = ((names.lookup_key, tool) for tool in tools if (names := names_of(tool)) is not None)
    return {key: tool for key, tool in keyed if key is not None}


def resolve_tool_name_collisions(
    tools: Sequence[Any], handoffs: Sequence[Any] = (), *, collision_policy: Literal["warn", "error"] = "error"
) -> tuple[list[Any], list[Any]]:
    """Return the tools and handoffs that a model is shown, after validation.

    ``error``, which is the default here, raises `AgentsError` for any two of one bare name, custom tools included.
    ``warn`` keeps the last handoff, or else the last function tool, and the log names those that are left out.
    """
    validate_function_tool_lookup_configuration(tools)
    given = members_of([*tools, *handoffs])
    found = [clash for clash in clashes(_taking_part(given, collision_policy)) if _is_bare(clash)]
    if found and collision_policy == "error":
        raise AgentsError(code=_code(found[0]), name=found[0].winner.names.name, other=_agents(found[0]))
    for clash in found:
        _LOG.warning("%s can't be called: %s has the name", " and ".join(map(str, clash.losers)), clash.winner)
    gone = {id(loser) for clash in found for loser in clash.losers}
    kept = [item for item, member in zip([*tools, *handoffs], given, strict=True) if id(member) not in gone]
    return kept[: (cut := sum(id(member) not in gone for member in given[: len(tools)]))], kept[cut:]


def _taking_part(members: Sequence[AgentTool], policy: str) -> list[AgentTool]:
    return [member for member in members if policy == "error" or member.is_function or member.kind == "handoff"]


def _is_bare(clash: Clash) -> bool:
    key = clash.winner.names.lookup_key
    return key is not None and key.kind == "bare"


def _code(clash: Clash) -> str:
    derived = [member for member in _agent_tools(clash) if member.has_default_name]
    if len(clash.members) == 2 and len({member.agent for member in derived}) == 2:
        return _DERIVED[frozenset(member.kind for member in derived)]
    return _CLASHES[frozenset(member.kind == "handoff" for member in clash.members)]


def _agents(clash: Clash) -> str:
    return " and ".join(excerpt(member.agent) for member in _agent_tools(clash) if member.agent)


def _agent_tools(clash: Clash) -> list[AgentTool]:
    return [member_of(member) for member in clash.members]


def validate_realtime_tool_names(tools: Sequence[object], handoffs: Sequence[object] = ()) -> None:
    """Refuse any name that comes twice, whatever its namespace: a realtime session has none.

    Raises `AgentsError` ``duplicate_realtime_name``. Custom tools count too, which the library leaves out.
    """
    counts = Counter(member.names.name for member in members_of([*tools, *handoffs]) if member.names.name)
    if repeated := sorted(name for name, count in counts.items() if count > 1):
        raise AgentsError(code="duplicate_realtime_name", name=repeated[0], other=", ".join(map(excerpt, repeated)))

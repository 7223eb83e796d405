"""Build the request that openai-agents sends to the Responses API for a set of tools.

The format is the library's. Truename's own adapter is `truename.adapters.openai_responses`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from truename import dialects
from truename.compat.openai_agents import validate_function_tool_lookup_configuration
from truename.compat.openai_tools import AgentsError, AgentTool, member_of, members_of
from truename.errors import InvalidName, UnknownTool
from truename.naming.suggest import NameSuggester

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["ensure_function_tool_supports_flat_backend", "responses_tool_choice", "responses_tools"]

_SEARCH: Final = "tool_search"
_WORDS: Final = frozenset({"auto", "none", "required"})
# The provider's own tools, which are chosen by type.
_BUILT_IN: Final = frozenset(
    {"file_search", "web_search", "web_search_preview", "computer_use_preview", "image_generation"}
    | {"code_interpreter", "mcp", "programmatic_tool_calling"}
)


def ensure_function_tool_supports_flat_backend(tool: object, backend_name: str) -> None:
    """Raise `AgentsError` (``dialect_unsupported``) for a tool that needs a namespace or deferred loading."""
    names = member_of(tool).names
    if names.namespace or names.defer_loading:
        raise AgentsError(code="dialect_unsupported", name=names.qualified_name or "", other=backend_name)


def responses_tools(tools: Sequence[object], handoffs: Sequence[object] = ()) -> list[dict[str, object]]:
    """Return the ``tools`` of a request: a namespace at the position of its first tool, handoffs last.

    Raises `AgentsError` for tools that the API does not support, and `InvalidName` for a name that the provider
    refuses: the library sends it and gets status 400.
    """
    members = members_of(tools)
    _check_search(members)
    dialect = dialects.get("openai")
    for name in _sent([*members, *members_of(handoffs)]):
        if reasons := dialect.check(name):
            raise InvalidName(name=name, dialect=dialect.name, reasons=reasons)
    sent: dict[tuple[str, object], dict[str, Any]] = {}
    for place, member in enumerate([*members, *members_of(handoffs)]):
        space = member.names.namespace
        if not space:
            sent["", place] = _plain(member)
            continue
        group = sent.setdefault(
            ("namespace", space), {"type": "namespace", "name": space, "description": member.space, "tools": []}
        )
        if group["description"] != member.space:
            raise AgentsError(code="namespace_description_mismatch", name=space)
        group["tools"].append(_function(member))
    return list(sent.values())


def _sent(members: Sequence[AgentTool]) -> Iterator[str]:
    for member in members:
        if not _is_search(member):
            yield member.names.name
            if member.names.namespace:
                yield member.names.namespace


def _check_search(members: Sequence[AgentTool]) -> None:
    searches = sum(map(_is_search, members))
    if searches > 1:
        raise AgentsError(code="multiple_tool_search")
    validate_function_tool_lookup_configuration(members)
    if not searches and any(member.names.defer_loading for member in members):
        raise AgentsError(code="tool_search_missing")
    if searches and not any(member.names.namespace or member.names.defer_loading for member in members):
        raise AgentsError(code="tool_search_without_surface")


def _is_search(member: AgentTool) -> bool:
    return member.kind == "hosted" and member.names.name == _SEARCH


def _plain(member: AgentTool) -> dict[str, object]:
    if member.kind in {"hosted", "custom"}:
        own = {} if member.kind == "hosted" else {"name": member.names.name}
        return {**member.definition, "type": "custom" if own else member.names.name, **own}
    return {**_function(member), "type": "function"}


def _function(member: AgentTool) -> dict[str, object]:
    deferred = {"defer_loading": True} if member.names.defer_loading else {}
    return {**member.definition, "type": "function", "name": member.names.name, **deferred}


def responses_tool_choice(
    choice: str, tools: Sequence[object], handoffs: Sequence[object] = ()
) -> str | dict[str, str]:
    """Return the ``tool_choice`` of a request for a name or a mode.

    Raises `AgentsError` for a namespace, a name inside one, a deferred tool or tool search, and `UnknownTool` with
    suggestions for an unknown name: the library sends it.
    """
    members = [*members_of(tools), *members_of(handoffs)]
    has_deferred = any(member.names.defer_loading for member in members)
    if choice == "required" and has_deferred and not any(map(_is_search, members)):
        raise AgentsError(code="tool_choice_required_deferred")
    if choice in _WORDS:
        return choice
    if choice in _BUILT_IN:
        return {"type": choice}
    if choice not in _callable(members):
        _refuse(choice, members)
    return {"type": "function", "name": choice}


def _callable(members: Sequence[AgentTool]) -> set[str]:
    """Return the names that can be chosen: top-level tools, and the qualified names of namespaced ones."""
    able = [member for member in members if not member.names.is_deferred_top_level and not _is_search(member)]
    top = {member.names.name for member in able if not member.names.namespace}
    return top | ({member.names.qualified_name or "" for member in able} - _within(able))


def _within(members: Sequence[AgentTool]) -> set[str]:
    """Return the names that cannot be chosen alone: namespaces, and the names inside them."""
    return {name for member in members if (space := member.names.namespace) for name in (member.names.name, space)}


def _refuse(choice: str, members: Sequence[AgentTool]) -> None:
    own = [member for member in members if not _is_search(member)]
    if choice == _SEARCH and choice not in {member.names.name for member in own}:
        raise AgentsError(code="tool_choice_tool_search", name=choice)
    if choice in _within(own):
        raise AgentsError(code="tool_choice_namespace", name=choice)
    if any(member.names.is_deferred_top_level and member.names.name == choice for member in own):
        raise AgentsError(code="tool_choice_deferred", name=choice)
    raise UnknownTool(text=choice, suggestions=NameSuggester(sorted(_callable(members))).nearest(choice))

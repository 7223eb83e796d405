"""Tool search: whether a client's list is searched instead of listed whole, and which tools are always listed."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from truename.catalog import estimated_tokens
from truename.catalog.globs import fits_id
from truename.policy.lineage import no_lineage

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from truename.config.settings import Settings
    from truename.identity import ToolId
    from truename.policy.lineage import LineageOf

__all__ = ["pinned_tools", "why_searched"]

Listed = TypeVar("Listed")


def why_searched(settings: Settings, definitions: Collection[Mapping[str, object]], most: int | None) -> str:
    """Return the reason to offer search instead of listing all definitions; "" if all are listed.

    ``most`` is how many tools the client takes, None where it has no known limit.

    >>> from truename.config import Settings
    >>> why_searched(Settings(tool_search="auto"), [{"name": "add"}] * 81, most=80)
    'it has 81 tools, and this client takes 80'
    """
    if settings.tool_search == "off":
        return ""
    if settings.tool_search == "on":
        return "tool_search is on"
    there = len(definitions)
    if most is not None and there > most:
        return f"it has {there:,} tools, and this client takes {most:,}"
    if there > settings.max_listed:
        return f"it has {there:,} tools, and max_listed is {settings.max_listed:,}"
    tokens = estimated_tokens(definitions)
    if tokens > settings.list_budget:
        return f"its definitions take about {tokens:,} tokens, and list_budget is {settings.list_budget:,}"
    return ""


def pinned_tools(
    listed: Iterable[tuple[ToolId, Listed]],
    own: int,
    settings: Settings,
    most: int | None,
    lineage: LineageOf = no_lineage,
) -> tuple[list[tuple[ToolId, Listed]], int]:
    """Return which of the tools a searched list still has, and for how many of ``pinned`` the client has no room.

    ``own`` is how many tools of the gateway itself are listed, ``most`` how many tools the client takes.
    A tool that its server renamed is pinned by its former ids too (``lineage``).

    >>> from truename import ToolId
    >>> from truename.config import Settings
    >>> listed = [(ToolId.parse(text), text) for text in ("git/log", "git/push", "web/get")]
    >>> pinned_tools(listed, 3, Settings(pinned=("git/*",)), most=4)
    ([(ToolId('git@1/log@1'), 'git/log')], 1)
    """
    pinned = [
        one
        for one in listed
        if any(fits_id(glob, id) for glob in settings.pinned for id in (one[0], *lineage(one[0]).same))
    ]
    room = len(pinned) if most is None else max(0, most - own)
    return pinned[:room], len(pinned[room:])

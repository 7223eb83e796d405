"""Where tools are searched and few are listed, and which stay listed there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from truename.catalog import estimated_tokens
from truename.catalog.globs import fault_in
from truename.errors import excerpt

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path
    from typing import Any

    from truename.config.fields import Fields
    from truename.config.model import Settings

__all__ = ["read_pinned", "why_searched"]


def why_searched(settings: Settings, definitions: Collection[Mapping[str, Any]], most: int | None) -> str:
    """Return why a list of these definitions is searched and not listed whole; "" if it is listed whole.

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


def read_pinned(fields: Fields, name: str, _: Path) -> tuple[str, ...] | None:
    """Return the globs on ids; each one that could fit no tool is a fault."""
    if name not in fields:
        return None
    globs = fields.texts(name)
    for index, glob in enumerate(globs):
        if fault := fault_in(glob):
            where, problem = f"{fields.where(name)}[{index}]", f"{excerpt(glob)} is no glob on ids: {fault}"
            fields.faults.add(where, problem, "Write integration/tool, as github/create_*.")
    return globs

"""Prompts: named by the machinery that names tools, in a space of names of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from truename.errors import AmbiguousName, RetiredName, UnknownTool, excerpt
from truename.gateway.views.texts import beyond
from truename.gateway.views.view import View

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.catalog import Tool
    from truename.errors import ResolutionError
    from truename.gateway.views.texts import ServerTexts
    from truename.identity import ToolId
    from truename.naming import NameTable

__all__ = ["prompts_described", "prompts_for", "wrong_prompt_text"]


def prompts_described(table: NameTable, texts: ServerTexts) -> tuple[tuple[ToolId, Mapping[str, Any]], ...]:
    """Return the descriptors of prompts/list in fixed order: the servers' definitions under their wire names."""
    long = beyond(table.catalog[id] for id in table)
    return tuple((id, {**_definition(table.catalog[id], texts, long), "name": name}) for id, name in table.items())


def prompts_for(view: View, texts: ServerTexts) -> View:
    """Return a view of prompts whose texts are read otherwise."""
    return View(view.spec, view.table, prompts_described(view.table, texts), view, texts)


def _definition(prompt: Tool, texts: ServerTexts, long: frozenset[ToolId]) -> Mapping[str, Any]:
    return prompt.definition if prompt.id in long else texts.read(prompt)


def wrong_prompt_text(error: ResolutionError) -> str:
    """Return what is answered to the name of no prompt."""
    close: tuple[str, ...] = ()
    if isinstance(error, UnknownTool):
        close = error.suggestions
        if error.reason == "absent":
            return f"Prompt {excerpt(error.text)} is not available now: its server is not connected."
    if isinstance(error, AmbiguousName):
        close = error.candidates
    if isinstance(error, RetiredName):
        return f"Prompt {excerpt(error.text)} was retired on {error.since}. List the prompts and get one of them."
    advice = f"Did you mean {', '.join(map(excerpt, close))}?" if close else "List the prompts and get one of them."
    return f"Prompt {excerpt(error.text)} does not exist. {advice}"

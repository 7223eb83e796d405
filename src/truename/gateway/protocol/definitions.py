"""The definitions that servers list, as clients read them: one that a client refuses takes its whole list with it.

Source: the schemas of MCP 2025-11-25 and 2026-07-28.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

from truename.gateway.protocol.writable import DEEPEST, is_deeper

__all__ = [
    "Definition",
    "Icon",
    "JsonShape",
    "PromptDefinition",
    "ResourceDefinition",
    "TemplateDefinition",
    "ToolDefinition",
    "unusable",
]

Definition = Mapping[str, Any]
_Text = str | None
_Object = dict[str, Any]


class JsonShape(msgspec.Struct, rename="camel"):
    """The shape of a JSON object, whose keys are in camelCase."""


class Icon(JsonShape):
    """An icon of a tool, a prompt, a resource or a client."""

    src: str
    mime_type: _Text = None
    sizes: list[str] | None = None


class _Listed(JsonShape, kw_only=True):
    name: str
    title: _Text = None
    description: _Text = None
    icons: list[Icon] | None = None
    meta: _Object | None = msgspec.field(default=None, name="_meta")


class _ToolHints(JsonShape):
    title: _Text = None
    read_only_hint: bool | None = None
    destructive_hint: bool | None = None
    idempotent_hint: bool | None = None
    open_world_hint: bool | None = None


class _ToolExecution(JsonShape):
    task_support: Literal["forbidden", "optional", "required"] | None = None


class ToolDefinition(_Listed, kw_only=True):
    """An entry of tools/list."""

    input_schema: _Object
    output_schema: _Object | None = None
    annotations: _ToolHints | None = None
    execution: _ToolExecution | None = None


class _PromptArgument(JsonShape, kw_only=True):
    name: str
    title: _Text = None
    description: _Text = None
    required: bool | None = None


class PromptDefinition(_Listed, kw_only=True):
    """An entry of prompts/list."""

    arguments: list[_PromptArgument] | None = None


class _ContentHints(JsonShape):
    audience: list[Literal["user", "assistant"]] | None = None
    priority: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    last_modified: _Text = None


class TemplateDefinition(_Listed, kw_only=True):
    """An entry of resources/templates/list."""

    uri_template: str
    mime_type: _Text = None
    annotations: _ContentHints | None = None


class ResourceDefinition(_Listed, kw_only=True):
    """An entry of resources/list."""

    uri: str
    mime_type: _Text = None
    size: int | None = None
    annotations: _ContentHints | None = None


def unusable(entry: Definition, shape: type[JsonShape]) -> str | None:
    """Return why clients would not take an entry of a list, None if they would. They take ``"true"`` for true.

    >>> unusable({"name": "get", "inputSchema": {}}, ToolDefinition)
    >>> unusable({"name": "get", "inputSchema": None}, ToolDefinition)
    'Expected `object`, got `null` - at `$.inputSchema`'
    """
    if is_deeper(entry, DEEPEST):
        return f"it has more than {DEEPEST} nested levels"
    try:
        msgspec.convert(entry, shape, strict=False)
    except msgspec.ValidationError as problem:
        return str(problem)
    return None

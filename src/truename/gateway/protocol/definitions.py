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
    "SharedSchemas",
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


class SharedSchemas:
    """The schemas of one list, each kept once: tools of a server have many in common, whole or by parameter.

    Of 9,000 real tools, a quarter of what their definitions take in memory is such schemas.

    >>> schemas, text = SharedSchemas(), {"type": "string"}
    >>> get = schemas.shared({"name": "get", "inputSchema": {"properties": {"id": text}}})
    >>> put = schemas.shared({"name": "put", "inputSchema": {"properties": {"id": {**text}, "to": {**text}}}})
    >>> all(one is text for one in put["inputSchema"]["properties"].values())
    True
    """

    def __init__(self) -> None:
        self._known: dict[bytes, Any] = {}

    def shared(self, tool: Definition) -> Definition:
        """Return the definition of a tool with the schemas of earlier ones where its own are the same."""
        schema = tool.get("inputSchema")
        if not isinstance(schema, dict):
            return tool
        known = self._first(schema)
        properties = schema.get("properties")
        if known is schema and isinstance(properties, dict):
            # The text by which it is known stays the same.
            properties.update((name, self._first(one)) for name, one in [*properties.items()])
        return {**tool, "inputSchema": known}

    def _first(self, schema: Any) -> Any:
        """Return the first schema that was the same, written in the same order."""
        try:
            # In JSON, what is beyond all numbers is null.
            text = msgspec.msgpack.encode(schema)
        except (ValueError, OverflowError, RecursionError):
            # Half of a character, or a whole number of more than 64 bits.
            return schema
        return self._known.setdefault(text, schema)


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

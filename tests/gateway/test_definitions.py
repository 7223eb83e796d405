"""Definitions that servers list are judged as the SDK's client judges them: it refuses a list for one bad entry."""

from __future__ import annotations

import json
import random
from typing import Any

import mcp_types
import pytest
from pydantic import ValidationError

from tests.support.changed_values import changed
from truename.gateway.protocol.definitions import (
    PromptDefinition,
    ResourceDefinition,
    SharedSchemas,
    TemplateDefinition,
    ToolDefinition,
    unusable,
)

ICONS = [{"src": "x", "mimeType": "image/png", "sizes": ["1x1"]}]
COMMON = {"name": "x", "title": "X", "description": "Does x.", "icons": ICONS, "_meta": {"a": 1}}
HINTS = {"audience": ["user"], "priority": 0.5, "lastModified": "2026-01-01"}
ENTRIES: list[tuple[Any, Any, dict[str, Any]]] = [
    (
        ToolDefinition,
        mcp_types.Tool,
        {
            **COMMON,
            "inputSchema": {"type": "object", "properties": {"a": {}}},
            "outputSchema": {"type": "object"},
            "annotations": {"title": "X", "readOnlyHint": True, "openWorldHint": False},
            "execution": {"taskSupport": "optional"},
        },
    ),
    (PromptDefinition, mcp_types.Prompt, {**COMMON, "arguments": [{"name": "a", "required": True}]}),
    (
        ResourceDefinition,
        mcp_types.Resource,
        {**COMMON, "uri": "x://y", "mimeType": "a/b", "size": 5, "annotations": HINTS},
    ),
    (TemplateDefinition, mcp_types.ResourceTemplate, {**COMMON, "uriTemplate": "x://{y}", "annotations": HINTS}),
]


@pytest.mark.parametrize(("shape", "model", "entry"), ENTRIES, ids=[one[0].__name__ for one in ENTRIES])
def test_entries_are_taken_that_clients_take_and_no_others(shape: Any, model: Any, entry: dict[str, Any]) -> None:
    seed = random.SystemRandom().randrange(2**32)
    chance = random.Random(seed)
    for _ in range(3_000):
        given = changed(chance, entry)
        try:
            model.model_validate(given, by_name=False)
            taken = True
        except ValidationError:
            taken = False
        found = unusable(given, shape)
        assert (found is None) is taken, (seed, given, found)


SCHEMAS: list[Any] = [
    {"properties": {"a": {"type": "string"}}},
    {"properties": {"a": {"type": "string"}}},
    {"properties": {"a": {"type": "string"}, "b": {"type": "string", "minLength": 1}}},
    {"properties": {"b": {"minLength": 1, "type": "string"}, "a": {"type": "string"}}},
    *({"properties": {"a": {"const": one}}} for one in (1, True, 1.0, "1", None, 0.0, -0.0, 1e999, 10**30, "\ud800")),
    *({"properties": {"a": one}} for one in (True, None, [1], [True])),
    {"properties": ["a"]},
    {"properties": 5},
    True,
    None,
]


def test_definitions_with_shared_schemas_are_written_as_they_came() -> None:
    schemas = SharedSchemas()
    tools = [{"name": f"t{number}", "inputSchema": schema, "title": "T"} for number, schema in enumerate(SCHEMAS * 2)]
    before = [json.dumps(tool) for tool in tools]

    assert [json.dumps(schemas.shared(tool)) for tool in tools] == before


def test_equal_schemas_of_tools_and_of_parameters_are_one_object() -> None:
    schemas = SharedSchemas()
    first, second, third, *_ = (schemas.shared({"name": "t", "inputSchema": schema}) for schema in SCHEMAS)

    assert first["inputSchema"] is second["inputSchema"]
    assert first["inputSchema"] is not third["inputSchema"]
    assert first["inputSchema"]["properties"]["a"] is third["inputSchema"]["properties"]["a"]


def test_a_tool_without_a_schema_has_nothing_to_share() -> None:
    assert SharedSchemas().shared({"name": "t"}) == {"name": "t"}

"""Input schemas that clients can read: one that breaks the specification must not take all other tools with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

__all__ = ["readable", "unreadable"]

_FIELD: Final = "inputSchema"


def readable(definition: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a definition whose input schema says that it is of an object, if it said nothing of its type.

    The protocol wants ``"type": "object"`` there (server/tools, in every revision), and the clients of the official
    SDKs refuse a whole list for one tool without it; `@modelcontextprotocol/server-gitlab` 2025.4.25 has nine such.
    The arguments of a call are an object by the protocol, so it says nothing new. Another type is `unreadable`.

    >>> readable({"name": "fork", "inputSchema": {"$schema": "http://json-schema.org/draft-07/schema#"}})
    {'name': 'fork', 'inputSchema': {'$schema': 'http://json-schema.org/draft-07/schema#', 'type': 'object'}}
    """
    schema = definition.get(_FIELD)
    if not isinstance(schema, Mapping) or "type" in schema:
        return definition
    return {**definition, _FIELD: {**schema, "type": "object"}}


def unreadable(schema: Any) -> str | None:
    """Say why clients would refuse a list for this input schema, None if they would not.

    >>> unreadable({"type": "object", "properties": {"text": True}}), unreadable({})
    (None, None)
    >>> unreadable({"type": ["object", "null"]})
    "inputSchema.type: it is not 'object'"
    """
    if not isinstance(schema, Mapping):
        return f"{_FIELD}: it is not an object"
    if schema.get("type", "object") != "object":
        return f"{_FIELD}.type: it is not 'object'"
    properties, required = schema.get("properties"), schema.get("required")
    if not _maps_to_schemas(properties):
        return f"{_FIELD}.properties: it is not an object of schemas"
    if not (required is None or (isinstance(required, list) and all(isinstance(name, str) for name in required))):
        return f"{_FIELD}.required: it is not a list of names"
    return None


def _maps_to_schemas(properties: Any) -> bool:
    if properties is None:
        return True
    return isinstance(properties, Mapping) and all(isinstance(one, Mapping | bool) for one in properties.values())

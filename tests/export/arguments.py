"""Make arguments that a schema accepts, as far as gateways check them before they forward a call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

__all__ = ["example"]

_DEEPEST: Final = 12
_PLAIN: Final[Mapping[str, object]] = {"integer": 1, "number": 1, "boolean": True, "null": None, "string": "x"}
_FORMATS: Final = {
    "date-time": "2026-01-01T00:00:00Z",
    "date": "2026-01-01",
    "time": "00:00:00Z",
    "email": "a@example.com",
    "uri": "https://example.com/",
    "url": "https://example.com/",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "ipv4": "127.0.0.1",
}


def example(schema: object, root: Mapping[str, Any] | None = None, depth: int = 0) -> Any:
    """Return a small value that a schema accepts: required properties only."""
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return {} if depth == 0 else "x"
    root = schema if root is None else root
    if isinstance(reference := schema.get("$ref"), str):
        return example(_referred(reference, root), root, depth + 1)
    for word in ("const", "default"):
        if word in schema and depth:
            return schema[word]
    if isinstance(choices := schema.get("enum"), list) and choices:
        return choices[0]
    for word in ("anyOf", "oneOf", "allOf"):
        if isinstance(several := schema.get(word), list) and several and "properties" not in schema:
            return example(several[0], root, depth + 1)
    return _typed(schema, root, depth)


def _typed(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> Any:
    given = schema.get("type")
    kind = given[0] if isinstance(given, list) and given else given
    if kind == "object" or "properties" in schema or depth == 0:
        properties = schema.get("properties") or {}
        required = schema.get("required") or []
        return {name: example(properties.get(name, {}), root, depth + 1) for name in required}
    if kind == "array":
        return [example(schema.get("items", {}), root, depth + 1) for _ in range(int(schema.get("minItems", 0)))]
    if kind == "string":
        text = _FORMATS.get(schema.get("format", ""), "x")
        return text.ljust(int(schema.get("minLength", 0)), "x")
    if kind in ("integer", "number"):
        least = schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1)
        return min(max(1, least), schema.get("maximum", max(1, least)))
    return _PLAIN.get(str(kind), "x")


def _referred(reference: str, root: Mapping[str, Any]) -> object:
    value: object = root
    for part in reference.removeprefix("#").strip("/").split("/"):
        value = value.get(part, {}) if isinstance(value, Mapping) else {}
    return value

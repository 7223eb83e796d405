"""The keywords of JSON Schema that stand alone: what it means that one of them was added, dropped or changed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from truename.errors import excerpt
from truename.migration.effects import Effect

__all__ = [
    "alike",
    "annotated",
    "canonical",
    "kind_of",
    "of_bounds",
    "of_enum",
    "of_opaque",
    "of_plain",
    "of_type",
    "refers",
]

Schema = Mapping[str, Any]
Finding = tuple[str, Effect, str]

_SHOWN: Final = 40
_LISTED: Final = 5
_UP, _DOWN = 1, -1
# Which way a bound moves when it narrows.
_BOUNDS: Final = {
    "minimum": _UP,
    "exclusiveMinimum": _UP,
    "minLength": _UP,
    "minItems": _UP,
    "minProperties": _UP,
    "maximum": _DOWN,
    "exclusiveMaximum": _DOWN,
    "maxLength": _DOWN,
    "maxItems": _DOWN,
    "maxProperties": _DOWN,
}
_PLAIN: Final = ("pattern", "format", "multipleOf", "contentEncoding", "contentMediaType")
# What these allow can't be compared in general; a change of any is taken for the worst.
_OPAQUE: Final = (
    "allOf",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "minContains",
    "maxContains",
    "propertyNames",
    "patternProperties",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "unevaluatedItems",
    "unevaluatedProperties",
    "$dynamicRef",
    "$recursiveRef",
    # Of older drafts, and of OpenAPI.
    "additionalItems",
    "disallow",
    "divisibleBy",
    "extends",
    "nullable",
    # Those that could be followed are not here any more.
    "$ref",
)
_REFERENCES: Final = ('"$ref"', '"$dynamicRef"', '"$recursiveRef"')
_ANNOTATIONS: Final = ("description", "default")
_TYPES: Final = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}


def of_type(old: Schema, new: Schema) -> Iterator[Finding]:
    """Compare what kind of value is allowed."""
    was, now = kind_of(old), kind_of(new)
    if was == now:
        return
    fact = f"the type is {_named(now)}; it was {_named(was)}"
    if not now or (was, now) == ("integer", "number"):
        yield "type", Effect.WIDENED, fact
    elif not was or (was, now) == ("number", "integer"):
        yield "type", Effect.NARROWED, fact
    else:
        yield "type", Effect.CHANGED, fact


def kind_of(schema: Schema) -> str:
    """Return the type that a schema names, or that its other keywords imply; "" for any."""
    kind = schema.get("type")
    if isinstance(kind, str):
        return kind
    if isinstance(schema.get("properties"), Mapping):
        return "object"
    values = _values(schema)
    kinds = {_TYPES.get(type(value), "") for value in values or ()}
    return kinds.pop() if len(kinds) == 1 else ""


def of_enum(old: Schema, new: Schema) -> Iterator[Finding]:
    """Compare the values that are listed one by one (``enum``, ``const``)."""
    was, now = _values(old), _values(new)
    if was is None and now is None:
        return
    if was is None or now is None:
        effect = Effect.NARROWED if was is None else Effect.WIDENED
        yield "enum", effect, f"only {_some(now)}" if now is not None else "any value, not only those listed"
        return
    before, after = ({_key(one): one for one in values} for values in (was, now))
    if lost := [one for key, one in before.items() if key not in after]:
        yield "enum", Effect.NARROWED, f"{_some(lost)} no longer"
    if gained := [one for key, one in after.items() if key not in before]:
        yield "enum", Effect.WIDENED, f"{_some(gained)} too"


def of_bounds(old: Schema, new: Schema) -> Iterator[Finding]:
    """Compare limits on numbers, lengths and counts."""
    for keyword, way in _BOUNDS.items():
        was, now = _limit(old, keyword), _limit(new, keyword)
        if not alike(was, now):
            yield keyword, _moved(was, now, way), _stated(keyword, was, now)
    if bool(old.get("uniqueItems")) is not bool(new.get("uniqueItems")):
        narrower = bool(new.get("uniqueItems"))
        fact = "items must differ from each other" if narrower else "items may be equal"
        yield "uniqueItems", Effect.NARROWED if narrower else Effect.WIDENED, fact


def of_plain(old: Schema, new: Schema) -> Iterator[Finding]:
    """Compare keywords that narrow by being there, and of which two can't be compared."""
    for keyword in _PLAIN:
        was, now = old.get(keyword), new.get(keyword)
        if not alike(was, now):
            effect = Effect.NARROWED if was is None else Effect.WIDENED if now is None else Effect.CHANGED
            yield keyword, effect, _stated(keyword, was, now)


def of_opaque(old: Schema, new: Schema) -> Iterator[Finding]:
    """Compare keywords whose meaning takes a solver: whether they are the same."""
    for keyword in _OPAQUE:
        if not alike(old.get(keyword), new.get(keyword)):
            yield keyword, Effect.CHANGED, "it changed, and is too intricate to compare"
    was, now = (schema.get("required") for schema in (old, new))
    if bool in (type(was), type(now)) and not alike(was or None, now or None):
        yield "required", Effect.CHANGED, "it changed, and is of a draft that is not read"


def refers(schema: object) -> bool:
    """Tell whether a schema, as it stands, has a reference that was not followed: in a keyword that is not compared."""
    opaque = {key: schema[key] for key in _OPAQUE if key in schema} if isinstance(schema, Mapping) else schema
    try:
        text = canonical(opaque) if opaque else ""
    except RecursionError:
        return True
    return any(word in text for word in _REFERENCES)


def annotated(old: Schema, new: Schema) -> Iterator[Finding]:
    """Compare what a schema says to people and models."""
    for keyword in _ANNOTATIONS:
        was, now = old.get(keyword), new.get(keyword)
        if not alike(was, now):
            yield keyword, Effect.RESTATED, _stated(keyword, was, now)


def alike(one: object, other: object) -> bool:
    """Tell whether two JSON values are the same: True is not 1, and what is too deep to compare is not."""
    try:
        return bool(one == other) and (isinstance(one, str) or canonical(one) == canonical(other))
    except RecursionError:
        return False


def canonical(value: object) -> str:
    """Return one text for one JSON value, short where the value is. Raises `RecursionError` for what is too deep."""
    return json.dumps(value, sort_keys=True, default=repr)


def _key(value: object) -> str:
    try:
        return canonical(value)
    except RecursionError:
        # One that is too deep equals none.
        return f"\0{id(value)}"


def _values(schema: Schema) -> list[Any] | None:
    values = schema.get("enum")
    listed = values if isinstance(values, list) else None
    if "const" not in schema:
        return listed
    constant = schema["const"]
    return [constant] if listed is None or any(alike(constant, one) for one in listed) else []


def _limit(schema: Schema, keyword: str) -> object:
    # Draft 4 writes an exclusive bound as true or false; false is none.
    value = schema.get(keyword)
    return None if value is False else value


def _moved(was: object, now: object, way: int) -> Effect:
    if was is None or now is None:
        return Effect.NARROWED if was is None else Effect.WIDENED
    if _is_number(was) and _is_number(now) and was != now:
        return Effect.NARROWED if (now > was) == (way == _UP) else Effect.WIDENED  # type: ignore[operator]
    return Effect.CHANGED


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _stated(keyword: str, was: object, now: object) -> str:
    if now is None:
        return f"no {keyword}; it was {_shown(was)}"
    return f"the {keyword} is {_shown(now)}" + (f"; it was {_shown(was)}" if was is not None else "")


def _shown(value: object) -> str:
    if isinstance(value, str):
        return excerpt(value, _SHOWN)
    try:
        return excerpt(canonical(value), _SHOWN).strip("'")
    except RecursionError:
        return "too deep to show"


def _some(values: list[Any]) -> str:
    told = ", ".join(_shown(one) for one in values[:_LISTED])
    return f"{told} and {len(values) - _LISTED:,} more" if len(values) > _LISTED else told


def _named(kind: str) -> str:
    return excerpt(kind, _SHOWN).strip("'") if kind else "any"

"""The forms in which a schema says one thing: references followed, and alternatives one by one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote

from truename.migration.terms import alike, canonical, kind_of

__all__ = ["MOST_ALTERNATIVES", "Alternative", "alternatives", "followed", "joined", "paired", "unspoken"]

Schema = Mapping[str, Any]
Alternative = tuple[str, Schema]

MOST_ALTERNATIVES: Final = 64
_CHAIN: Final = 16
_NEVER: Final[Schema] = {"not": {}}
_PLACE: Final = re.compile("[0-9]{1,9}")
_NAMED: Final = frozenset({"$defs", "definitions"})
_EITHER: Final = ("anyOf", "oneOf")
_SPEAKING: Final = frozenset({"title", "description", "default", "examples", "deprecated", "$comment"})


def followed(schema: object, root: Schema) -> Alternative:
    """Return a schema with its references followed, and the text of them and of what stood beside them ("" for none).

    Only references into the same document are; what stands beside one counts too, and an ``allOf`` of one schema is
    that schema. A reference that leads nowhere, in circles or elsewhere is left as it is, and so is one beside which
    something stands that can't be written as one schema with it.
    """
    given = found = _mapping(schema)
    trail = ""
    for _ in range(_CHAIN):
        reference, inner = _within(found, root)
        whole = None if inner is None else joined(inner, _beside(found))
        if whole is None:
            break
        trail += reference and f"{reference}\n"
        found = whole
    # What stands beside the references that follow goes with them.
    return trail and trail + _text(unspoken(_beside(given))), found


def _beside(schema: Schema) -> Schema:
    return {key: value for key, value in schema.items() if key not in ("$ref", "allOf")}


def _within(schema: Schema, root: Schema) -> tuple[str, Schema | None]:
    """Return the schema that a reference or an ``allOf`` of one stands for, with the reference; None for neither."""
    parts = schema.get("allOf")
    if isinstance(parts, list) and len(parts) == 1 and "$ref" not in schema:
        return "", _mapping(parts[0])
    reference = schema.get("$ref")
    # What follows "#" without a slash is the name of an anchor.
    if "allOf" in schema or not isinstance(reference, str) or not (reference + "/").startswith("#/"):
        return "", None
    target = _target(reference, root)
    return reference, None if target is None else _mapping(target)


def _target(reference: str, root: Schema) -> object:
    found: object = root
    for part in reference[1:].split("/")[1:]:
        key = unquote(part).replace("~1", "/").replace("~0", "~")
        if isinstance(found, list) and _PLACE.fullmatch(key) and int(key) < len(found):
            found = found[int(key)]
        else:
            found = found.get(key) if isinstance(found, Mapping) else None
    return found


def joined(one: Schema, other: Schema) -> Schema | None:
    """Return one schema for what fits both, None where that takes more than putting their keywords together.

    >>> joined({"type": "string", "maxLength": 9}, {"minLength": 1})
    {'type': 'string', 'maxLength': 9, 'minLength': 1}
    >>> joined({"maxLength": 9}, {"maxLength": 3}) is None
    True
    """
    found = {**one, **other}
    for key in (one.keys() & other.keys()) - _SPEAKING - _NAMED:
        was, now = one[key], other[key]
        if key == "required" and isinstance(was, list) and isinstance(now, list):
            found[key] = [*was, *now]
        elif (
            key == "properties"
            and isinstance(was, Mapping)
            and isinstance(now, Mapping)
            and not was.keys() & now.keys()
        ):
            found[key] = {**was, **now}
        elif not alike(was, now):
            return None
    return found


def _are_apart(one: object, other: object) -> bool:
    return isinstance(one, Mapping) and isinstance(other, Mapping) and not one.keys() & other.keys()


def _mapping(schema: object) -> Schema:
    """Return a schema as a mapping: ``true``, and what is no schema at all, allow everything."""
    if schema is False:
        return _NEVER
    return schema if isinstance(schema, Mapping) else {}


def alternatives(schema: Schema, root: Schema) -> list[Alternative] | None:
    """Return what a value may be, one schema each, with the reference that it came by.

    None if they are too many, or if what stands beside them can't be put into each.
    """
    found: list[Alternative] = []
    waiting: list[Alternative] = [("", schema)]
    steps = 0
    while waiting:
        reference, one = waiting.pop()
        steps += 1
        parts = _parts(one)
        if parts is None:
            found.append((reference, one))
            continue
        if None in parts:
            return None
        # A schema may be an alternative of itself.
        if max(len(waiting) + len(found) + len(parts), steps) > MOST_ALTERNATIVES:
            return None
        waiting += [followed(part, root) for part in reversed(parts)]
    return found


def unspoken(schema: Schema) -> Schema:
    """Return a schema without what it says to people and models."""
    return {key: value for key, value in schema.items() if key not in _SPEAKING}


def _parts(schema: Schema) -> list[Schema | None] | None:
    for keyword in _EITHER:
        listed = schema.get(keyword)
        if isinstance(listed, list) and listed:
            others = {key: value for key, value in unspoken(schema).items() if key != keyword}
            return [joined(others, _mapping(part)) for part in listed[: MOST_ALTERNATIVES + 1]]
    kinds = schema.get("type")
    if isinstance(kinds, list):
        rest = unspoken(schema)
        return [{**rest, "type": kind} for kind in kinds[: MOST_ALTERNATIVES + 1] if isinstance(kind, str)]
    return None


def paired(
    old: list[Alternative], new: list[Alternative]
) -> tuple[list[tuple[Alternative, Alternative]], list[Schema], list[Schema]]:
    """Pair the alternatives that mean the same thing; return the pairs, and those of either side that are left."""
    pairs: list[tuple[Alternative, Alternative]] = []
    for key_of in (_said, _kind):
        old, new = _by_key(old, new, key_of, pairs)
    if len(old) == len(new) == 1:
        pairs.append((old[0], new[0]))
        old, new = [], []
    return pairs, [one for _, one in old], [one for _, one in new]


def _by_key(
    old: list[Alternative], new: list[Alternative], key_of: Any, pairs: list[tuple[Alternative, Alternative]]
) -> tuple[list[Alternative], list[Alternative]]:
    waiting: dict[str, list[Alternative]] = {}
    for one in new:
        waiting.setdefault(key_of(one), []).append(one)
    left = []
    for one in old:
        same = waiting.get(key_of(one))
        if same:
            pairs.append((one, same.pop(0)))
        else:
            left.append(one)
    return left, [one for several in waiting.values() for one in several]


def _said(one: Alternative) -> str:
    return _text(unspoken(one[1]))


def _text(schema: Schema) -> str:
    try:
        return canonical(schema) if schema else ""
    except RecursionError:
        return ""


def _kind(one: Alternative) -> str:
    return kind_of(one[1])

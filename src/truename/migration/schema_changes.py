"""Judge changes of single JSON Schema keywords: their effect, and whom they break."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeGuard
from urllib.parse import unquote

from truename.errors import excerpt

__all__ = [
    "INPUT",
    "OUTPUT",
    "AffectedSide",
    "ChangeDetail",
    "ChangeEffect",
    "alternatives",
    "compare_bounds",
    "compare_enum",
    "compare_opaque",
    "compare_plain",
    "compare_texts",
    "compare_type",
    "equal_json",
    "has_unresolved_reference",
    "kind_of",
    "pair_alternatives",
    "path_text",
    "resolve_references",
    "without_texts",
]

_EFFECTS_SHOWN: Final = 60


class ChangeEffect(StrEnum):
    """The effect of a change on the values that a schema allows; ``restated`` changes only texts and annotations."""

    NARROWED = "narrowed"
    WIDENED = "widened"
    CHANGED = "changed"
    RESTATED = "restated"


@dataclass(frozen=True, slots=True)
class AffectedSide:
    """A schema of a tool: its key in the definition, and the effects that break users of the old one."""

    key: str
    word: str
    breaking: frozenset[ChangeEffect]


# Callers need every input that was allowed; readers rely on the outputs that were promised.
INPUT: Final = AffectedSide("inputSchema", "input", frozenset({ChangeEffect.NARROWED, ChangeEffect.CHANGED}))
OUTPUT: Final = AffectedSide("outputSchema", "output", frozenset({ChangeEffect.WIDENED, ChangeEffect.CHANGED}))


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeDetail:
    """One difference: its path in the definition, its effect, the fact, and whether it is breaking."""

    path: str
    effect: ChangeEffect
    fact: str
    breaking: bool

    def __str__(self) -> str:
        return f"{self.path}: {self.fact}"


def path_text(keys: tuple[str, ...]) -> str:
    r"""Return a path as text; a key that is not a word is in brackets, printable and short.

    >>> path_text(("inputSchema", "properties", "a.b\n"))
    "inputSchema.properties['a.b\\n']"
    """
    short = (key[:_EFFECTS_SHOWN] for key in keys)
    parts = [
        f".{key}" if _is_word(key) else f"[{key if key.isdecimal() and key.isascii() else ascii(key)}]" for key in short
    ]
    return "".join(parts).removeprefix(".")


def _is_word(key: str) -> bool:
    return key.isascii() and key.replace("$", "_").replace("-", "_").isidentifier()


Schema = Mapping[str, object]
Finding = tuple[str, ChangeEffect, str]

_TERMS_SHOWN: Final = 40
_LISTED: Final = 5
_UP, _DOWN = 1, -1
# The direction in which a bound narrows.
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
# Keywords that cannot be compared in general; any change of them is treated as breaking.
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
    # Keywords of older drafts and of OpenAPI.
    "additionalItems",
    "disallow",
    "divisibleBy",
    "extends",
    "nullable",
    # Resolvable references were already replaced.
    "$ref",
)
_REFERENCES: Final = ('"$ref"', '"$dynamicRef"', '"$recursiveRef"')
_ANNOTATIONS: Final = ("description", "default")
_TYPES: Final = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}


def compare_type(old: Schema, new: Schema) -> Iterator[Finding]:
    """Compare the allowed type."""
    was, now = kind_of(old), kind_of(new)
    if was == now:
        return
    fact = f"the type is {_named(now)}; it was {_named(was)}"
    if not now or (was, now) == ("integer", "number"):
        yield "type", ChangeEffect.WIDENED, fact
    elif not was or (was, now) == ("number", "integer"):
        yield "type", ChangeEffect.NARROWED, fact
    else:
        yield "type", ChangeEffect.CHANGED, fact


def kind_of(schema: Schema) -> str:
    """Return the type that a schema states, or that its other keywords imply; "" for any."""
    kind = schema.get("type")
    if isinstance(kind, str):
        return kind
    if isinstance(schema.get("properties"), Mapping):
        return "object"
    values = _values(schema)
    kinds = {_TYPES.get(type(value), "") for value in values or ()}
    return kinds.pop() if len(kinds) == 1 else ""


def compare_enum(old: Schema, new: Schema) -> Iterator[Finding]:
    """Compare enumerated values (``enum``, ``const``)."""
    was, now = _values(old), _values(new)
    if was is None and now is None:
        return
    if was is None or now is None:
        effect = ChangeEffect.NARROWED if was is None else ChangeEffect.WIDENED
        yield "enum", effect, f"only {_some(now)}" if now is not None else "any value, not only the listed ones"
        return
    before, after = ({_key(one): one for one in values} for values in (was, now))
    if lost := [one for key, one in before.items() if key not in after]:
        yield "enum", ChangeEffect.NARROWED, f"no longer {_some(lost)}"
    if gained := [one for key, one in after.items() if key not in before]:
        yield "enum", ChangeEffect.WIDENED, f"also {_some(gained)}"


def compare_bounds(old: Schema, new: Schema) -> Iterator[Finding]:
    """Compare limits of numbers, lengths and counts."""
    for keyword, way in _BOUNDS.items():
        was, now = _limit(old, keyword), _limit(new, keyword)
        if not equal_json(was, now):
            yield keyword, _moved(was, now, way), _stated(keyword, was, now)
    if bool(old.get("uniqueItems")) is not bool(new.get("uniqueItems")):
        narrower = bool(new.get("uniqueItems"))
        fact = "items must be unique" if narrower else "items need not be unique"
        yield "uniqueItems", ChangeEffect.NARROWED if narrower else ChangeEffect.WIDENED, fact


def compare_plain(old: Schema, new: Schema) -> Iterator[Finding]:
    """Compare keywords whose presence narrows, and whose values cannot be compared."""
    for keyword in _PLAIN:
        was, now = old.get(keyword), new.get(keyword)
        if not equal_json(was, now):
            effect = (
                ChangeEffect.NARROWED if was is None else ChangeEffect.WIDENED if now is None else ChangeEffect.CHANGED
            )
            yield keyword, effect, _stated(keyword, was, now)


def compare_opaque(old: Schema, new: Schema) -> Iterator[Finding]:
    """Compare keywords that only a solver could compare: report any change."""
    for keyword in _OPAQUE:
        if not equal_json(old.get(keyword), new.get(keyword)):
            yield keyword, ChangeEffect.CHANGED, "it changed, and is too complex to compare"
    was, now = (schema.get("required") for schema in (old, new))
    if bool in (type(was), type(now)) and not equal_json(was or None, now or None):
        yield "required", ChangeEffect.CHANGED, "it changed, and belongs to an unsupported draft"


def has_unresolved_reference(schema: object) -> bool:
    """Return whether a schema has an unresolved reference in a keyword that is not compared."""
    opaque = {key: schema[key] for key in _OPAQUE if key in schema} if isinstance(schema, Mapping) else schema
    try:
        text = canonical(opaque) if opaque else ""
    except RecursionError:
        return True
    return any(word in text for word in _REFERENCES)


def compare_texts(old: Schema, new: Schema) -> Iterator[Finding]:
    """Compare the keywords that validation ignores: ``description`` and ``default``."""
    for keyword in _ANNOTATIONS:
        was, now = old.get(keyword), new.get(keyword)
        if not equal_json(was, now):
            yield keyword, ChangeEffect.RESTATED, _stated(keyword, was, now)


def equal_json(one: object, other: object) -> bool:
    """Return whether two JSON values are equal: True is not 1, and a value that is too deep equals none."""
    try:
        return bool(one == other) and (isinstance(one, str) or canonical(one) == canonical(other))
    except RecursionError:
        return False


def canonical(value: object) -> str:
    """Return the canonical text of a JSON value. Raises `RecursionError` for a value that is too deep."""
    return json.dumps(value, sort_keys=True, default=repr)


def _key(value: object) -> str:
    try:
        return canonical(value)
    except RecursionError:
        # A value that is too deep equals no other.
        return f"\0{id(value)}"


def _values(schema: Schema) -> list[object] | None:
    values = schema.get("enum")
    listed = values if isinstance(values, list) else None
    if "const" not in schema:
        return listed
    constant = schema["const"]
    return [constant] if listed is None or any(equal_json(constant, one) for one in listed) else []


def _limit(schema: Schema, keyword: str) -> object:
    # Draft 4 has boolean exclusive bounds; false means none.
    value = schema.get(keyword)
    return None if value is False else value


def _moved(was: object, now: object, way: int) -> ChangeEffect:
    if was is None or now is None:
        return ChangeEffect.NARROWED if was is None else ChangeEffect.WIDENED
    if _is_number(was) and _is_number(now) and was != now:
        return ChangeEffect.NARROWED if (now > was) == (way == _UP) else ChangeEffect.WIDENED
    return ChangeEffect.CHANGED


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _stated(keyword: str, was: object, now: object) -> str:
    if now is None:
        return f"no {keyword}; it was {_shown(was)}"
    return f"the {keyword} is {_shown(now)}" + (f"; it was {_shown(was)}" if was is not None else "")


def _shown(value: object) -> str:
    if isinstance(value, str):
        return excerpt(value, _TERMS_SHOWN)
    try:
        return excerpt(canonical(value), _TERMS_SHOWN).strip("'")
    except RecursionError:
        return "too deep to show"


def _some(values: list[object]) -> str:
    told = ", ".join(_shown(one) for one in values[:_LISTED])
    return f"{told} and {len(values) - _LISTED:,} more" if len(values) > _LISTED else told


def _named(kind: str) -> str:
    return excerpt(kind, _TERMS_SHOWN).strip("'") if kind else "any"


Alternative = tuple[str, Schema]

MOST_ALTERNATIVES: Final = 64
_CHAIN: Final = 16
_NEVER: Final[Schema] = {"not": {}}
_PLACE: Final = re.compile("[0-9]{1,9}")
_NAMED: Final = frozenset({"$defs", "definitions"})
_EITHER: Final = ("anyOf", "oneOf")
_SPEAKING: Final = frozenset({"title", "description", "default", "examples", "deprecated", "$comment"})


def resolve_references(schema: object, root: Schema) -> Alternative:
    """Resolve the references of a schema; return their text with that of their siblings ("" for none), and the result.

    Only references into the same document are resolved; sibling keywords count too, and an ``allOf`` of one schema is
    that schema. An unresolvable, circular or external reference is unchanged, and so is one whose siblings cannot be
    merged into one schema with it.
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
    # The siblings of nested references are part of the key.
    return trail and trail + _meaning(_beside(given)), found


def _beside(schema: Schema) -> Schema:
    return {key: value for key, value in schema.items() if key not in ("$ref", "allOf")}


def _within(schema: Schema, root: Schema) -> tuple[str, Schema | None]:
    """Return the schema of a reference or of an ``allOf`` with one schema, with the reference; None for neither."""
    parts = schema.get("allOf")
    if isinstance(parts, list) and len(parts) == 1 and "$ref" not in schema:
        return "", _mapping(parts[0])
    reference = schema.get("$ref")
    # A fragment without a slash is the name of an anchor.
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
    """Return one schema for values that fit both; None if merging the keywords is not enough.

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
        elif not equal_json(was, now):
            return None
    return found


def _mapping(schema: object) -> Schema:
    """Return a schema as a mapping: ``true``, and anything that is not a schema, allows everything."""
    if schema is False:
        return _NEVER
    return schema if isinstance(schema, Mapping) else {}


def alternatives(schema: Schema, root: Schema) -> list[Alternative] | None:
    """Return the alternatives of a schema, each with the reference it came from.

    Returns None if there are too many, or if the sibling keywords cannot be merged into each.
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
        waiting += [resolve_references(part, root) for part in reversed(parts)]
    return found


def without_texts(schema: Schema) -> Schema:
    """Return a schema without the texts for people and models."""
    return {key: value for key, value in schema.items() if key not in _SPEAKING}


def _parts(schema: Schema) -> list[Schema | None] | None:
    for keyword in _EITHER:
        listed = schema.get(keyword)
        if isinstance(listed, list) and listed:
            others = {key: value for key, value in without_texts(schema).items() if key != keyword}
            return [joined(others, _mapping(part)) for part in listed[: MOST_ALTERNATIVES + 1]]
    kinds = schema.get("type")
    if isinstance(kinds, list):
        rest = without_texts(schema)
        return [{**rest, "type": kind} for kind in kinds[: MOST_ALTERNATIVES + 1] if isinstance(kind, str)]
    return None


def pair_alternatives(
    old: list[Alternative], new: list[Alternative]
) -> tuple[list[tuple[Alternative, Alternative]], list[Schema], list[Schema]]:
    """Pair the alternatives with the same meaning; return the pairs, and the rest of either side."""
    pairs: list[tuple[Alternative, Alternative]] = []
    for key_of in (_meaning, kind_of):
        old, new = _by_key(old, new, key_of, pairs)
    if len(old) == len(new) == 1:
        pairs.append((old[0], new[0]))
        old, new = [], []
    return pairs, [one for _, one in old], [one for _, one in new]


def _by_key(
    old: list[Alternative],
    new: list[Alternative],
    key_of: Callable[[Schema], str],
    pairs: list[tuple[Alternative, Alternative]],
) -> tuple[list[Alternative], list[Alternative]]:
    waiting: dict[str, list[Alternative]] = {}
    for one in new:
        waiting.setdefault(key_of(one[1]), []).append(one)
    left = []
    for one in old:
        same = waiting.get(key_of(one[1]))
        if same:
            pairs.append((one, same.pop(0)))
        else:
            left.append(one)
    return left, [one for several in waiting.values() for one in several]


def _meaning(schema: Schema) -> str:
    """Return the canonical text of a schema without its texts for people and models."""
    keywords = without_texts(schema)
    try:
        return canonical(keywords) if keywords else ""
    except RecursionError:
        return ""

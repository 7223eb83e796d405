"""What the change of a schema does to those who relied on it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truename.migration import INPUT, OUTPUT, ChangeEffect, compare_schemas

NARROWED, WIDENED, CHANGED, RESTATED = (
    ChangeEffect.NARROWED,
    ChangeEffect.WIDENED,
    ChangeEffect.CHANGED,
    ChangeEffect.RESTATED,
)


def of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def found(old: Any, new: Any) -> list[tuple[str, str, bool]]:
    details = compare_schemas(old, new, INPUT)
    return [(one.path.removeprefix("inputSchema").lstrip("."), str(one.effect), one.breaking) for one in details]


# One property `a`, as it was and as it is; what that does to the input at which keyword.
OF_A_VALUE: list[tuple[Any, Any, ChangeEffect, str]] = [
    ({"type": "integer"}, {"type": "number"}, WIDENED, "type"),
    ({"type": "number"}, {"type": "integer"}, NARROWED, "type"),
    ({"type": "string"}, {"type": "integer"}, CHANGED, "type"),
    ({}, {"type": "integer"}, NARROWED, "type"),
    ({"type": "object", "properties": {}}, {"properties": {}, "minProperties": 1}, NARROWED, "minProperties"),
    ({"type": "integer"}, True, WIDENED, "type"),
    ({"enum": ["a", "b"]}, {"enum": ["b"]}, NARROWED, "enum"),
    ({"enum": ["a"]}, {"enum": ["b", "a"]}, WIDENED, "enum"),
    ({"type": "string"}, {"type": "string", "enum": ["a"]}, NARROWED, "enum"),
    ({"type": "string", "enum": ["a"]}, {"type": "string"}, WIDENED, "enum"),
    ({"const": 1}, {"enum": [1, 2]}, WIDENED, "enum"),
    ({"minimum": 1}, {"minimum": 2}, NARROWED, "minimum"),
    ({"minimum": 2}, {"minimum": 1}, WIDENED, "minimum"),
    ({"maximum": 9}, {}, WIDENED, "maximum"),
    ({}, {"maxLength": 9}, NARROWED, "maxLength"),
    ({"maxLength": 9}, {"maxLength": 8}, NARROWED, "maxLength"),
    ({"exclusiveMinimum": True}, {"exclusiveMinimum": 3}, CHANGED, "exclusiveMinimum"),
    ({"maxItems": "9"}, {"maxItems": 9}, CHANGED, "maxItems"),
    ({}, {"uniqueItems": True}, NARROWED, "uniqueItems"),
    ({"uniqueItems": True}, {}, WIDENED, "uniqueItems"),
    ({}, {"pattern": "a"}, NARROWED, "pattern"),
    ({"pattern": "a"}, {}, WIDENED, "pattern"),
    ({"pattern": "a"}, {"pattern": "b"}, CHANGED, "pattern"),
    ({"format": "uri"}, {}, WIDENED, "format"),
    ({}, {"not": {"type": "null"}}, CHANGED, "not"),
    ({"allOf": [{"minimum": 1}, {"maximum": 2}]}, {"allOf": [{"minimum": 1}, {"maximum": 1}]}, CHANGED, "allOf"),
    ({"type": "string"}, {"type": ["string", "null"]}, WIDENED, ""),
    ({"type": ["string", "null"]}, {"type": "string"}, NARROWED, ""),
    ({"anyOf": [{"type": "string"}, {"type": "null"}]}, {"type": "string"}, NARROWED, ""),
    ({"anyOf": [{"type": "string"}, {"type": "null"}]}, {"anyOf": [{"type": "null"}]}, NARROWED, ""),
    ({"oneOf": [{"type": "integer"}, {"type": "null"}]}, {"type": ["number", "null"]}, WIDENED, "type"),
    ({"type": "array", "items": {}}, {"type": "array", "items": {"type": "string"}}, NARROWED, "items.type"),
    ({"type": "array", "items": {"type": "string"}}, {"type": "array"}, WIDENED, "items.type"),
    ({"items": [{"type": "string"}]}, {"items": [{"type": "null"}]}, CHANGED, "items[0].type"),
    ({"items": [{"type": "string"}]}, {"items": []}, CHANGED, "items"),
    ({"additionalProperties": False}, {}, WIDENED, "additionalProperties"),
    ({}, {"additionalProperties": {"type": "string"}}, NARROWED, "additionalProperties"),
    (
        {"additionalProperties": {"type": "string"}},
        {"additionalProperties": {"type": "null"}},
        CHANGED,
        "additionalProperties.type",
    ),
    ({"description": "x"}, {"description": "y"}, RESTATED, "description"),
    ({"default": 1}, {"default": True}, RESTATED, "default"),
    ({"type": ["string", "null"], "default": "a"}, {"type": ["null", "string"]}, RESTATED, "default"),
]
OF_AN_OBJECT: list[tuple[str, Any, Any, list[tuple[str, str, bool]]]] = [
    ("a new required parameter", of(), {**of(a={}), "required": ["a"]}, [("properties.a", "narrowed", True)]),
    ("a new optional parameter", of(), of(a={}), [("properties.a", "widened", False)]),
    (
        "a removed parameter that is refused now",
        of(a={}),
        {**of(), "additionalProperties": False},
        [("additionalProperties", "narrowed", True), ("properties.a", "narrowed", True)],
    ),
    ("a removed parameter that is still accepted", of(a={}), of(), [("properties.a", "narrowed", False)]),
    ("a parameter that is now required", of(a={}), {**of(a={}), "required": ["a"]}, [("required", "narrowed", True)]),
    ("a parameter that is now optional", {**of(a={}), "required": ["a"]}, of(a={}), [("required", "widened", False)]),
    ("one that accepts anything is as none", of(), {"type": "object"}, []),
    ("no schema is as an empty one", None, {"type": "object"}, []),
    ("a schema that is none", of(a={}), "hello", [("properties.a", "narrowed", False)]),
    (
        "a property below another",
        of(a=of(b={})),
        of(a=of(b=False)),
        [("properties.a.properties.b.not", "changed", True)],
    ),
    ("the order of keys", of(a={}, b={}), of(b={}, a={}), []),
    ("a title", of(a={"title": "A"}), of(a={"title": "B"}), []),
]


@pytest.mark.parametrize(("old", "new", "effect", "path"), OF_A_VALUE)
def test_a_value_is_compared_keyword_by_keyword(old: Any, new: Any, effect: ChangeEffect, path: str) -> None:
    where = f"properties.a.{path}".rstrip(".")

    assert found(of(a=old), of(a=new)) == [(where, str(effect), effect in INPUT.breaking)]


@pytest.mark.parametrize(("old", "new", "effect", "path"), OF_A_VALUE)
def test_what_breaks_a_caller_is_not_what_breaks_a_reader(old: Any, new: Any, effect: ChangeEffect, path: str) -> None:
    (one,) = compare_schemas(of(a=old), of(a=new), OUTPUT)

    assert one.effect is effect
    assert one.breaking is (effect in {WIDENED, CHANGED})


@pytest.mark.parametrize(
    ("old", "new", "expected"), [row[1:] for row in OF_AN_OBJECT], ids=[r[0] for r in OF_AN_OBJECT]
)
def test_an_object_is_compared_property_by_property(old: Any, new: Any, expected: list[tuple[str, str, bool]]) -> None:
    assert found(old, new) == expected


def test_of_a_result_new_properties_are_harmless_and_removed_ones_are_not() -> None:
    (new,) = compare_schemas(of(), of(a={}), OUTPUT)
    (removed,) = compare_schemas(of(a={}), of(), OUTPUT)

    assert (new.fact, new.breaking) == ("'a' is new in the result", False)
    assert (removed.fact, removed.breaking) == ("'a' is no longer in the result", True)


def test_a_result_that_loses_its_schema_promises_nothing_any_more() -> None:
    (lost,) = compare_schemas(of(), None, OUTPUT)
    (gained,) = compare_schemas(None, of(), OUTPUT)

    assert (lost.breaking, gained.breaking) == (True, False)


def test_references_are_followed() -> None:
    old = {**of(a={"$ref": "#/$defs/A"}), "$defs": {"A": {"type": "string"}}}
    inline = of(a={"type": "string"})
    other = {**of(a={"$ref": "#/definitions/x~1y"}), "definitions": {"x/y": {"type": "string", "maxLength": 3}}}

    assert found(old, inline) == []
    assert found(old, other) == [("properties.a.maxLength", "narrowed", True)]
    assert found(inline, of(a={"allOf": [{"type": "string"}]})) == []


def test_references_that_lead_elsewhere_are_compared_as_texts() -> None:
    old, new = (of(a={"$ref": f"https://example.com/{name}"}, b={"$ref": "https://example.com/b"}) for name in "xy")

    assert found(old, new) == [("properties.a.$ref", "changed", True)]


def test_a_change_in_what_both_refer_to_is_told_once() -> None:
    def linked(most: int) -> dict[str, Any]:
        following = {"anyOf": [{"$ref": "#/$defs/N"}, {"type": "null"}]}
        node = of(next=following, text={"type": "string", "maxLength": most})
        return {**of(a={"$ref": "#/$defs/N"}, b={"$ref": "#/$defs/N"}), "$defs": {"N": node}}

    assert found(linked(9), linked(9)) == []
    assert {effect for _, effect, _ in found(linked(9), linked(8))} == {"narrowed"}
    assert len(found(linked(9), linked(8))) <= 2


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}},
        {"$ref": "https://example.com/schema"},
        {"$ref": "#/nowhere"},
        {"$ref": 7},
        {"anyOf": [{"$ref": "#"}]},
        {"anyOf": "x", "properties": [], "required": {}, "items": 3, "enum": {}, "type": 5},
        {"type": [[]], "additionalProperties": 0},
    ],
    ids=str,
)
def test_nonsense_and_circles_come_to_an_end(schema: dict[str, Any]) -> None:
    compare_schemas(schema, of(a={"type": "string"}), INPUT)
    compare_schemas(of(a={"type": "string"}), schema, INPUT)

    assert compare_schemas(schema, {**schema}, INPUT) == ()


def deep(levels: int, leaf: Any) -> dict[str, Any]:
    schema = leaf
    for _ in range(levels):
        schema = of(a=schema)
    return dict(schema)


def test_what_is_too_deep_or_too_large_to_compare_is_taken_for_the_worst() -> None:
    old, new = (deep(5_000, {"type": kind}) for kind in ("string", "integer"))
    (found_deep,) = compare_schemas(old, new, INPUT)
    wide = [of(**{f"p{i}": {"maximum": i + more} for i in range(1_000)}) for more in (0, 1)]

    assert (found_deep.effect, found_deep.breaking) == (CHANGED, True)
    assert "too deep" in found_deep.fact
    assert compare_schemas(wide[0], wide[1], INPUT)[-1].breaking


def test_values_and_alternatives_that_are_too_deep_to_compare_are_taken_for_the_worst() -> None:
    value: Any = 0
    for _ in range(5_000):
        value = [value]
    listed = compare_schemas(of(a={"enum": [value], "default": 1}), of(a={"enum": [[value]], "default": value}), INPUT)
    either = [of(a={"anyOf": [deep(5_000, {"type": kind}), {"type": "null"}]}) for kind in ("string", "integer")]

    assert [one.effect for one in listed] == [NARROWED, WIDENED, RESTATED]
    assert all(one.breaking for one in compare_schemas(either[0], either[1], INPUT))


def test_more_alternatives_than_can_be_compared_are_taken_for_the_worst() -> None:
    old, new = (of(a={"anyOf": [{"const": i + more} for i in range(100)]}) for more in (0, 1))

    assert found(old, new) == [("properties.a", "changed", True)]
    assert found(old, of(a={"anyOf": [{"const": i} for i in range(100)]})) == []


def test_hundreds_of_harmless_differences_hide_no_other() -> None:
    def said(word: str, **last: Any) -> dict[str, Any]:
        return of(**{f"p{i:04}": {"description": word} for i in range(2_000)}, z={"type": "string", **last})

    assert any(one.breaking for one in compare_schemas(said("a"), said("b", maxLength=1), INPUT))


def test_references_that_double_at_each_step_are_followed_once() -> None:
    def doubled(kind: str) -> dict[str, Any]:
        step = {f"D{i}": of(x={"$ref": f"#/$defs/D{i + 1}"}, y={"$ref": f"#/$defs/D{i + 1}"}) for i in range(15)}
        return {"$ref": "#/$defs/D0", "$defs": {**step, "D15": {"type": kind}}}

    assert len(compare_schemas(doubled("string"), doubled("null"), INPUT)) == 1


SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["a", "b"])
LEAVES = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["string", "integer", "number", "null"]),
        "enum": st.lists(SCALARS, min_size=1, max_size=3),
        "minimum": st.integers(0, 3),
        "maxLength": st.integers(0, 3),
        "pattern": st.sampled_from(["a", "b"]),
        "description": st.sampled_from(["x", "y"]),
    },
)
SCHEMAS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(
            lambda properties, required, closed: {
                "type": "object",
                "properties": properties,
                "required": [name for name in required if name in properties],
                **({"additionalProperties": False} if closed else {}),
            },
            st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
            st.lists(st.sampled_from("abc"), unique=True),
            st.booleans(),
        ),
        st.builds(lambda items: {"type": "array", "items": items}, inner),
        st.builds(lambda several: {"anyOf": several}, st.lists(inner, min_size=1, max_size=3)),
    ),
    max_leaves=8,
)
OPPOSITE = {NARROWED: WIDENED, WIDENED: NARROWED, CHANGED: CHANGED, RESTATED: RESTATED}


@given(SCHEMAS)
def test_a_schema_is_as_itself(schema: dict[str, Any]) -> None:
    assert compare_schemas(of(a=schema), of(a=schema), INPUT) == ()


@given(LEAVES, LEAVES)
def test_the_way_back_does_the_opposite(old: dict[str, Any], new: dict[str, Any]) -> None:
    there = {(one.path, one.effect) for one in compare_schemas(of(a=old), of(a=new), INPUT)}
    back = {(one.path, OPPOSITE[one.effect]) for one in compare_schemas(of(a=new), of(a=old), INPUT)}

    assert there == back


@given(SCHEMAS, st.sampled_from("abcd"))
def test_a_new_required_parameter_breaks_whatever_else_there_is(schema: dict[str, Any], name: str) -> None:
    old = of(**{one: {} for one in "abcd" if one != name}, z=schema)
    new = {**of(**old["properties"], **{name: {}}), "required": [name]}

    assert [(one.path, one.breaking) for one in compare_schemas(old, new, INPUT)] == [
        (f"inputSchema.properties.{name}", True)
    ]

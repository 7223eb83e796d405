"""Schemas that would hide what they narrow: by references, by what stands beside them, by names nobody declared."""

from __future__ import annotations

from typing import Any

import pytest

from truename.migration import INPUT, OUTPUT, compare_schemas

S, I = {"type": "string"}, {"type": "integer"}  # noqa: E741 - a schema each, as short as it can be


def of(a: Any, **defs: Any) -> dict[str, Any]:
    return {"properties": {"a": a}, "$defs": defs}


def beside(**more: Any) -> dict[str, Any]:
    uses = {"a": {"$ref": "#/$defs/S"}, "b": {"$ref": "#/$defs/S", **more}}
    return {"properties": uses, "$defs": {"S": S}}


def chained(length: int, last: Any) -> dict[str, Any]:
    links = {str(place): {"$ref": f"#/$defs/{place + 1}"} for place in range(length)}
    return of({"$ref": "#/$defs/0"}, **links, **{str(length): last})


ANY: dict[str, Any] = {"properties": {"a": {}}}
TWO = {"$ref": "#/$defs/A"}

# What is hidden, the input as it was, and as it is: each refuses something that was allowed.
HIDDEN: list[tuple[str, Any, Any]] = [
    ("a required parameter that nobody declared", ANY, {**ANY, "required": ["x"]}),
    ("one required from the day it was dropped", {"properties": {"a": {}, "x": {}}}, {**ANY, "required": ["x"]}),
    (
        "required of a value",
        {"properties": {"a": {"required": ["q"]}}},
        {"properties": {"a": {"required": ["q", "r"]}}},
    ),
    ("an anchor", of({"$ref": "#f"}, f={"$anchor": "f", **S}), of({"$ref": "#f"}, f={"$anchor": "f", **I})),
    ("a reference by address", of({"$ref": "http://a/b#/$defs/f"}, f=S), of({"$ref": "http://a/b#/$defs/f"}, f=I)),
    ("an escaped reference", of({"$ref": "#/$defs/a%20b"}, **{"a b": S}), of({"$ref": "#/$defs/a%20b"}, **{"a b": I})),
    (
        "a place in a list",
        of({"$ref": "#/$defs/l/anyOf/0"}, l={"anyOf": [S]}),
        of({"$ref": "#/$defs/l/anyOf/0"}, l={"anyOf": [I]}),
    ),
    ("a limit beside a reference", beside(), beside(maxLength=3)),
    (
        "a limit beside a chain of them",
        of(TWO, A={"$ref": "#/$defs/B"}, B=S),
        of(TWO, A={"$ref": "#/$defs/B", "maxLength": 2}, B=S),
    ),
    ("a chain that is too long", chained(30, S), chained(30, I)),
    (
        "several references at once",
        of({"allOf": [TWO, {"$ref": "#/$defs/B"}]}, A=S, B={}),
        of({"allOf": [TWO, {"$ref": "#/$defs/B"}]}, A=I, B={}),
    ),
    ("a condition", of({"if": TWO, "then": False}, A=S), of({"if": TWO, "then": False}, A=I)),
    (
        "a limit under a wider one",
        of({"maxLength": 100, "allOf": [{**S, "maxLength": 9}]}),
        of({"maxLength": 100, "allOf": [{**S, "maxLength": 3}]}),
    ),
    (
        "a limit over wider ones",
        of({"maxLength": 9, "anyOf": [{**S, "maxLength": 99}]}),
        of({"maxLength": 3, "anyOf": [{**S, "maxLength": 99}]}),
    ),
    ("a list beside a constant", of({"const": 1, "enum": [1, 2]}), of({"const": 1, "enum": [2]})),
    ("the items behind those listed", of({"items": [S]}), of({"items": [S], "additionalItems": False})),
    ("no null any more", of({**S, "nullable": True}), of(S)),
    ("draft 3", of({"required": False}), of({"required": True})),
]


@pytest.mark.parametrize(("old", "new"), [row[1:] for row in HIDDEN], ids=[row[0] for row in HIDDEN])
def test_whatever_a_schema_hides_breaks_its_callers(old: Any, new: Any) -> None:
    assert any(one.breaking for one in compare_schemas(old, new, INPUT))
    # A harmless difference in front must not hide it either.
    told = {**new, "properties": {**new["properties"], "more": {}}}
    assert any(one.breaking for one in compare_schemas(old, told, INPUT))


@pytest.mark.parametrize(("old", "new"), [row[1:] for row in HIDDEN], ids=[row[0] for row in HIDDEN])
def test_what_refers_elsewhere_is_as_it_was_where_nothing_was_changed_but_a_text(old: Any, new: Any) -> None:
    for schema in (old, new):
        told = {**schema, "properties": {**schema["properties"], "z": {"description": "new"}}}
        before = {**schema, "properties": {**schema["properties"], "z": {"description": "old"}}}
        assert not any(one.breaking for one in compare_schemas(before, told, INPUT))


def test_what_a_result_need_not_have_any_more_breaks_its_readers() -> None:
    old = {"properties": {}, "required": ["x"]}

    assert any(one.breaking for one in compare_schemas(old, {"properties": {}}, OUTPUT))


def test_what_stands_beside_a_reference_and_says_the_same_is_no_difference() -> None:
    def told(text: str) -> dict[str, Any]:
        inner = {"type": "object", "properties": {"p": S}, "required": ["p"]}
        return of({"$ref": "#/$defs/A", "type": "object", "required": ["q"], "description": text}, A=inner)

    (one,) = compare_schemas(told("old"), told("new"), INPUT)
    assert (one.path, one.breaking) == ("inputSchema.properties.a.description", False)

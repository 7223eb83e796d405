"""The digest of a definition: what counts, what doesn't, and that nothing in it can stop us."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truename.identity import definition_digest
from truename.identity.definition import DIGESTED_FIELDS

NUMBERS = st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def nested(depth: int) -> dict[str, Any]:
    schema: Any = {}
    for _ in range(depth):
        schema = {"properties": [schema]}
    return {"name": "deep", "inputSchema": schema}


def test_the_digest_is_the_sha_256_of_canonical_json() -> None:
    text = b'{"description":"\xc3\xa9","inputSchema":{"a":1,"b":[true,null]},"name":"x"}'

    digest = definition_digest({"name": "x", "inputSchema": {"b": [True, None], "a": 1}, "description": "é"})

    assert f"sha256:{hashlib.sha256(text).hexdigest()}" == digest


@given(st.dictionaries(st.sampled_from(DIGESTED_FIELDS), JSON))
def test_the_order_of_keys_and_the_way_through_json_change_nothing(definition: dict[str, Any]) -> None:
    digest = definition_digest(definition)

    assert digest == definition_digest(dict(reversed(definition.items())))
    assert digest == definition_digest(json.loads(json.dumps(definition, indent=3)))


def test_an_integer_equals_the_same_number_with_a_point() -> None:
    assert definition_digest({"inputSchema": {"minimum": 1}}) == definition_digest({"inputSchema": {"minimum": 1.0}})


def test_true_is_not_one_and_null_is_not_absent() -> None:
    values: list[dict[str, Any]] = [{"x": True}, {"x": 1}, {"x": "1"}, {"x": None}, {}, {"x": [1]}, {"x": {"1": 1}}]

    digests = {definition_digest({"inputSchema": value}) for value in values}

    assert len(values) == len(digests)


@pytest.mark.parametrize("field", DIGESTED_FIELDS)
def test_every_field_that_a_model_reads_counts(field: str) -> None:
    assert definition_digest({"name": "x"}) != definition_digest({"name": "x", field: "changed"})


@pytest.mark.parametrize("field", ["_meta", "icons", "execution", "openai_name"])
def test_what_is_beside_the_definition_does_not_count(field: str) -> None:
    assert definition_digest({"name": "x"}) == definition_digest({"name": "x", field: "changed"})


@pytest.mark.parametrize(
    "number", [float("nan"), float("inf"), 2**53 + 1, -(2**64), 10**400, pytest.param(10**5_000, id="10^5000")]
)
def test_numbers_beyond_the_standard_have_a_digest_that_is_never_a_canonical_one(number: float) -> None:
    digest = definition_digest({"inputSchema": {"maximum": number}})

    assert digest.startswith("sha256-plain:")
    assert digest == definition_digest({"inputSchema": {"maximum": number}})
    assert digest != definition_digest({"inputSchema": {"minimum": number}})


def test_a_lone_surrogate_has_a_digest() -> None:
    assert definition_digest({"description": "\ud800"}) != definition_digest({"description": "\ud801"})


def test_a_definition_nested_deeper_than_python_recurses_has_a_digest() -> None:
    digest = definition_digest(nested(100_000))

    assert digest.startswith("sha256-plain:")
    assert digest != definition_digest(nested(100_001))


def test_plain_digests_tell_structures_apart() -> None:
    big = 2**60
    values: list[Any] = [
        [big, [1], 2],
        [big, [1, 2]],
        [big, 1, 2],
        {"a": big, "b": {}},
        {"a": big, "b": []},
        {"a": {"a": big}},
        {"a": [big, "a"]},
        [big, "1", "2"],
        [big, "1\x002"],
    ]

    assert len(values) == len({definition_digest({"inputSchema": value}) for value in values})


def test_true_is_not_one_beyond_the_standard_either() -> None:
    huge = {"maximum": 2**60}
    true, one = ({"inputSchema": {**huge, "x": value}} for value in (True, 1))

    assert definition_digest(true) != definition_digest(one)

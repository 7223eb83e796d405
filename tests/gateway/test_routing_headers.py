"""Headers that repeat a call's arguments are judged as the SDK judges them, from both ends."""

from __future__ import annotations

import random
from typing import Any

import pytest
from mcp.shared.inbound import (
    decode_header_value,
    encode_header_value,
    find_invalid_x_mcp_header,
    mcp_param_headers,
    validate_mcp_param_headers,
    x_mcp_header_map,
)

from truename.gateway.protocol.routing_headers import (
    decode_value,
    encode_value,
    mirrored_arguments,
    param_mismatch,
    routing_headers,
    wrong_annotation,
)

TOKENS = [*"ABCDEFGHIJKLMNOP", "Region", "X-1", "a", "not a token", 5]
TYPES = [*("string", "integer", "boolean") * 6, "number", None, ["string"]]
VALUES: list[Any] = ["x", "", " x ", "Größe", 42, 42.0, 4.5, True, False, None, {}, [], "=?base64?eA==?="]
SAID = ["x", "42", "42.0", "042", "4.5", "true", "True", "", "=?base64?eA==?=", "=?base64?!?=", "Größe"]


def schema(chance: random.Random, depth: int = 0) -> Any:
    found: dict[str, Any] = {"type": chance.choice(TYPES)}
    if chance.random() < 0.5:
        found["x-mcp-header"] = chance.choice(TOKENS)
    if depth < 3:
        if chance.random() < 0.8:
            names = chance.sample(["p", "q", "r"], chance.randrange(4))
            found["properties"] = {name: schema(chance, depth + 1) for name in names}
        if chance.random() < 0.15:
            key = chance.choice(["items", "not", "anyOf", "$defs", "default", "patternProperties"])
            inner = schema(chance, depth + 1)
            found[key] = {"anyOf": [inner], "$defs": {"d": inner}, "patternProperties": {"d": inner}}.get(key, inner)
    return found


def arguments(chance: random.Random, depth: int = 0) -> Any:
    def one() -> Any:
        return arguments(chance, depth + 1) if depth < 2 and chance.random() < 0.3 else chance.choice(VALUES)

    return {name: one() for name in chance.sample(["p", "q", "r"], chance.randrange(4))}


@pytest.mark.parametrize("part", range(4))
def test_schemas_and_calls_are_judged_alike(part: int) -> None:
    seed = random.SystemRandom().randrange(2**32)
    chance = random.Random(seed + part)
    judged = 0
    for _ in range(3_000):
        shape, given = schema(chance), arguments(chance)
        valid = find_invalid_x_mcp_header(shape) is None
        assert (wrong_annotation(shape) is None) is valid, (seed, shape)
        if not valid:
            assert param_mismatch(shape, given, []) is None
            continue
        header_map = x_mcp_header_map(shape)
        assert mirrored_arguments(shape) == header_map, (seed, shape)
        mirrored = dict(mcp_param_headers(header_map, given))
        ours = routing_headers("tools/call", {"arguments": given}, header_map)
        assert {key: value for key, value in ours.items() if key.startswith("Mcp-Param-")} == mirrored, (seed, given)
        for name in list(mirrored):
            if chance.random() < 0.4:
                mirrored[name] = chance.choice(SAID)
            elif chance.random() < 0.1:
                del mirrored[name]
        if chance.random() < 0.1:
            mirrored["Mcp-Param-Region"] = "x"
        expected = validate_mcp_param_headers(shape, given, mirrored)
        found = param_mismatch(shape, given, mirrored.items())
        assert (found is None) is (expected is None), (seed, shape, given, mirrored, found, expected)
        judged += bool(mirrored)
    # About 130, with a spread of 11.
    assert judged > 50


@pytest.mark.parametrize(
    "value", [one for one in (*VALUES, *SAID, "a\nb", "\x7f", "=?base64??=") if isinstance(one, str)]
)
def test_values_are_encoded_and_decoded_alike(value: str) -> None:
    assert encode_value(value) == encode_header_value(value)
    assert decode_value(encode_value(value)) == value
    assert decode_value(value) == decode_header_value(value)


def test_a_header_that_stands_twice_is_refused() -> None:
    shape = {"properties": {"a": {"type": "string", "x-mcp-header": "A"}}}
    pairs = [("mcp-param-a", "x"), ("Mcp-Param-A", "x")]
    assert param_mismatch(shape, {"a": "x"}, pairs) == "The header Mcp-Param-A stands more than once. Send it once."

"""The parameters of clients' requests are checked as the SDK checks them, by the protocol's schemas."""

from __future__ import annotations

import random
from typing import Any

import pytest
from mcp_types.methods import CLIENT_REQUESTS, SPEC_CLIENT_METHODS, validate_client_request
from pydantic import ValidationError

from tests.support.changed_values import changed
from truename.gateway.mcp.schema import METHODS, has_method, wrong_params

ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "a", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}, "experimental": {"x": {}}},
    "io.modelcontextprotocol/logLevel": "info",
}
PARAMS: dict[str, dict[str, Any]] = {
    "initialize": {
        "protocolVersion": "x",
        "capabilities": {"roots": {"listChanged": True}, "sampling": {}, "tasks": {"list": {}}},
        "clientInfo": {"name": "a", "version": "1", "icons": [{"src": "x"}]},
    },
    "tools/list": {"cursor": "a"},
    "tools/call": {
        "name": "a",
        "arguments": {"x": 1},
        "task": {"ttl": 5},
        "inputResponses": {"a": {"action": "accept", "content": {}}, "b": {"roots": []}},
        "requestState": "s",
    },
    "prompts/get": {"name": "a", "arguments": {"x": "y"}},
    "resources/read": {"uri": "x"},
    "resources/subscribe": {"uri": "x"},
    "resources/unsubscribe": {"uri": "x"},
    "completion/complete": {
        "ref": {"type": "ref/prompt", "name": "x"},
        "argument": {"name": "a", "value": "b"},
        "context": {"arguments": {"a": "b"}},
    },
    "logging/setLevel": {"level": "info"},
    "subscriptions/listen": {"notifications": {"toolsListChanged": True, "resourceSubscriptions": ["x"]}},
}


def test_the_versions_have_the_methods_that_their_schemas_have() -> None:
    assert METHODS == SPEC_CLIENT_METHODS
    versions = {version for _, version in CLIENT_REQUESTS}
    ours = {(method, version) for version in versions for method in METHODS if has_method(version, method)}
    assert ours == set(CLIENT_REQUESTS)


@pytest.mark.parametrize("version", ["2024-11-05", "2025-11-25", "2026-07-28"])
def test_parameters_are_refused_that_the_schema_refuses_and_no_others(version: str) -> None:
    seed = random.SystemRandom().randrange(2**32)
    chance = random.Random(seed)
    methods = sorted(method for method, of in CLIENT_REQUESTS if of == version)
    for _ in range(4_000):
        method = chance.choice(methods)
        params = PARAMS.get(method, {})
        if version == "2026-07-28":
            params = {**params, "_meta": {**ENVELOPE, "progressToken": chance.choice(["a", 5, None])}}
        params = changed(chance, params)
        try:
            validate_client_request(method, version, params)
            refused = False
        except ValidationError:
            refused = True
        assert (wrong_params(version, method, params) is not None) is refused, (seed, method, params)


@pytest.mark.parametrize(
    ("method", "params", "expected"),
    [
        ("tools/call", {"name": 5}, "Expected `str`, got `int` - at `$.name`"),
        ("tools/call", None, "Object missing required field `name`"),
        ("tools/list", None, None),
        ("logging/setLevel", {"level": "loud"}, "Invalid enum value 'loud' - at `$.level`"),
        (
            "ping",
            {"_meta": {"progressToken": True}},
            "Expected `int | str | null`, got `bool` - at `$._meta.progressToken`",
        ),
    ],
)
def test_what_is_wrong_is_named(method: str, params: dict[str, Any] | None, expected: str | None) -> None:
    assert wrong_params("2025-11-25", method, params) == expected

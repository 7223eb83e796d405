"""The parts of a round trip: arguments that schemas accept, replayed servers, and the servers that are taken."""

from __future__ import annotations

from typing import Any

import pytest

from tests.corpus.collection import catalogues
from tests.export.__main__ import is_good, recorded
from tests.export.arguments import example
from tests.export.replay import ReplayedServers


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({}, {}),
        ({"type": "object", "properties": {"a": {"type": "string"}}}, {}),
        ({"properties": {"a": {"type": "string", "minLength": 3}}, "required": ["a"]}, {"a": "xxx"}),
        ({"properties": {"n": {"type": "integer", "minimum": 5, "maximum": 9}}, "required": ["n"]}, {"n": 5}),
        ({"properties": {"n": {"type": "number", "maximum": 0}}, "required": ["n"]}, {"n": 0}),
        ({"properties": {"a": {"enum": ["b", "c"]}}, "required": ["a"]}, {"a": "b"}),
        ({"properties": {"a": {"type": ["null", "string"]}}, "required": ["a"]}, {"a": None}),
        (
            {"properties": {"a": {"type": "array", "minItems": 2, "items": {"const": 4}}}, "required": ["a"]},
            {"a": [4, 4]},
        ),
        ({"properties": {"a": {"anyOf": [{"type": "boolean"}, {"type": "string"}]}}, "required": ["a"]}, {"a": True}),
        (
            {"$defs": {"x": {"type": "null"}}, "properties": {"a": {"$ref": "#/$defs/x"}}, "required": ["a"]},
            {"a": None},
        ),
        ({"properties": {"a": {"$ref": "#/nowhere"}}, "required": ["a"]}, {"a": "x"}),
    ],
)
def test_arguments_have_what_a_schema_requires(schema: dict[str, Any], value: object) -> None:
    assert example(schema) == value


def test_every_recorded_schema_gets_arguments() -> None:
    schemas = [tool.get("inputSchema") or {} for row in catalogues() for tool in row["tools"]]

    assert [one for one in schemas if set(one.get("required") or ()) - set(example(one))] == []


def test_a_replayed_server_lists_its_tools_and_says_which_one_was_called() -> None:
    servers = ReplayedServers({"desk": [{"name": "search"}], "notes": [{"name": "search"}]})
    called = servers.answer(1, {"id": 1, "method": "tools/call", "params": {"name": "search"}})
    unknown = servers.answer(1, {"id": 2, "method": "tools/call", "params": {"name": "find"}})
    listed = servers.answer(0, {"id": 3, "method": "tools/list"})

    assert called is not None
    assert called["result"]["content"][0]["text"] == '{"server": "notes", "tool": "search"}'
    assert unknown is not None
    assert "error" in unknown
    assert listed is not None
    assert listed["result"]["tools"] == [{"name": "search"}]
    assert servers.answer(0, {"method": "notifications/initialized"}) is None


def test_servers_without_output_schemas_are_taken() -> None:
    lists = recorded()

    assert lists
    assert not any("outputSchema" in tool for tools in lists.values() for tool in tools)


@pytest.mark.parametrize(
    ("changed", "good"),
    [
        ({}, True),
        ({"extra": 1}, False),
        ({"listed as exported": 1}, False),
        ({"right tool": 1}, False),
        ({"undone": False}, False),
    ],
)
def test_a_trip_is_good_if_all_is_as_exported(changed: dict[str, int], good: bool) -> None:
    figures = {"tools": 2, "listed as exported": 2, "extra": 0, "called": 2, "right tool": 2, "undone": True}

    assert is_good(figures | changed) is good

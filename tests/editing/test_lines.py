"""Errors that know a key's dotted path get the line of that key, whatever the key is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from truename.conventions import Location
from truename.editing import SourceLines
from truename.editing.lines import key_path
from truename.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from truename.editing import KeyPath

JSON = """{
  // a comment
  "mcpServers": {
    "a.b": {"args": ["x",
      "y"]},
    "a": {"b": 1},
    "": {"env": {}}
  }
}
"""
YAML = "# a comment\nmcp_servers:\n  tickets:\n    url: http://x\n    args: [1,\n      2]\n"
TOML = '[mcpServers.a]\ncommand = "x"\nargs = [\n  "y",\n]\n'

PATHS: list[tuple[Any, str, KeyPath]] = [
    ({"a": {"b": 1}}, "a.b", ("a", "b")),
    ({"a.b": 1}, "a.b", ("a.b",)),
    ({"a": {"b": 1}, "a.b": 1}, "a.b", ("a.b",)),
    ({"a[0]": [1]}, "a[0][0]", ("a[0]", 0)),
    ([{"a": 1}], "[0].a", (0, "a")),
    ({"a": [1]}, "a[1]", ("a",)),
    ({"a": [1]}, "a.b.c", ("a",)),
    ({"": {"": 1}}, "..", ("", "")),
    ({"x": 1}, "y", ()),
    ({"x": 1}, "", ()),
    ({"x" * 3_000: 1}, "x" * 3_000, ()),
    (7, "x", ()),
]


@pytest.mark.parametrize(("value", "where", "path"), PATHS)
def test_a_dotted_text_means_the_longest_keys_that_exist(value: Any, where: str, path: KeyPath) -> None:
    assert key_path(value, where) == path


PLACES = [
    ("c.json", JSON, "mcpServers.a.b.args[1]", (5, 7)),
    ("c.json", JSON, "mcpServers.a", (6, 5)),
    ("c.json", JSON, "mcpServers.absent.env.X", (3, 3)),
    ("c.json", JSON, "absent", (1, 1)),
    ("c.yaml", YAML, "mcp_servers.tickets.url", (4, 5)),
    ("c.yaml", YAML, "mcp_servers.tickets.args[1]", (6, 7)),
    ("c.toml", TOML, "mcpServers.a.args", (3, 1)),
    ("c.json", JSON, "", (0, 0)),
    ("c.json", '{"a": ', "a", (0, 0)),
    ("c.yaml", "a: [", "a", (0, 0)),
    ("c.json", '{"a": "\ud800"}', "a", (0, 0)),
]


@pytest.mark.parametrize(("file", "text", "where", "place"), PLACES)
def test_a_key_has_the_place_of_its_nearest_parent_that_exists(
    file: str, text: str, where: str, place: tuple[int, int]
) -> None:
    found = SourceLines({file: text}).found(Location(file=file, key=where))

    assert (found.line, found.column) == place
    assert (found.file, found.key) == (file, where)


def test_a_whole_file_begins_where_its_value_does() -> None:
    assert SourceLines({"c.json": "\n\n{}"}).found(Location(file="c.json"), is_whole=True).line in {1, 3}
    assert SourceLines({}).found(Location(file="absent.json"), is_whole=True).line == 0


def test_a_file_is_read_when_its_text_is_not_given(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text(JSON, "utf-8")

    assert SourceLines().found(Location(file=str(path), key="mcpServers")).line == 3


def test_an_error_is_told_with_the_line_once() -> None:
    lines = SourceLines({"c.json": JSON})
    error = ConfigError(file="c.json", key="mcpServers.a", problem="it is odd", remedy="Change it.")
    told = lines.told(error)

    assert str(told) == "c.json: line 6, column 5: mcpServers.a: it is odd. Change it."
    assert lines.told(told) is told


def test_a_key_that_occurs_twice_has_the_place_of_the_second() -> None:
    text = '{"a": {"x": 1,\n"x": 2}}'
    error = ConfigError(file="c.json", key="'x'", problem="the key occurs twice", remedy="Remove one.")

    assert SourceLines({"c.json": text}).told(error).key == "line 2, column 1: 'x'"


def test_the_work_for_lines_of_a_large_file_is_bounded() -> None:
    text = '{"a": "' + "x" * (1 << 22) + '",\n"b": 1}'
    lines = SourceLines({"c.json": text})
    found = [lines.found(Location(file="c.json", key="b")).line for _ in range(40)]

    assert found[:10] == [2] * 10
    assert found[-10:] == [0] * 10

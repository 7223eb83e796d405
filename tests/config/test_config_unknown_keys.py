"""A key that means nothing is reported at every level of truename.toml that the schema knows, with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from truename.config import json_schema, parse
from truename.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

UNKNOWN: Final = "zz_unknown"
# What other commands read from the same file: `parse` leaves it alone.
ELSEWHERE: Final = {"lint", "migration"}
# Keys of maps that have to be ids.
MAP_KEYS: Final = {"metadata": "a@1/b@1", "tools": "a@1/b@1"}
Step = str | int


def levels(schema: Any, path: tuple[Step, ...] = ()) -> Iterator[tuple[Step, ...]]:
    """Yield the path of each object that has a closed set of keys, and is written by hand."""
    if schema.get("additionalProperties") is False and "properties" in schema:
        yield path
    for name, inner in schema.get("properties", {}).items():
        yield from levels(inner, (*path, name))
    if isinstance(entries := schema.get("additionalProperties"), dict):
        yield from levels(entries, (*path, MAP_KEYS.get(str(path[-1]) if path else "", "any")))
    if isinstance(items := schema.get("items"), dict):
        yield from levels(items, (*path, 0))


def document(path: tuple[Step, ...]) -> Any:
    if not path:
        return {UNKNOWN: 1}
    return [document(path[1:])] if path[0] == 0 else {path[0]: document(path[1:])}


def dotted(path: tuple[Step, ...]) -> str:
    # An id is quoted, because it holds what separates steps elsewhere.
    words = (repr(step) if step in MAP_KEYS.values() else step for step in (*path, UNKNOWN))
    steps = (f"[{word}]" if isinstance(word, int) else f".{word}" for word in words)
    return "".join(steps).removeprefix(".")


SETTINGS: Final = json_schema()["$defs"]["settings"]
LEVELS: Final = [path for path in levels(SETTINGS) if not ELSEWHERE & set(path)]
CASES: Final = [pytest.param(path, id=".".join(map(str, path)) or "top") for path in LEVELS]


def reported(text: str, file: str) -> list[ConfigError]:
    try:
        parse(text, Path(file), {})
    except ConfigError as error:
        return [error]
    except ExceptionGroup as group:
        return [error for error in group.exceptions if isinstance(error, ConfigError)]
    return []


def test_the_schema_has_levels_of_every_depth() -> None:
    assert {len(path) for path in LEVELS} >= {0, 1, 2, 3}


@pytest.mark.parametrize("path", CASES)
def test_an_unknown_key_of_the_settings_is_reported_once(path: tuple[Step, ...]) -> None:
    errors = reported(json.dumps({"mcpServers": {}, "truename": document(path)}), "/m.json")

    named = [fault for fault in errors if (fault.key or "").endswith(UNKNOWN)]

    assert [(fault.file, fault.key, bool(fault.remedy)) for fault in named] == [("/m.json", dotted(path), True)]


@pytest.mark.parametrize("table", ["mcpServers", "servers"])
def test_an_unknown_key_of_a_server_is_reported_once_in_a_file_that_is_ours_alone(table: str) -> None:
    errors = reported(f'[{table}.s]\ncommand = "x"\n{UNKNOWN} = 1\n', "/truename.toml")

    assert [(fault.key, bool(fault.remedy)) for fault in errors] == [(f"{table}.s.{UNKNOWN}", True)]


def test_an_unknown_key_of_a_servers_auth_is_reported_once() -> None:
    text = f'[mcpServers.s]\nurl = "https://a.example"\nauth = {{ type = "login", {UNKNOWN} = 1 }}\n'

    errors = reported(text, "/truename.toml")

    assert [(fault.key, bool(fault.remedy)) for fault in errors] == [(f"mcpServers.s.auth.{UNKNOWN}", True)]

"""The JSON Schema and the reader agree: on each setting, and on what is refused."""

from __future__ import annotations

import json
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truename.catalog import ServerIdentity
from truename.config import ServerConfig, Settings, json_schema, parse
from truename.config.servers import KNOWN
from truename.config.settings import SETTINGS
from truename.errors import ConfigError

SCHEMA = json_schema()
# It has no types of its own.
Draft202012Validator = import_module("jsonschema").Draft202012Validator
CHECK = Draft202012Validator(SCHEMA)
ENVIRON = {"X": "https://a.example"}


def is_read(document: dict[str, Any], environ: dict[str, str] = ENVIRON) -> bool:
    # As truename.toml would say it: the top level holds settings too.
    top = {key: value for key, value in document.items() if key not in {"mcpServers", "servers", "truename"}}
    content: dict[str, Any] = {key: document[key] for key in ("mcpServers", "servers") if key in document}
    content = content or {"mcpServers": {}}
    section = document.get("truename", {})
    content["truename"] = top | section if isinstance(section, dict) else section
    try:
        parse(json.dumps(content), Path("/m.json"), environ)
    except (ConfigError, ExceptionGroup):
        return False
    return True


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert json.loads(json.dumps(SCHEMA)) == SCHEMA


def test_every_setting_and_every_field_of_a_server_is_in_it() -> None:
    assert set(SETTINGS) == {field.name for field in fields(Settings)}
    assert set(SETTINGS) == set(SCHEMA["$defs"]["settings"]["properties"])
    assert set(SETTINGS) < set(SCHEMA["properties"])
    server = SCHEMA["$defs"]["server"]["else"]["properties"]
    declared = {field.name for field in fields(ServerIdentity)}
    assert {field.name for field in fields(ServerConfig)} - {"key", "identity", "unset"} | declared < set(server)
    assert [name for name, row in (SCHEMA["properties"] | server).items() if not row.get("description")] == []


def test_what_an_entry_may_have_is_what_the_schema_has() -> None:
    assert set(SCHEMA["$defs"]["server"]["else"]["properties"]) == KNOWN


BOTH: list[dict[str, Any]] = [
    {},
    {"mcpServers": {}},
    {"mcpServers": {"s": {"command": "x", "args": ["a", 1, True], "env": {"A": 1, "B": None}, "cwd": "."}}},
    {"servers": {"s": {"url": "HTTPS://a.example", "type": "Streamable-HTTP", "headers": {"A": "b"}}}},
    {"mcpServers": {"s": {"httpUrl": "${X}/mcp", "transport": "sse", "timeout": 0.5, "alwaysAllow": ["a"]}}},
    {"mcpServers": {"s": {"serverUrl": "http://localhost:1"}}},
    {"mcpServers": {"s": {"disabled": True, "command": 3}}},
    {"mcpServers": {"s": {"enabled": False, "url": []}}},
    {"truename": {"style": "prefixed", "token": "${X}", "aliases": {"a": "b", "c": 1}}},
    {"mcpServers": {"s": {"command": "x", "integration": "Sales-force_1", "version": 2, "versions": {"a b": 3}}}},
    {"mcpServers": {"s": {"command": "x", "integration": "a", "version": "1.4.2", "versions": {}}}},
    {"names": "detect", "max_body": 1, "call_timeout": 0.1, "state": "memory", "server_name": "${X}"},
    {"overrides": {"Claude Code": {"Salesforce@v1/GET": "x"}}},
]
NEITHER: list[dict[str, Any]] = [
    {"colour": "red"},
    {"truename": {"colour": "red"}},
    {"truename": 1},
    {"mcpServers": []},
    {"mcpServers": {"s": 1}},
    {"mcpServers": {" ": {"command": "x"}}},
    {"mcpServers": {"s": {}}},
    {"mcpServers": {"s": {"command": "x", "url": "http://a.example"}}},
    {"mcpServers": {"s": {"command": " "}}},
    {"mcpServers": {"s": {"command": ["x"]}}},
    {"mcpServers": {"s": {"command": "x", "args": "y"}}},
    {"mcpServers": {"s": {"command": "x", "env": {"A": []}}}},
    {"mcpServers": {"s": {"command": "x", "disabled": "no"}}},
    {"mcpServers": {"s": {"command": "x", "timeout": 0}}},
    {"mcpServers": {"s": {"command": "x", "isolation": "none"}}},
    {"mcpServers": {"s": {"command": "x", "start": "late"}}},
    {"mcpServers": {"s": {"command": "x", "idle_timeout": -1}}},
    {"mcpServers": {"s": {"command": "x", "type": "smoke"}}},
    {"mcpServers": {"s": {"command": "x", "integration": "My Server"}}},
    {"mcpServers": {"s": {"command": "x", "integration": "--"}}},
    {"mcpServers": {"s": {"command": "x", "integration": "a" * 201}}},
    {"mcpServers": {"s": {"command": "x", "integration": 1}}},
    {"mcpServers": {"s": {"command": "x", "version": 0}}},
    {"mcpServers": {"s": {"command": "x", "version": 10**18}}},
    {"mcpServers": {"s": {"command": "x", "version": "2"}}},
    {"mcpServers": {"s": {"command": "x", "version": "@v2"}}},
    {"mcpServers": {"s": {"command": "x", "version": [2]}}},
    {"mcpServers": {"s": {"command": "x", "versions": ["a"]}}},
    {"mcpServers": {"s": {"command": "x", "versions": {"a": "2"}}}},
    {"mcpServers": {"s": {"command": "x", "versions": {"a": 0}}}},
    {"mcpServers": {"s": {"url": "ftp://a.example"}}},
    {"mcpServers": {"s": {"url": "http://a.example", "headers": {"a b": "c"}}}},
    {"style": "loud"},
    {"names": "all"},
    {"token": "a b"},
    {"server_name": " "},
    {"server_name": "x" * 65},
    {"aliases": []},
    {"max_body": 0},
    {"max_tools": 1.5},
    {"call_timeout": "1"},
    {"overrides": 1},
    {"overrides": {"cursor": {"x": "y"}}},
    {"overrides": {"cursor": {"a/b": []}}},
    {"state": 1},
    {"env_file": 1},
]


@pytest.mark.parametrize("document", BOTH, ids=str)
def test_both_accept(document: dict[str, Any]) -> None:
    assert is_read(document)
    assert CHECK.is_valid(document)


@pytest.mark.parametrize("document", NEITHER, ids=str)
def test_both_refuse(document: dict[str, Any]) -> None:
    assert not is_read(document)
    assert not CHECK.is_valid(document)


TEXTS = st.sampled_from(["", " ", "x", "${X}", "http://a.example", "stdio", "SSE", "http", "prefixed", "memory", "a/b"])
VALUES = st.one_of(
    TEXTS,
    st.integers(-1, 3),
    st.booleans(),
    st.lists(st.one_of(TEXTS, st.booleans()), max_size=2),
    st.dictionaries(st.sampled_from(["A", "a b", ""]), st.one_of(TEXTS, st.integers(0, 2)), max_size=2),
)
ENTRIES = st.dictionaries(st.sampled_from(sorted(SCHEMA["$defs"]["server"]["else"]["properties"])), VALUES, max_size=4)
DOCUMENTS = st.fixed_dictionaries(
    {"mcpServers": st.dictionaries(st.sampled_from(["s", " ", "t u"]), ENTRIES, max_size=2)},
    # An env_file would be opened: it has tests of its own.
    optional={name: VALUES for name in SETTINGS if name != "env_file"},
)


@given(DOCUMENTS)
def test_what_the_reader_takes_the_schema_takes(document: dict[str, Any]) -> None:
    if is_read(document):
        CHECK.validate(document)

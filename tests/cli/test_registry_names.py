"""The name in the MCP registry that a configuration gives a server is shown where the server is shown."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import fake

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Run

NAME = "io.github.acme/files"
SERVERS = {"files": fake("files", "read") | {"registry_name": NAME}, "other": fake("other", "write")}


def test_names_tell_it_of_each_tool(run: Run, configure: Callable[..., Path]) -> None:
    outcome = run("names", configure({}, servers=SERVERS), "--json")

    assert {one["server"]: one["registry_name"] for one in outcome.document["tools"]} == {"files": NAME, "other": None}


@pytest.mark.parametrize("files", [("named.json", "plain.json"), ("plain.json", "named.json")])
def test_of_two_configurations_with_one_key_only_the_named_servers_tools_have_it(
    run: Run, tmp_path: Path, files: tuple[str, str]
) -> None:
    entries = {"named.json": fake("named", "read") | {"registry_name": NAME}, "plain.json": fake("plain", "write")}
    for name, entry in entries.items():
        (tmp_path / name).write_text(json.dumps({"mcpServers": {"files": entry}}), "utf-8")
    outcome = run("names", *(tmp_path / name for name in files), "--json")

    assert {one["tool"]: one["registry_name"] for one in outcome.document["tools"]} == {"read": NAME, "write": None}


def test_resolve_tells_it_of_the_tool_that_is_meant(run: Run, configure: Callable[..., Path]) -> None:
    path = configure({}, servers=SERVERS)

    assert run("resolve", "files/read", path, "--json").document["registry_name"] == NAME
    assert f"'{NAME}' in the MCP registry" in run("resolve", "files/read", path).out
    assert "MCP registry" not in run("resolve", "other/write", path).out


def test_the_doctor_tells_it_with_its_place(run: Run, configure: Callable[..., Path]) -> None:
    path = configure({}, servers=SERVERS)
    outcome = run("doctor", path, "--json")

    assert outcome.document["registry_names"] == [
        {"server": "files", "file": str(path), "line": 1, "registry_name": NAME}
    ]
    assert NAME in run("doctor", path).out


@pytest.mark.parametrize("table", ["mcpServers", "servers"])
def test_the_doctor_tells_the_place_of_an_entry_in_either_table(run: Run, tmp_path: Path, table: str) -> None:
    path = tmp_path / "truename.toml"
    path.write_text(f'[truename]\n\n[{table}.files]\nurl = "http://127.0.0.1:9/mcp"\nregistry_name = "{NAME}"\n')
    outcome = run("doctor", path, "--json")

    assert [one["line"] for one in outcome.document["registry_names"]] == [3]

"""`truename doctor` suggests that entries are one connector, with their places, and merges nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from truename.clients import read_source
from truename.clients.doctor import check_connectors

if TYPE_CHECKING:
    from pathlib import Path

NAME = "io.github.acme/tickets"


def client_file(path: Path, servers: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"mcpServers": servers}, indent=1), "utf-8")
    return path


def test_one_registry_name_in_two_clients_is_told_with_both_places(tmp_path: Path) -> None:
    one = client_file(tmp_path / ".cursor" / "mcp.json", {"a": {"command": "x", "registry_name": NAME}})
    other = client_file(tmp_path / "mcp.json", {"b": {"url": "https://b.example", "registry_name": NAME}})
    (finding,) = check_connectors([read_source(one), read_source(other)])

    assert finding.rule.code == "TN018"
    assert f"'a' ({one}:3) and 'b' ({other}:3) are probably one connector" in finding.fact
    assert finding.location is not None
    assert (finding.location.file, finding.location.line) == (str(other), 3)


def test_a_server_that_several_clients_share_is_not_told(tmp_path: Path) -> None:
    entry = {"command": "npx", "args": ["-y", "tickets"]}
    files = [client_file(tmp_path / name / "mcp.json", {"t": entry}) for name in (".cursor", ".other")]

    assert not list(check_connectors([read_source(path) for path in files]))


def test_a_file_that_is_found_twice_is_not_told(tmp_path: Path) -> None:
    found = read_source(client_file(tmp_path / "mcp.json", {"t": {"command": "npx", "args": ["tickets"]}}))

    assert not list(check_connectors([found, found]))


def test_a_text_that_is_no_registry_name_counts_for_nothing(tmp_path: Path) -> None:
    servers = {key: {"command": key, "registry_name": name} for key, name in {"a": "no name", "b": "no name"}.items()}
    strange = {key: {"command": key, "registry_name": 7} for key in "cd"}

    assert not list(check_connectors([read_source(client_file(tmp_path / "mcp.json", servers | strange))]))


def test_many_entries_are_told_in_a_bounded_sentence(tmp_path: Path) -> None:
    servers = {f"server{number}": {"command": "npx", "args": [f"tickets@{number}"]} for number in range(1, 90)}
    (finding,) = check_connectors([read_source(client_file(tmp_path / "mcp.json", servers))])

    assert "and 85 more are probably one connector: all start the npm package 'tickets'" in finding.fact

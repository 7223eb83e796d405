"""Undoing a connection after others changed the same files: our edits go, theirs stay."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.clients.connecting import GITHUB, NAMES, SERVERS, Home
from truename.clients import find
from truename.clients.apply import connect, disconnect, plan_disconnection
from truename.clients.connection import ConnectRequest, plan_connection
from truename.editing import backups, digest


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_what_was_changed_since_stays_and_only_our_edits_are_undone(home: Home) -> None:
    home.connect()
    home.meddle(lambda value: value.update(starts=2, more=[1]))
    home.meddle(lambda value: value["mcpServers"].update(new={"command": "n"}))

    undoing = home.undo()

    servers = {**SERVERS["mcpServers"], "new": {"command": "n"}}
    assert home.read() == {"mcpServers": servers, "starts": 2, "more": [1]}
    assert not undoing.exact


@pytest.mark.parametrize("one", [False, True])
def test_fields_that_a_client_adds_to_our_entries_are_no_obstacle(home: Home, one: bool) -> None:
    home.connect(entries="one" if one else "best")
    home.meddle(lambda value: value["mcpServers"]["tn" if one else "github"].update(tools=["*"]))

    home.undo()

    wanted = GITHUB if one else {**GITHUB, "tools": ["*"]}
    assert home.read()["mcpServers"]["github"] == wanted
    assert "tn" not in home.read()["mcpServers"]


def test_an_entry_that_leads_elsewhere_now_is_left_and_told(home: Home) -> None:
    home.connect()
    home.meddle(lambda value: value["mcpServers"]["github"].update(url="https://mine.test/mcp"))

    undoing = home.undo()

    assert home.read()["mcpServers"]["github"]["url"] == "https://mine.test/mcp"
    assert "command" not in home.read()["mcpServers"]["github"]
    assert [note.subject for note in undoing.notes] == ["github"]


def test_an_entry_that_was_taken_out_stays_out(home: Home) -> None:
    home.connect()
    home.meddle(lambda value: value["mcpServers"].pop("github"))

    home.undo()

    assert list(home.read()["mcpServers"]) == ["mine"]


def test_lists_of_names_get_their_old_names_beside_what_was_added_since(home: Home) -> None:
    home.settings.write_text('{"permissions": {"allow": ["mcp__github__*", "Bash(ls)"]}}', "utf-8")
    home.connect(entries="one")
    kept = json.loads(home.settings.read_text("utf-8"))["permissions"]["allow"]
    assert kept == ["mcp__tn__github_search", "mcp__tn__github_get_me", "Bash(ls)"]
    home.settings.write_text(json.dumps({"permissions": {"allow": ["Edit", *kept, "mcp__tn__x"]}}), "utf-8")

    home.undo()

    found = json.loads(home.settings.read_text("utf-8"))["permissions"]["allow"]
    assert found == ["Edit", "mcp__github__*", "Bash(ls)", "mcp__tn__x"]


def test_two_connections_are_undone_together(home: Home) -> None:
    home.connect()
    before_second = home.read()
    home.meddle(lambda value: value["mcpServers"].update(jira={"type": "http", "url": "https://jira.test/mcp"}))
    home.connect()

    assert home.read()["mcpServers"]["jira"]["url"] == "http://127.0.0.1:8750/mcp/for/claude-code/only/jira"
    assert home.read()["mcpServers"]["github"] == before_second["mcpServers"]["github"]

    home.undo()

    assert home.read()["mcpServers"]["github"] == GITHUB
    assert home.read()["mcpServers"]["jira"] == {"type": "http", "url": "https://jira.test/mcp"}


def test_connecting_twice_changes_nothing_and_undoing_twice_neither(home: Home) -> None:
    before = home.servers.read_bytes()
    home.connect()
    connected = home.servers.read_bytes()

    assert home.plan().steps == ()
    assert home.plan().already == ("github",)
    home.connect()
    assert home.servers.read_bytes() == connected
    home.undo()
    assert home.undo().steps == ()
    assert home.servers.read_bytes() == before


def test_the_backup_is_gone_when_all_is_as_it_was(home: Home) -> None:
    home.connect()
    home.undo()
    home.connect()
    home.undo()

    assert [one.action for one in backups(home.environ)] == ["disconnect"]


LISTED_YAML = """name: mine
version: 1.0.0
schema: v1
mcpServers:
  - name: mine  # stays
    command: x
  - name: github
    command: npx
    args: [-y, gh]
    env:
      TOKEN: s3cret-value
"""
LISTED_TOML = """# mine
[[mcp_servers]]
name = "mine"
transport = "stdio"
command = "x"

[[mcp_servers]]
name = "github"
transport = "stdio"
command = "npx"
args = ["-y", "gh"]
env = { TOKEN = "s3cret-value" }
"""


@pytest.mark.parametrize("one", [False, True])
@pytest.mark.parametrize(
    ("name", "text", "more"),
    [
        (".continue/config.yaml", LISTED_YAML, "  - name: new\n    command: n\n"),
        (".vibe/config.toml", LISTED_TOML, '\n[[mcp_servers]]\nname = "new"\ncommand = "n"\n'),
    ],
)
def test_servers_in_lists_are_undone_by_their_names(home: Home, name: str, text: str, more: str, one: bool) -> None:
    client = {".continue/config.yaml": "continue", ".vibe/config.toml": "mistral-vibe"}[name]
    path = home.machine.home / name
    path.parent.mkdir()
    path.write_text(text, "utf-8")
    plan = plan_connection(
        home.machine,
        find(home.machine),
        home.address,
        ConnectRequest(client=client, entries="one" if one else "best"),
        NAMES,
    )
    connect(plan, home.environ)
    path.write_text(path.read_text("utf-8") + more, "utf-8")

    disconnect(plan_disconnection(client, home.environ), home.environ)

    found = next(one for one in find(home.machine) if one.path == path)
    keys = {client_server.server.key: client_server.server.command for client_server in found.servers}
    assert keys == {"mine": "x", "github": "npx", "new": "n"}
    assert "127.0.0.1" not in path.read_text("utf-8")


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="modes are for POSIX")
def test_the_mode_of_a_file_stays(home: Home) -> None:
    home.servers.chmod(0o640)
    home.connect()
    assert home.servers.stat().st_mode & 0o777 == 0o640
    home.undo()
    assert home.servers.stat().st_mode & 0o777 == 0o640


def _altered(home: Home, **fields: Any) -> Path:
    (record,) = Path(home.environ["XDG_STATE_HOME"]).rglob("*.json")
    record.write_text(json.dumps({**json.loads(record.read_text("utf-8")), **fields}), "utf-8")
    return record


@pytest.mark.parametrize("before", ["kept", None])
def test_a_record_that_names_another_file_is_not_obeyed(home: Home, before: str | None) -> None:
    home.connect()
    victim = home.servers.with_name("keys.json")
    victim.write_bytes(b"{}")
    _altered(home, path=str(victim), sha256_after=digest(b"{}"), **({"sha256_before": None} if before is None else {}))

    undoing = home.undo()

    assert undoing.steps == ()
    assert victim.read_bytes() == b"{}"


def test_a_backup_that_was_altered_is_kept_and_told(home: Home) -> None:
    home.connect()
    (copy,) = Path(home.environ["XDG_STATE_HOME"]).rglob("*.original")
    copy.write_bytes(b"evil")

    undoing = home.undo()

    assert "does not match the recorded digest" in str(undoing.problems[0])
    assert copy.exists()
    assert len(backups(home.environ)) == 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_among_the_records_is_passed_over(home: Home) -> None:
    before = home.servers.read_bytes()
    home.connect()
    (copy,) = Path(home.environ["XDG_STATE_HOME"]).rglob("*.original")
    os.mkfifo(copy.with_name("20990101T000000.000000Z-claude-code-0.json"))

    home.undo()

    assert home.servers.read_bytes() == before

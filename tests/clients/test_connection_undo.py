"""Undoing a connection after others changed the same files, and files that are left alone."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from truename.clients import Machine, find
from truename.clients.address import Address
from truename.clients.applying import connect, disconnect
from truename.clients.backup import backups
from truename.clients.connection import Wish, plan_connection
from truename.clients.undoing import Undoing, plan_disconnection
from truename.clients.upcoming import alone, together
from truename.config import Config, ServerConfig, Settings
from truename.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from truename.clients.plan import Plan

GITHUB = {"command": "npx", "args": ["-y", "gh"], "env": {"TOKEN": "s3cret-value"}}
SERVERS: dict[str, Any] = {"mcpServers": {"github": GITHUB, "mine": {"command": "x"}}, "starts": 1}
LISTED = {"github": ["search", "get_me"], "jira": ["search"]}


class Home:
    """A made-up home with Claude Code in it."""

    def __init__(self, base: Path) -> None:
        self.servers = base / "home" / ".claude.json"
        self.settings = base / "home" / ".claude" / "settings.json"
        self.settings.parent.mkdir(parents=True)
        self.environ = {"XDG_STATE_HOME": str(base / "state")}
        self.machine = Machine(
            system="linux", home=base / "home", environ=self.environ, project=base / "home", root=base
        )
        config = Config(
            path=base / "truename.toml",
            servers=(
                ServerConfig(key="github", command="npx", args=("-y", "gh"), env={"TOKEN": "s3cret-value"}),
                ServerConfig(key="jira", url="https://jira.test/mcp", type="http"),
            ),
        )
        self.address = Address(config=config, url="http://127.0.0.1:8750", program="/opt/truename")
        self.servers.write_text(json.dumps(SERVERS, indent=2), "utf-8")

    def plan(self, *, one: bool = False, **wish: Any) -> Plan:
        names = together(LISTED, Settings(), dialect="universal") if one else alone(LISTED, Settings())
        asked = Wish(client="claude-code", one=one, **wish)
        return plan_connection(self.machine, find(self.machine), self.address, asked, names)

    def connect(self, *, one: bool = False) -> None:
        connect(self.plan(one=one), self.environ)

    def undo(self) -> Undoing:
        undoing = plan_disconnection("claude-code", self.environ)
        disconnect(undoing, self.environ)
        return undoing

    def read(self) -> Any:
        return json.loads(self.servers.read_text("utf-8"))

    def meddle(self, change: Callable[[Any], object]) -> None:
        value = self.read()
        change(value)
        self.servers.write_text(json.dumps(value, indent=4), "utf-8")


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
    home.connect(one=one)
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
    home.connect(one=True)
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

    assert home.read()["mcpServers"]["jira"]["url"] == "http://127.0.0.1:8750/mcp/only/jira"
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


def broken(home: Home) -> None:
    home.servers.write_text('{"mcpServers": {', "utf-8")


def linked(home: Home) -> None:
    home.servers.rename(home.servers.with_name("real.json"))
    home.servers.symlink_to("real.json")


def read_only(home: Home) -> None:
    home.servers.chmod(0o400)


def directory(home: Home) -> None:
    home.servers.unlink()
    home.servers.mkdir()


HARMS = [broken, linked, read_only, directory]


@pytest.mark.parametrize("harm", HARMS)
def test_a_file_that_can_not_be_changed_safely_is_left_alone_by_connect(
    home: Home, harm: Callable[[Home], None]
) -> None:
    home.settings.write_text('{"permissions": {"allow": ["mcp__github__search"]}}', "utf-8")
    harm(home)
    before = {path: path.read_bytes() for path in home.servers.parent.rglob("*") if path.is_file()}

    with pytest.raises(ConfigError) as caught:
        connect(home.plan(one=True), home.environ)

    assert caught.value.code == "left_alone"
    assert {path: path.read_bytes() for path in home.servers.parent.rglob("*") if path.is_file()} == before
    assert backups(home.environ) == ()


@pytest.mark.parametrize("harm", HARMS)
def test_a_file_that_can_not_be_given_back_is_left_alone_with_the_place_of_its_backup(
    home: Home, harm: Callable[[Home], None]
) -> None:
    home.connect()
    harm(home)
    before = {path: path.read_bytes() for path in home.servers.parent.rglob("*") if path.is_file()}

    undoing = home.undo()

    (problem,) = undoing.problems
    (backup,) = backups(home.environ)
    assert problem.code == "left_alone"
    assert str(backup.copy) in problem.remedy
    assert {path: path.read_bytes() for path in home.servers.parent.rglob("*") if path.is_file()} == before


def test_a_file_that_is_gone_is_not_made_again(home: Home) -> None:
    home.connect()
    home.servers.unlink()

    (problem,) = home.undo().problems

    assert "it is gone" in problem.problem
    assert not home.servers.exists()


def test_a_file_that_changes_while_the_plan_is_looked_at_is_left_alone(home: Home) -> None:
    plan = home.plan()
    home.meddle(lambda value: value.update(starts=7))

    with pytest.raises(ConfigError, match="changed by somebody else"):
        connect(plan, home.environ)

    assert home.read() == {**SERVERS, "starts": 7}


def test_a_damaged_backup_is_told_and_nothing_is_changed(home: Home) -> None:
    home.connect()
    connected = home.servers.read_bytes()
    (backup,) = backups(home.environ)
    backup.copy.write_bytes(b"{}")

    (problem,) = home.undo().problems

    assert "not what was saved" in problem.problem
    assert home.servers.read_bytes() == connected


def test_a_key_that_is_taken_is_not_overwritten(home: Home) -> None:
    home.meddle(lambda value: value["mcpServers"].update(tn={"command": "mine"}))

    with pytest.raises(ConfigError, match="--name"):
        home.plan(one=True)

    assert home.plan(one=True, name="gate").steps


def test_project_files_are_changed_only_when_asked_for(home: Home) -> None:
    project = home.servers.with_name(".mcp.json")
    project.write_text(json.dumps({"mcpServers": {"jira": {"type": "http", "url": "https://jira.test/mcp"}}}), "utf-8")

    user = home.plan()
    team = home.plan(scopes=frozenset({"project"}))

    assert [step.path for step in user.steps] == [home.servers]
    assert any("--scope project" in note.advice for note in user.notes)
    assert [step.path for step in team.steps] == [project]


def test_each_project_of_the_users_own_file_keeps_its_own(home: Home) -> None:
    local = {"/a": {"mcpServers": {"github": GITHUB}}, "/b": {"mcpServers": {"mine": {"command": "x"}}}}
    home.meddle(lambda value: value.update(projects=local))

    home.connect(one=True)

    projects = home.read()["projects"]
    assert list(projects["/a"]["mcpServers"]) == ["tn"]
    assert projects["/b"] == local["/b"]


def test_a_server_that_is_refused_or_not_known_well_enough_stays_as_it_is(home: Home) -> None:
    home.settings.write_text('{"permissions": {"deny": ["mcp__github"]}}', "utf-8")

    plan = home.plan(one=True)

    assert plan.servers == ()
    assert any(note.kind == "left" and note.subject == "github" for note in plan.notes)

    home.settings.write_text('{"permissions": {"deny": ["mcp__github__search"]}}', "utf-8")
    asked = Wish(client="claude-code", one=True)
    unknown = plan_connection(home.machine, find(home.machine), home.address, asked, {})

    assert unknown.servers == ()
    assert any("--catalog" in note.advice for note in unknown.notes)


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
    names = together(LISTED, Settings(), dialect="universal") if one else alone(LISTED, Settings())
    plan = plan_connection(home.machine, find(home.machine), home.address, Wish(client=client, one=one), names)
    connect(plan, home.environ)
    path.write_text(path.read_text("utf-8") + more, "utf-8")

    disconnect(plan_disconnection(client, home.environ), home.environ)

    found = next(one for one in find(home.machine) if one.path == path)
    keys = {sighting.server.key: sighting.server.command for sighting in found.servers}
    assert keys == {"mine": "x", "github": "npx", "new": "n"}
    assert "127.0.0.1" not in path.read_text("utf-8")


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="modes are for POSIX")
def test_the_mode_of_a_file_stays(home: Home) -> None:
    home.servers.chmod(0o640)
    home.connect()
    assert home.servers.stat().st_mode & 0o777 == 0o640
    home.undo()
    assert home.servers.stat().st_mode & 0o777 == 0o640


_LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just("npx") | st.just(["-y", "gh"])
_HOSTILE = st.recursive(
    _LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["mcpServers", "github", "tn", "command", "args", "url", "autoApprove", "disabled"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(value=st.dictionaries(st.just("mcpServers"), _HOSTILE), one=st.booleans())
@example(value={"mcpServers": 3}, one=True)
@example(value={"mcpServers": {"github": None, "tn": []}}, one=True)
def test_whatever_stands_in_a_file_is_connected_and_given_back_or_left_alone(home: Home, value: Any, one: bool) -> None:
    path = home.machine.home / ".cursor" / "mcp.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value), "utf-8")
    names = together(LISTED, Settings(), dialect="universal") if one else alone(LISTED, Settings())
    try:
        plan = plan_connection(home.machine, find(home.machine), home.address, Wish(client="cursor", one=one), names)
    except ConfigError as error:
        assert error.code == "left_alone"  # noqa: PT017 - some are and some are not
        return
    connect(plan, home.environ)
    disconnect(plan_disconnection("cursor", home.environ), home.environ)

    assert path.read_text("utf-8") == json.dumps(value)


def test_an_entry_at_another_address_of_the_gateway_is_told(home: Home) -> None:
    home.connect()
    moved = replace(home.address, url="http://127.0.0.1:9999")

    plan = plan_connection(home.machine, find(home.machine), moved, Wish(client="claude-code"), {})

    assert plan.steps == ()
    assert any("truename disconnect" in note.advice for note in plan.notes)

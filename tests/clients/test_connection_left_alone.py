"""Files and servers that are left alone, each with a word on why."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.clients.connecting import GITHUB, NAMES, SERVERS, Home
from truename.clients import find
from truename.clients.apply import connect, disconnect, plan_disconnection
from truename.clients.connection import ConnectRequest, plan_connection
from truename.clients.gateway_address import UpcomingNames
from truename.editing import backups
from truename.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


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
        connect(home.plan(entries="one"), home.environ)

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

    assert "it no longer exists" in problem.problem
    assert not home.servers.exists()


def test_a_file_that_changes_while_the_plan_is_looked_at_is_left_alone(home: Home) -> None:
    plan = home.plan()
    home.meddle(lambda value: value.update(starts=7))

    with pytest.raises(ConfigError, match="another program changed it"):
        connect(plan, home.environ)

    assert home.read() == {**SERVERS, "starts": 7}


def test_a_damaged_backup_is_told_and_nothing_is_changed(home: Home) -> None:
    home.connect()
    connected = home.servers.read_bytes()
    (backup,) = backups(home.environ)
    backup.copy.write_bytes(b"{}")

    (problem,) = home.undo().problems

    assert "does not match the recorded digest" in problem.problem
    assert home.servers.read_bytes() == connected


def test_a_key_that_is_taken_is_not_overwritten(home: Home) -> None:
    home.meddle(lambda value: value["mcpServers"].update(tn={"command": "mine"}))

    with pytest.raises(ConfigError, match="--name"):
        home.plan(entries="one")

    assert home.plan(entries="one", name="gate").steps


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

    home.connect(entries="one")

    projects = home.read()["projects"]
    assert list(projects["/a"]["mcpServers"]) == ["tn"]
    assert projects["/b"] == local["/b"]


def test_a_server_that_is_refused_or_not_known_well_enough_stays_as_it_is(home: Home) -> None:
    home.settings.write_text('{"permissions": {"deny": ["mcp__github"]}}', "utf-8")

    plan = home.plan(entries="one")

    assert plan.servers == ()
    assert any(note.kind == "left" and note.subject == "github" for note in plan.notes)

    home.settings.write_text('{"permissions": {"deny": ["mcp__github__search"]}}', "utf-8")
    asked = ConnectRequest(client="claude-code", entries="one")
    unknown = plan_connection(home.machine, find(home.machine), home.address, asked, UpcomingNames({}, {}))

    assert unknown.servers == ()
    assert any("--catalog" in note.advice for note in unknown.notes)


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
    try:
        plan = plan_connection(
            home.machine,
            find(home.machine),
            home.address,
            ConnectRequest(client="cursor", entries="one" if one else "best"),
            NAMES,
        )
    except ConfigError as error:
        assert error.code == "left_alone"  # noqa: PT017 - some are and some are not
        return
    connect(plan, home.environ)
    disconnect(plan_disconnection("cursor", home.environ), home.environ)

    assert path.read_text("utf-8") == json.dumps(value)


def test_an_entry_at_another_address_of_the_gateway_is_told(home: Home) -> None:
    home.connect()
    moved = replace(home.address, url="http://127.0.0.1:9999")

    plan = plan_connection(home.machine, find(home.machine), moved, ConnectRequest(client="claude-code"), NAMES)

    assert plan.steps == ()
    assert any("truename disconnect" in note.advice for note in plan.notes)

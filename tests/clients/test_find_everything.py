"""Every configuration of the collected facts is found, on each of the three systems."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.clients.homes import SYSTEMS, Case, cases, machine, rows, written
from truename import dialects
from truename.clients import config_files, find, read_source

if TYPE_CHECKING:
    from pathlib import Path

    from truename.clients.machine import System

pytestmark = pytest.mark.slow


def scope_of(case: Case) -> str:
    """Return the scope that the place of a file tells: the user's, the project's, or what the facts say."""
    first = case.scope.split()[0].split("/")[0]
    if first in {"user", "project"}:
        return "user" if case.steps.startswith("home/") and not case.steps.startswith("home/project/") else "project"
    return first


@pytest.mark.parametrize("system", SYSTEMS)
def test_each_entry_of_the_facts_is_found_with_its_server(system: System, tmp_path: Path) -> None:
    missing = []
    for at, case in enumerate(cases(system)):
        folder = tmp_path / str(at)
        here = machine(folder, system)
        path = written(folder, case, "weather")
        seen = [
            (client_server.server.key, client_server.server.command, client_server.server.args)
            for found in find(here)
            if found.path == path and found.file.client == case.client
            for client_server in found.servers
            if client_server.client == case.client and client_server.path == path
        ]
        if seen != [("weather", "node", ("s.js",))]:
            missing.append((case, seen))

    assert missing == []


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_home_with_everything_in_it_is_found_whole(system: System, tmp_path: Path) -> None:
    here = machine(tmp_path, system)
    wanted = set()
    for at, case in enumerate(cases(system)):
        if not (tmp_path / case.steps).exists():
            path = written(tmp_path, case, f"s{at}")
            wanted.add((case.client, path, f"s{at}"))

    found = find(here)

    assert wanted <= {(one.file.client, one.path, sight.server.key) for one in found for sight in one.servers}
    assert [one.problem for one in found if one.problem] == []


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_file_that_is_named_is_known_by_its_place(system: System, tmp_path: Path) -> None:
    wrong = []
    for at, case in enumerate(cases(system)):
        path = written(tmp_path / str(at), case, "weather")
        found = read_source(path)
        servers = [(client_server.server.key, client_server.server.command) for client_server in found.servers]
        # Several clients read .mcp.json, the first of the table is told.
        clients = {case.client} if case.path != ".mcp.json" else {"claude-code"}
        if found.problem or found.file.client not in clients or servers != [("weather", "node")]:
            wrong.append((case, found.file.client, found.problem, servers))

    assert wrong == []


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_scope_is_told(system: System, tmp_path: Path) -> None:
    wrong = []
    for at, case in enumerate(cases(system)):
        folder = tmp_path / str(at)
        here = machine(folder, system)
        path = written(folder, case, "weather")
        scopes = {
            one.file.scope for one in find(here) if one.path == path and one.servers and one.file.client == case.client
        }
        local = {"local"} if case.path == ".air/mcp.json" else set()
        if scopes != (local or {scope_of(case)}):
            wrong.append((case, scopes))

    assert wrong == []


def test_every_client_of_the_facts_has_rows_and_a_dialect() -> None:
    for row in rows():
        files = config_files(row["client"])
        assert files, row["client"]
        assert all(dialects.get(file.dialect).name for file in files)


def test_a_client_without_a_file_says_where_it_keeps_its_servers() -> None:
    for row in rows():
        if not any(row["os_paths"].values()):
            (file,) = config_files(row["client"])
            assert not any(file.paths.values())
            assert file.how.endswith(".")

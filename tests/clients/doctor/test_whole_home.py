"""A home with every file of every client in it, and files that hold anything: each is examined, nothing fails."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.clients.doctor import homes
from tests.clients.homes import SYSTEMS, cases, machine, written
from truename.clients import find
from truename.clients.doctor import cases_of, examine, find_startable, would_start

if TYPE_CHECKING:
    from truename.clients.machine import System

pytestmark = pytest.mark.slow

TOOLS = ["a/b", "a_b", "get_weather"]
FILES = (
    ".claude.json",
    ".claude/settings.json",
    ".cursor/mcp.json",
    ".gemini/settings.json",
    ".config/opencode/opencode.json",
    ".config/zed/settings.json",
    "project/.mcp.json",
)


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_client_of_a_full_home_is_examined_with_its_servers(system: System, tmp_path: Path) -> None:
    here = machine(tmp_path, system)
    wanted = set()
    for at, case in enumerate(cases(system)):
        if not (tmp_path / case.steps).exists():
            written(tmp_path, case, f"s{at}")
            wanted.add((case.client, f"s{at}"))
    found = find(here)
    plan = find_startable(found)
    report = examine(cases_of(found, dict.fromkeys(plan, TOOLS), str(here.project)))

    examined = {(one.case.client, server.key) for one in report.diagnoses for server in one.case.lists.servers}
    assert wanted <= examined
    assert all(server.definitions for one in report.diagnoses for server in one.case.lists.servers)
    merging = {one.client for one in report.findings if one.rule.name == "tools_merged"}
    assert {"claude-code", "gemini-cli", "opencode"} <= merging
    assert [one for one in report.findings if one.rule.name in {"unreadable_file", "server_not_understood"}] == []


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)
entries = st.dictionaries(
    st.sampled_from(["command", "args", "env", "url", "headers", "type", "cwd", "includeTools", "disabled", "x"]),
    anything,
    max_size=6,
)
servers = st.dictionaries(st.text(max_size=8), entries | anything, max_size=3)
contents = st.fixed_dictionaries(
    {},
    optional={
        "mcpServers": servers | anything,
        "mcp": servers | anything,
        "context_servers": servers | anything,
        "projects": st.dictionaries(st.text(max_size=5), st.fixed_dictionaries({"mcpServers": servers}), max_size=2),
        "permissions": st.dictionaries(st.sampled_from(["allow", "deny"]), anything, max_size=2),
        "hooks": anything,
    },
)


@given(st.dictionaries(st.sampled_from(FILES), contents, min_size=1, max_size=3), st.lists(st.text(max_size=8)))
def test_whatever_files_hold_the_examination_ends_with_findings(files: dict[str, Any], tools: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = find(homes.written(Path(folder), files))
        plan = find_startable(found)
        report = examine(cases_of(found, dict.fromkeys(plan, tools), f"{folder}/project"))

    assert all(would_start(one.server) for one in plan.values())
    assert all(one.fact and one.remedy and one.fact.isprintable() for one in report.findings)
    assert json.dumps([one.fact for one in report.findings])


def test_the_path_of_a_project_is_shown_printable(tmp_path: Path) -> None:
    files = {".claude.json": {"projects": {"\x1f": {"mcpServers": {"one": {"command": "x"}}}}}}
    found = find(homes.written(tmp_path, files))
    report = examine(cases_of(found, {key: [":"] for key in find_startable(found)}, f"{tmp_path}/project"))
    assert [one.rule.name for one in report.findings] == ["name_respelled"]
    assert "\\x1f" in report.findings[0].fact

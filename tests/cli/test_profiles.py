"""`truename profiles`: who sees what, as the gateway would show it."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from tests.shared import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Run

PROFILES = {
    "readers": {"tools": ["files/read"], "groups": ["staff", "eng"]},
    "all": {"tools": ["*"], "except": ["files/delete"], "principals": ["ann"]},
    "rest": {"annotations": {"readOnlyHint": True}, "default": True},
    "open": {"prompts": ["files"], "everyone": True},
}


@pytest.fixture
def source(tmp_path: Path) -> str:
    return written(tmp_path, profiles=PROFILES)


def written(folder: Path, **settings: object) -> str:
    args = ["-m", "tests.gateway.servers.normal", "files", "read", "write", "delete"]
    servers = {"files": {"command": sys.executable, "args": args, "env": {"PYTHONPATH": str(ROOT)}}}
    path = folder / "mcp.json"
    path.write_text(json.dumps({"mcpServers": servers, "truename": {"state": "memory", **settings}}))
    return path.name


def test_each_profile_has_its_tools_and_says_for_whom_it_is(run: Run, source: str) -> None:
    told = run("profiles", source)
    assert told.status == 0
    assert "readers: for groups staff, eng" in told.out
    assert "rest: for everybody in no other profile" in told.out
    assert "open: for everyone" in told.out
    rows = {row["name"]: row for row in run("profiles", source, "--json").document["profiles"]}
    assert [tool["name"] for tool in rows["all"]["tools"]] == ["read", "write"]
    assert rows["all"]["for"] == {"principals": ["ann"]}
    assert (rows["open"]["prompts"], rows["open"]["resources"]) == (["files"], [])
    assert "prompts of files" in told.out
    assert rows["open"]["tools"] == rows["rest"]["tools"] == []


@pytest.mark.parametrize(
    ("words", "profiles", "tools"),
    [
        (["--as", "ann"], ["all", "open"], 2),
        (["--as", "joe", "--groups", "ops, eng"], ["open", "readers"], 1),
        (["--as", "joe"], ["open"], 0),
        (["--as", "ann", "--issuer", "https://idp.example"], ["open"], 0),
    ],
)
def test_somebodys_eyes(run: Run, source: str, words: list[str], profiles: list[str], tools: int) -> None:
    found = run("profiles", source, *words, "--json").document
    assert (found["profiles"], len(found["tools"])) == (profiles, tools)
    assert f"(by {', '.join(profiles)}) sees {tools} of 3 tools" in run("profiles", source, *words).out


def test_without_profiles_everybody_sees_everything(run: Run, tmp_path: Path) -> None:
    source = written(tmp_path)
    assert "every client sees all tools" in run("profiles", source).out
    assert run("profiles", source, "--as", "ann", "--json").document["profiles"] is None


def test_the_names_of_one_profile(run: Run, source: str) -> None:
    found = run("names", source, "--profile", "readers", "--json").document
    assert [tool["name"] for tool in found["tools"]] == ["read"]
    wrong = run("names", source, "--profile", "reader")
    assert (wrong.status, "Did you mean 'readers'?" in wrong.err) == (2, True)


def test_groups_are_somebodys(run: Run, source: str) -> None:
    told = run("profiles", source, "--groups", "eng")
    assert (told.status, "--as NAME" in told.err) == (2, True)


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ({"rules": [{"outcome": "ask", "tools": ["files/write"]}]}, "1 rule; calls that no rule matches are allowed"),
        (
            {"rules": [{"outcome": "ask", "tools": ["files/write"]}, {"outcome": "allow", "tools": ["files/read"]}]},
            "2 rules; calls that no rule matches need approval",
        ),
        ({"default": "deny"}, "0 rules; calls that no rule matches are denied"),
    ],
)
def test_the_default_that_holds_is_said(run: Run, tmp_path: Path, policy: object, said: str) -> None:
    source = written(tmp_path, profiles=PROFILES, policy=policy)
    for words in (["profiles", source, "--as", "ann"], ["names", source]):
        assert f"Policy: {said} (policy.default)." in run(*words).out

"""The GitHub Action: its steps, run as the runner does, find what the command finds, whatever its inputs hold."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tests.shared import ROOT
from tests.support.github_action import Ran, action, run_action

pytestmark = pytest.mark.slow

GOOD = '@mcp.tool\ndef get_weather(city: str) -> str:\n    """Tell the weather of a city."""\n    return city\n'
BAD = (
    '@mcp.tool(name="fs list")\ndef fs_list() -> list[str]:\n    """List the files of a directory."""\n    return []\n'
)
HEAD = 'from fastmcp import FastMCP\n\nmcp = FastMCP("shop")\n\n\n'
SCHEMA = json.loads((ROOT / "tests" / "lint" / "sarif-schema-2.1.0.json").read_text("utf-8"))
# What a pull request may name its files, or a workflow may hand on from it.
HOSTILE = [
    "$(touch owned)",
    "`touch owned`",
    '"; touch owned; "',
    "a && touch owned",
    "$INPUT_CONFIG",
    "${IFS}touch${IFS}owned",
    "a\ntouch owned",
    "--write-baseline",
    "--fix",
    "*",
    "$((a[$(touch owned)]))",
    "::set-output name=x::y",
]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A repository of tools, and beside it Truename as the first step would have installed it."""
    place = tmp_path / "repository"
    (place / "src").mkdir(parents=True)
    (place / "src" / "shop.py").write_text(HEAD + GOOD, "utf-8")
    programs = tmp_path / "runner" / "truename" / "bin"
    programs.mkdir(parents=True)
    (programs / "truename").symlink_to(Path(sys.executable).with_name("truename"))
    return place


def run(workspace: Path, **inputs: str) -> Ran:
    named = {name.replace("_", "-"): value for name, value in inputs.items()}
    return run_action(workspace, workspace.parent / "runner", named)


def files(workspace: Path) -> set[str]:
    return {str(path.relative_to(workspace)) for path in workspace.rglob("*")}


def test_what_is_as_it_should_be_passes(workspace: Path) -> None:
    ran = run(workspace, sources="src")

    assert (ran.status, ran.outputs) == (0, {"exit-status": "0", "sarif-file": ""}), ran.printed


def test_a_finding_fails_the_step_with_an_annotation_and_a_sarif_file(workspace: Path) -> None:
    (workspace / "src" / "shop.py").write_text(HEAD + BAD, "utf-8")

    ran = run(workspace, sources="src\n\n", sarif_file="found.sarif")

    assert ran.status == 1
    assert re.search(r"(?m)^::error file=src/shop.py,line=6,.*TN103", ran.printed)
    assert ran.outputs == {"exit-status": "1", "sarif-file": str(workspace / "found.sarif")}
    log = json.loads((workspace / "found.sarif").read_text("utf-8"))
    import_module("jsonschema").validate(log, SCHEMA)
    assert [result["ruleId"] for result in log["runs"][0]["results"]] == ["TN103"]


def test_without_sources_those_of_the_configuration_count(workspace: Path) -> None:
    (workspace / "part").mkdir()
    (workspace / "part" / "truename.toml").write_text('[lint]\nsources = ["tools.py"]\n', "utf-8")
    (workspace / "part" / "tools.py").write_text(HEAD + BAD, "utf-8")

    assert run(workspace, config="part", sarif_file="found.sarif").status == 1
    assert (workspace / "found.sarif").exists()


def test_strict_makes_notes_count(workspace: Path) -> None:
    (workspace / "src" / "shop.py").write_text(HEAD + "mcp.tool(name=NAME)(print)\n", "utf-8")

    assert [run(workspace, sources="src", strict=strict).status for strict in ("false", "true")] == [0, 1]


def test_a_lock_that_is_out_of_date_fails_the_step(workspace: Path) -> None:
    truename = str(Path(sys.executable).with_name("truename"))
    subprocess.run([truename, "lock", "src"], cwd=workspace, check=True, capture_output=True)
    before = (workspace / "truename.lock").read_bytes()
    assert run(workspace, command="lock").status == 0
    (workspace / "src" / "shop.py").write_text(HEAD + BAD, "utf-8")

    ran = run(workspace, command="lock")

    assert (ran.status, ran.outputs["exit-status"]) == (1, "1")
    assert (workspace / "truename.lock").read_bytes() == before


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize("name", ["command", "sources", "config", "strict"])
def test_no_value_of_an_input_is_run_or_taken_for_an_option(name: str, value: str, workspace: Path) -> None:
    before = files(workspace)

    ran = run(workspace, **{name: value})

    assert ran.status != 0
    assert ran.outputs["exit-status"] in {"1", "2"}
    assert files(workspace) == before


@pytest.mark.parametrize("value", HOSTILE)
def test_a_name_of_a_sarif_file_is_a_name(value: str, workspace: Path) -> None:
    before = files(workspace)

    ran = run(workspace, sources="src", sarif_file=value)

    assert files(workspace) - before <= {value}
    assert ran.outputs["sarif-file"] in {"", str(workspace / value)}


@pytest.mark.parametrize("value", [*HOSTILE, "truename==1 --index-url=x", "../x --pre"])
@pytest.mark.parametrize("name", ["version", "python-version"])
def test_nothing_is_installed_that_was_not_meant(name: str, value: str, workspace: Path) -> None:
    before = files(workspace)

    ran = run_action(workspace, workspace.parent / "runner", {name: value}, install=True)

    assert ran.status != 0
    assert ran.outputs["exit-status"] == ""
    assert files(workspace) == before


def test_no_script_of_the_action_has_an_expression_in_it() -> None:
    for step in action()["runs"]["steps"]:
        assert "${{" not in step["run"]
        assert step["shell"] == "bash"
    assert {name for step in action()["runs"]["steps"] for name in step["env"]} >= {"INPUT_SOURCES", "INPUT_VERSION"}


def test_an_input_that_the_command_does_not_know_is_refused(workspace: Path) -> None:
    assert "command must be lint or lock" in run(workspace, command="serve").printed
    assert "sarif-file is for the command lint" in run(workspace, command="lock", sarif_file="a").printed
    assert "config must be a directory" in run(workspace, config="nowhere").printed

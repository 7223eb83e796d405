"""The workflows and the action, judged by linters that are made for them, and what they may do."""

from __future__ import annotations

import re
import subprocess
from typing import Any

import pytest
import yaml

from tests.package.environments import tool
from tests.shared import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
NAMED = {path.stem: yaml.safe_load(path.read_text("utf-8")) for path in WORKFLOWS}
LINTERS = {
    "actionlint": ["-color=false", *map(str, WORKFLOWS)],
    "zizmor": ["--offline", "--no-progress", "--persona", "auditor", str(ROOT / ".github"), str(ROOT / "action.yml")],
}


@pytest.mark.parametrize("name", LINTERS)
def test_a_linter_finds_nothing(name: str) -> None:
    program = tool(name)
    if program is None:
        pytest.skip(f"{name} is not here: make deploy installs it")
    done = subprocess.run([program, *LINTERS[name]], capture_output=True, text=True, check=False, cwd=ROOT)

    assert done.returncode == 0, done.stdout + done.stderr


def jobs() -> list[tuple[str, Any]]:
    return [(f"{name}/{key}", job) for name, workflow in NAMED.items() for key, job in workflow["jobs"].items()]


def test_no_job_may_do_what_it_does_not_name() -> None:
    assert {name: workflow["permissions"] for name, workflow in NAMED.items()} == {"ci": {}, "release": {}}
    may = {name: {key for key, value in job["permissions"].items() if value == "write"} for name, job in jobs()}

    assert {name: rights for name, rights in may.items() if rights} == {
        "release/sign": {"id-token", "attestations"},
        "release/publish": {"id-token"},
        "release/page": {"contents"},
    }


def test_what_is_signed_was_built_where_nothing_may_be_written() -> None:
    release = NAMED["release"]["jobs"]

    assert release["sign"]["needs"] == ["build", "reproduce"]
    assert (release["publish"]["needs"], release["publish"]["environment"]) == ("sign", "pypi")
    for name in ("sign", "publish", "page"):
        assert not [step for step in release[name]["steps"] if "checkout" in step.get("uses", "")]


def test_no_script_has_an_expression_in_it() -> None:
    scripts = [step["run"] for _, job in jobs() for step in job["steps"] if "run" in step]

    assert scripts
    assert not [script for script in scripts if "${{" in script]


def test_every_target_that_a_workflow_makes_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))

    for path in WORKFLOWS:
        assert set(re.findall(r"\bmake ([a-z-]+)", path.read_text("utf-8"))) <= targets | {"and"}

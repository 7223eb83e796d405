"""The hooks that ship for pre-commit are ones that it understands, and run commands that there are."""

from __future__ import annotations

from typing import Any

import yaml

from tests.commands import options_of
from tests.shared import ROOT
from truename.cli.app import app

# Keys of a hook: pre-commit's page "Creating new hooks".
REQUIRED = {"id", "name", "entry", "language"}
KNOWN = REQUIRED | {"description", "pass_filenames", "types_or", "require_serial", "files", "types", "always_run"}


def hooks() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    return found


def test_each_hook_has_what_is_required_and_nothing_that_is_not_known() -> None:
    assert [one["id"] for one in hooks()] == ["truename-lint", "truename-lock"]
    for one in hooks():
        assert one.keys() >= REQUIRED
        assert one.keys() <= KNOWN
        assert one["language"] == "python"


def test_each_hook_runs_a_command_that_is_there() -> None:
    for hook in hooks():
        program, command, *options = hook["entry"].split()
        assert program == app.name[0]
        assert command in app
        assert set(options) <= options_of(app[command])

"""Test support: run the steps of action.yml as GitHub's runner does, with inputs, outputs and files of the workflow."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import yaml

from tests.shared import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_EXPRESSION: Final = re.compile(r"\$\{\{\s*([\w.-]+)\s*\}\}")
# What the runner starts for `shell: bash`.
_SHELL: Final = ("bash", "--noprofile", "--norc", "-eo", "pipefail")


def action() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    return loaded


@dataclass
class Ran:
    """What a run of the action left: the exit status of its last step, what it printed, its outputs."""

    status: int
    printed: str
    outputs: dict[str, str] = field(default_factory=dict)


def _evaluated(text: str, known: Mapping[str, str]) -> str:
    return _EXPRESSION.sub(lambda found: known[found[1]], text)


def _outputs(path: Path) -> dict[str, str]:
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return dict(line.partition("=")[::2] for line in lines)


def run_action(workspace: Path, temporary: Path, inputs: Mapping[str, str], *, install: bool = False) -> Ran:
    """Run all steps, or all but the first; a step that fails is the last."""
    declared = action()
    given = {name: one["default"] for name, one in declared["inputs"].items()} | dict(inputs)
    known = {f"inputs.{name}": value for name, value in given.items()} | {"github.action_path": str(ROOT)}
    outputs = temporary / "outputs"
    ran = Ran(0, "")
    for step in declared["runs"]["steps"][0 if install else 1 :]:
        script = temporary / "step.sh"
        script.write_text(_evaluated(step["run"], known), "utf-8")
        env = {
            **{key: value for key, value in os.environ.items() if not key.startswith(("GITHUB_", "INPUT_"))},
            **{key: _evaluated(value, known) for key, value in step["env"].items()},
            "GITHUB_ACTIONS": "true",
            "GITHUB_OUTPUT": str(outputs),
            "GITHUB_WORKSPACE": str(workspace),
            "RUNNER_TEMP": str(temporary),
        }
        done = subprocess.run(
            [*_SHELL, str(script)], cwd=workspace, env=env, capture_output=True, text=True, check=False
        )
        ran = Ran(done.returncode, ran.printed + done.stdout + done.stderr, _outputs(outputs))
        if done.returncode:
            break
    values = {name: one["value"] for name, one in declared["outputs"].items()}
    steps = {f"steps.run.outputs.{name}": ran.outputs.get(name, "") for name in values}
    ran.outputs = {name: _evaluated(value, steps) for name, value in values.items()}
    return ran

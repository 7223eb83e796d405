"""The pages about installing: every block of commands is run as it stands, or is about a machine that is not here."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Final

from tests.package.commands import BIN, ROOT, expect, fail, say
from tests.package.environments import surroundings

if TYPE_CHECKING:
    from pathlib import Path

_BLOCK: Final = re.compile(r"^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)
# Blocks whose commands begin with these need an engine, a cluster, a registry or what only a release has.
_ELSEWHERE: Final = ("make image", "podman", "docker", "cd deploy/replicas", "kubectl", "helm")
# The same, without an environment for a copy of the checkout that has all that the tests need.
_INSTEAD: Final = {"make dist": f"{sys.executable} -m tests.package.building"}


def _commands(block: str) -> tuple[list[str], list[str]]:
    lines = block.splitlines()
    return [line[2:] for line in lines if line.startswith("$ ")], [line for line in lines if not line.startswith("$ ")]


def run_page(place: Path, checkout: Path, page: str, heading: str = "") -> int:
    """Run the blocks of a page, each with a home of its own; return how many there were."""
    text = (ROOT / page).read_text("utf-8").partition(heading)[2] if heading else (ROOT / page).read_text("utf-8")
    blocks = _BLOCK.findall(text.partition("\n## ")[0] if heading else text)
    ran = 0
    for number, block in enumerate(blocks):
        commands, told = _commands(block)
        if any(command.startswith(_ELSEWHERE) for command in commands):
            continue
        env = surroundings(place / f"{number}")
        path = os.pathsep.join([f"{env['HOME']}/.local/bin", str(BIN), os.environ["PATH"]])
        # What is asked for before the block's own program is installed must not be found beside the tests.
        env |= {"PATH": path, "UV_PYTHON": sys.executable, "PIPX_DEFAULT_PYTHON": sys.executable}
        script = "set -e\n" + "\n".join(_INSTEAD.get(command, command) for command in commands)
        say("\n".join(f"$ {command}" for command in commands))
        done = subprocess.run(
            ["bash", "-c", script], cwd=checkout, env=env, capture_output=True, text=True, check=False
        )
        if done.returncode:
            fail(f"{page}:\n{script}\n{done.stdout}{done.stderr}")
        if told:
            expect(told, done.stdout.splitlines()[-len(told) :], f"what {page} tells of\n{script}\n")
        for made in (".venv", ".cache"):
            shutil.rmtree(checkout / made, ignore_errors=True)
        ran += 1
    return ran

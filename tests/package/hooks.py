"""The hooks of this repository as another repository gets them: pre-commit clones, builds and runs them."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Final

from tests.package.building import copy_checkout
from tests.package.commands import BIN, CONSTRAINTS, expect, fail, run, say
from tests.package.environments import surroundings

if TYPE_CHECKING:
    from pathlib import Path

_GOOD: Final = '@mcp.tool\ndef get_weather(city: str) -> str:\n    """Tell the weather of a city."""\n    return city\n'
_BAD: Final = (
    '@mcp.tool(name="fs list")\ndef fs_list() -> list[str]:\n    """List the files of a directory."""\n    return []\n'
)
_SOURCE: Final = 'from fastmcp import FastMCP\n\nmcp = FastMCP("shop")\n\n\n'
_CONFIG: Final = """repos:
  - repo: {repository}
    rev: {revision}
    hooks: [{{ id: truename-lint }}, {{ id: truename-lock }}]
"""


def _git(folder: Path, *words: str) -> str:
    # Whatever the person's own settings say about names, signatures and hooks.
    settings = {"user.name": "try", "user.email": "try@example.com", "commit.gpgsign": "false", "core.hooksPath": ""}
    options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
    return run("git", *options, *words, cwd=folder)


def make_repository(folder: Path) -> str:
    _git(folder, "init", "--quiet", "--initial-branch=main")
    _git(folder, "add", "--all")
    _git(folder, "commit", "--quiet", "--message", "first")
    return _git(folder, "rev-parse", "HEAD")


def check_hooks(place: Path) -> None:
    """Run the hooks over a repository of tools: they pass, they fail for a bad name, and for a lock out of date."""
    published = copy_checkout(place / "truename")
    revision = make_repository(published)
    user = place / "user"
    (user / "src").mkdir(parents=True)
    (user / "src" / "shop.py").write_text(_SOURCE + _GOOD, "utf-8")
    (user / ".pre-commit-config.yaml").write_text(
        _CONFIG.format(repository=published.as_uri(), revision=revision), "utf-8"
    )
    env = surroundings(place, PRE_COMMIT_HOME=str(place / "cache"), PIP_CONSTRAINT=str(CONSTRAINTS))
    env["PATH"] = f"{BIN}{os.pathsep}{env['PATH']}"
    run(BIN / "truename", "lock", "src", cwd=user, env=env)
    make_repository(user)

    def hooks() -> tuple[int, str]:
        command = [str(BIN / "pre-commit"), "run", "--all-files", "--color", "never"]
        say("$ " + " ".join(command))
        done = subprocess.run(command, cwd=user, env=env, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    status, said = hooks()
    if status:
        fail(f"the hooks fail on a repository that is as it should be:\n{said}")
    (user / "src" / "shop.py").write_text(_SOURCE + _BAD, "utf-8")
    status, said = hooks()
    expect((1, True, True), (status, "TN103" in said, "truename.lock" in said), f"what the hooks find\n{said}\n")
    say("ok: the hooks truename-lint and truename-lock")
